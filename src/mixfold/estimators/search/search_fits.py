"""The fits of a search: each setting by itself, then from smaller ones, then without some rows."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.engine.executors.threads import count_threads
from mixfold.estimators.mixtures.splitting import PRESCRIBED, can_split, split_starts
from mixfold.estimators.search.search_facts import NOTHING, facts
from mixfold.estimators.search.search_grid import Setting
from mixfold.estimators.search.search_rows import Rows, Scores, mean_and_error, scored
from mixfold.estimators.shell.base import DegenerateWarning

T = TypeVar("T")
# steps after which the starts by splitting are compared
TRIAL_STEPS = 5
# events after which a likelihood says how small the floor is rather than how well the model fits
_UNSOUND = ("floor", "drop", "empty")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What became of a setting. ``start``: 'own', or 'split' if made from a smaller mixture."""

    setting: Setting
    model: Any = None
    seconds: float = 0.0
    start: str = "own"
    error: Exception | None = None
    facts: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    held_out: tuple[float, float] = (float("nan"), float("nan"))

    @property
    def degenerate(self) -> bool:
        return is_degenerate(self.model)

    @property
    def sound(self) -> bool:
        return self.model is not None and not self.degenerate


def is_degenerate(model: Any) -> bool:
    """Whether a component was held at the floor of its variance, or given up."""
    return any(event.kind in _UNSOUND for event in getattr(model, "events_", ()))


@dataclass(frozen=True, slots=True)
class Worker:
    """How the fits are run: in parallel by threads, each then with a single one of its own."""

    n_jobs: int
    seed: int
    verbose: int = 0

    @classmethod
    def of(cls, n_jobs: int | None, seed: int, verbose: int = 0) -> Worker:
        if n_jobs is not None:
            count_threads(n_jobs)  # refuses what is no number of threads, as in all estimators
        return cls(effective_n_jobs(n_jobs), seed, verbose)

    def run(self, task: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """``task`` of each tuple, in order."""
        calls = (delayed(task)(*values) for values in arguments)
        # threads: the data are shared, and the engine's kernels release the interpreter
        parallel = Parallel(self.n_jobs, require="sharedmem", return_as="generator")
        results: Iterator[T] = parallel(calls)
        return results

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Without the warnings of single fits: the table has them, and the best is told of."""
        with warnings.catch_warnings():
            for category in (DegenerateWarning, ConvergenceWarning):
                warnings.simplefilter("ignore", category)
            with single_threaded_blas() if self.n_jobs > 1 else nullcontext():
                yield

    def ready(self, estimator: Any) -> Any:
        """A copy to fit, with a seed, and one thread if other fits run beside it."""
        params = estimator.get_params(deep=False)
        changes: dict[str, Any] = {}
        if "random_state" in params and params["random_state"] is None:
            changes["random_state"] = self.seed
        if self.n_jobs > 1 and params.get("executor") == "threads" and params["n_jobs"] is None:
            changes["n_jobs"] = 1
        return clone(estimator).set_params(**changes)

    def say(self, words: str) -> None:
        if self.verbose:
            print(words, file=sys.stderr, flush=True)


def fit_setting(setting: Setting, rows: Rows, worker: Worker) -> Fitted:
    """One fit; a failure is kept, for the table."""
    began = time.perf_counter()
    try:
        model, error = _fitted(worker.ready(setting.estimator), rows), None
    except Exception as failure:
        model, error = None, failure
    if model is not None and "n_jobs" in (params := setting.estimator.get_params(deep=False)):
        model.set_params(n_jobs=params["n_jobs"])  # what follows is not one of many fits
    return Fitted(setting, model, time.perf_counter() - began, error=error)


def _fitted(estimator: Any, rows: Rows) -> Any:
    model = rows.fit(estimator)
    if getattr(model, "stop_reason_", "") == "interrupted":
        raise KeyboardInterrupt  # of the search, not only of the fit that was under way
    return model


# ------------------------------------------------ starts from smaller mixtures


def better(model: Any, than: Any) -> bool:
    """Whether a fit is to be preferred to another of the same setting."""
    if is_degenerate(model) != is_degenerate(than):
        return is_degenerate(than)
    return bool(model.lower_bound_ > than.lower_bound_)


def fit_from(estimator: Any, small: Any, rows: Rows, floor: float) -> Any:
    """A fit that starts from a mixture with fewer components, some of them split.

    If even the best of these collapses or ends below ``floor``, the likelihood of ``small``, the
    halves are left almost together, from where the likelihood can only rise.
    """
    size = estimator.n_components
    starts = list(split_starts(small, size))
    if len(starts) > 1:
        short = {"max_iter": TRIAL_STEPS, "verbose": 0}
        trials = [_fitted(clone(estimator).set_params(**short, **s), rows) for s in starts]
        starts = [starts[max(range(len(trials)), key=lambda i: trials[i].lower_bound_)]]
    model = _fitted(clone(estimator).set_params(**starts[0]), rows)
    if model.lower_bound_ < floor or is_degenerate(model):
        (near,) = split_starts(small, size, far=False)
        other = _fitted(clone(estimator).set_params(**near), rows)
        model = other if better(other, model) else model
    return model


def grow(fits: list[Fitted], rows: Rows, worker: Worker) -> list[Fitted]:
    """The fits of a group, from few components to many, the better of own and split start."""
    out: list[Fitted] = []
    small: Fitted | None = None
    for fit in fits:
        if small is not None and fit.model is not None and can_split(fit.setting.estimator):
            fit = _grown(fit, small, rows, worker)
        small = fit if fit.sound else small
        out.append(fit)
    return out


def _grown(fit: Fitted, small: Fitted, rows: Rows, worker: Worker) -> Fitted:
    began = time.perf_counter()
    try:
        floor = small.model.lower_bound_
        model = fit_from(worker.ready(fit.setting.estimator), small.model, rows, floor)
    except ValueError:  # a start that cannot be prescribed: a matrix that is singular in float32
        return fit
    seconds = fit.seconds + time.perf_counter() - began
    if not better(model, fit.model):
        return replace(fit, seconds=seconds)
    # the start is ours, not a setting of the user's
    own = fit.setting.estimator.get_params(deep=False)
    model.set_params(**{name: own[name] for name in (*PRESCRIBED, "n_jobs", "verbose")})
    return replace(fit, model=model, seconds=seconds, start="split")


# ------------------------------------------------ numbers


def measured(fit: Fitted, rows: Rows) -> Fitted:
    """With the numbers by which it is compared, which may cost a pass over the rows."""
    if fit.model is None:
        return fit
    try:
        return replace(fit, facts=facts(fit.model, rows))
    except ValueError as failure:
        return replace(fit, error=failure)


# ------------------------------------------------ held-out rows


def score_fold(
    fit: Fitted, rows: Rows, fold: tuple[Any, Any], worker: Worker
) -> Scores | Exception:
    """Scores of the rows that are held out from a fit to the others."""
    train, test = fold
    try:
        return scored(
            _fitted(worker.ready(fit.setting.estimator), rows.part(train)), rows.part(test)
        )
    except Exception as failure:
        return failure


def with_scores(fit: Fitted, scores: list[Scores | Exception]) -> Fitted:
    failures = [s for s in scores if isinstance(s, Exception)]
    if failures:
        return replace(fit, error=failures[0])
    return replace(fit, held_out=mean_and_error(s for s in scores if isinstance(s, Scores)))
