"""The fits of a search: each setting by itself, then from smaller ones, then without some rows."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mixfold.contracts import Array
from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.engine.executors.threads import count_threads
from mixfold.estimators.mixtures.splitting import PRESCRIBED, can_split, split_starts
from mixfold.estimators.search.candidates import Setting
from mixfold.estimators.search.predictive import learns_from_y, score_outputs
from mixfold.estimators.search.rows import Rows, Scores, mean_and_error, score_rows
from mixfold.estimators.shell.base import DegenerateWarning
from mixfold.estimators.shell.effective_rows import effective_totals
from mixfold.estimators.shell.units import UnitsWarning

T = TypeVar("T")
# numbers by which fits are compared, and those of a fit that has none
NUMBERS = ("log_likelihood", "n_parameters", "bic", "aic", "icl", "bound")
NOTHING = dict.fromkeys(NUMBERS, math.nan)
# steps after which the starts by splitting are compared
TRIAL_STEPS = 5
# events after which a likelihood says how small the floor is rather than how well the model fits
UNSOUND = ("floor", "drop", "empty")


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
    losses: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    gap: tuple[float, float] | None = None

    @property
    def degenerate(self) -> bool:
        return is_degenerate(self.model)

    @property
    def sound(self) -> bool:
        return self.model is not None and not self.degenerate


def is_degenerate(model: Any) -> bool:
    """Whether a component was held at the floor of its variance, or given up."""
    return any(event.kind in UNSOUND for event in getattr(model, "events_", ()))


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
        calls = [delayed(task)(*values) for values in arguments]
        # threads: the data are shared, and the engine's kernels release the interpreter
        threads = min(self.n_jobs, max(1, len(calls)))
        parallel = Parallel(threads, require="sharedmem", return_as="generator")
        results: Iterator[T] = parallel(calls)
        return results

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Without the warnings of single fits: the table has them, and the best is told of."""
        with warnings.catch_warnings():
            for category in (DegenerateWarning, ConvergenceWarning, UnitsWarning):
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


# ------------------------------------------------ every candidate, fitted to all rows


def fit_all(
    found: list[Setting], rows: Rows, worker: Worker, split: bool, n_effective: float | None = None
) -> list[Fitted]:
    """Every setting fitted to all rows, in order; with ``split`` also from smaller mixtures."""
    fits: list[Fitted] = []
    for fit in worker.run(fit_setting, ((setting, rows, worker) for setting in found)):
        fits.append(fit)
        worker.say(f"fit {len(fits)} of {len(found)}: {describe_fit(fit)}")
    raise_if_none(fits)
    if split:
        fits = _grow_groups(fits, rows, worker)
    return list(worker.run(measure, ((fit, rows, n_effective) for fit in fits)))


def fit_setting(setting: Setting, rows: Rows, worker: Worker) -> Fitted:
    """One fit; a failure is kept, for the table."""
    began = time.perf_counter()
    try:
        model, error = _fit_rows(worker.ready(setting.estimator), rows), None
    except Exception as failure:
        model, error = None, failure
    if model is not None and "n_jobs" in (params := setting.estimator.get_params(deep=False)):
        model.set_params(n_jobs=params["n_jobs"])  # what follows is not one of many fits
    return Fitted(setting, model, time.perf_counter() - began, error=error)


def _fit_rows(estimator: Any, rows: Rows) -> Any:
    model = rows.fit(estimator)
    if getattr(model, "stop_reason_", "") == "interrupted":
        raise KeyboardInterrupt  # of the search, not only of the fit that was under way
    return model


def raise_if_none(fits: list[Fitted]) -> None:
    """A search in which nothing could be fitted is an error, that of its first setting."""
    first = fits[0].error
    if first is None or any(fit.model is not None for fit in fits):
        return
    many = f"None of the {len(fits)} settings of the search could be fitted; the first: "
    if type(first) in (ValueError, TypeError):
        raise type(first)(f"{many}{first}") from first
    first.add_note(f"{many}see above")
    raise first


def describe_fit(fit: Fitted) -> str:
    """A line about a fit, for ``verbose``."""
    params = ", ".join(f"{k}={v}" for k, v in fit.setting.params.items())
    failed = f", failed: {fit.error}" if fit.error else ""
    return f"{fit.setting.name}({params}), {fit.seconds:.1f} s{failed}"


# ------------------------------------------------ starts from smaller mixtures


def _grow_groups(fits: list[Fitted], rows: Rows, worker: Worker) -> list[Fitted]:
    """The fits, each replaced by one from a smaller mixture if that is better."""
    groups: dict[int, list[Fitted]] = {}
    for fit in fits:
        groups.setdefault(fit.setting.group, []).append(fit)
    out: list[Fitted] = []
    for group in worker.run(_grow_group, ((group, rows, worker) for group in groups.values())):
        out += group
        for fit in group:
            if fit.start == "split":
                worker.say(f"a better fit, from one with fewer components: {describe_fit(fit)}")
    return out


def _grow_group(fits: list[Fitted], rows: Rows, worker: Worker) -> list[Fitted]:
    """The fits of a group, from few components to many, the better of own and split start."""
    out: list[Fitted] = []
    small: Fitted | None = None
    for fit in fits:
        if small is not None and fit.model is not None and can_split(fit.setting.estimator):
            fit = better_fit(fit, fit_split(fit.setting, small, rows, worker))
        small = fit if fit.sound else small
        out.append(fit)
    return out


def fit_split(setting: Setting, small: Fitted, rows: Rows, worker: Worker) -> Fitted:
    """A fit that starts from a smaller mixture alone; without a model if that gives no start."""
    began = time.perf_counter()
    try:
        floor = small.model.lower_bound_
        model = fit_from(worker.ready(setting.estimator), small.model, rows, floor)
    except ValueError as failure:  # a matrix that is singular in float32 cannot be prescribed
        return Fitted(setting, None, time.perf_counter() - began, "split", failure)
    # the start is ours, not a setting of the user's
    own = setting.estimator.get_params(deep=False)
    model.set_params(**{name: own[name] for name in (*PRESCRIBED, "n_jobs", "verbose")})
    return Fitted(setting, model, time.perf_counter() - began, "split")


def better_fit(one: Fitted, other: Fitted) -> Fitted:
    """The better of two fits of a setting, the first of equals, with the time that both took."""
    if one.model is None:
        chosen = one if other.model is None else other
    else:
        chosen = other if other.model is not None and better(other.model, one.model) else one
    return replace(chosen, seconds=one.seconds + other.seconds)


def fit_from(estimator: Any, small: Any, rows: Rows, floor: float) -> Any:
    """A fit that starts from a mixture with fewer components, some of them split.

    If even the best of these collapses or ends below ``floor``, the likelihood of ``small``, the
    halves are left almost together, from where the likelihood can only rise.
    """
    size = estimator.n_components
    starts = list(split_starts(small, size))
    if len(starts) > 1:
        short = {"max_iter": TRIAL_STEPS, "verbose": 0}
        trials = [_fit_rows(clone(estimator).set_params(**short, **s), rows) for s in starts]
        starts = [starts[max(range(len(trials)), key=lambda i: trials[i].lower_bound_)]]
    model = _fit_rows(clone(estimator).set_params(**starts[0]), rows)
    if model.lower_bound_ < floor or is_degenerate(model):
        (near,) = split_starts(small, size, far=False)
        other = _fit_rows(clone(estimator).set_params(**near), rows)
        model = other if better(other, model) else model
    return model


def better(model: Any, than: Any) -> bool:
    """Whether a fit is to be preferred to another of the same setting."""
    if is_degenerate(model) != is_degenerate(than):
        return is_degenerate(than)
    return bool(model.lower_bound_ > than.lower_bound_)


# ------------------------------------------------ the numbers by which fits are compared


def measure(fit: Fitted, rows: Rows, n_effective: float | None) -> Fitted:
    """With the numbers by which it is compared, which may cost a pass over the rows."""
    if fit.model is None:
        return fit
    try:
        return replace(fit, facts=collect_facts(fit.model, rows, n_effective))
    except ValueError as failure:
        return replace(fit, error=failure)


def is_variational(model: Any) -> bool:
    """Whether the objective of a fit bounds the evidence: a likelihood does not."""
    params = model.get_params(deep=False)
    return params.get("inference") == "vb" or "weight_concentration_prior_type" in params


def is_by_likelihood(model: Any) -> bool:
    """Whether a fit is at a maximum of the likelihood, or of one with a prior beside it."""
    params = model.get_params(deep=False)
    return params.get("inference", "em") == "em" and not is_variational(model)


def collect_facts(model: Any, rows: Rows, n_effective: float | None = None) -> dict[str, float]:
    """Likelihood and criteria of the rows that were fitted, NaN for what a model does not have.

    With priors the likelihood is that of the density with parameters at their point.
    """
    if learns_from_y(model):
        found = _compute_supervised(model, n_effective)
    elif hasattr(model, "_totals"):
        found = _compute_criteria(model, rows, n_effective)
    else:
        found = _ask_criteria(model)
    return {**found, "bound": _compute_bound(model) if is_variational(model) else math.nan}


def _compute_criteria(model: Any, rows: Rows, n_effective: float | None) -> dict[str, float]:
    """All in one pass, or in none where the fit has kept its sums."""
    kept = getattr(model, "_total", None) is not None
    totals = model._totals(None) if kept else model._totals(rows.X, rows.weight)
    total, weight, entropy = effective_totals(totals, n_effective)
    free = float(model._n_parameters())
    bic = -2 * total + free * math.log(weight)
    return {
        "log_likelihood": total,
        "n_parameters": free,
        "bic": bic,
        "aic": -2 * total + 2 * free,
        "icl": bic + 2 * entropy if hasattr(model, "icl") else math.nan,
    }


def _compute_supervised(model: Any, n_effective: float | None) -> dict[str, float]:
    """Of rows with their outputs, from the sums of the fit; NaN where the objective is not a
    likelihood."""
    found = {name: math.nan for name in NUMBERS if name != "bound"}
    if model._total is None:
        return found
    total, weight, _ = effective_totals(model._total, n_effective)
    found["log_likelihood"] = total
    try:
        free = float(model._n_parameters())
    except ValueError:  # more than two classes, each against the rest
        return found
    found["n_parameters"] = free
    if hasattr(model, "bic"):
        found["bic"] = -2 * total + free * math.log(weight)
        found["aic"] = -2 * total + 2 * free
    return found


def _ask_criteria(model: Any) -> dict[str, float]:
    free = float(model._n_parameters()) if hasattr(model, "_n_parameters") else math.nan
    names = ("bic", "aic", "icl")
    found = {n: float(getattr(model, n)()) if hasattr(model, n) else math.nan for n in names}
    return {"log_likelihood": free - found["aic"] / 2, "n_parameters": free, **found}


def _compute_bound(model: Any) -> float:
    """The bound for all rows, and for all the numberings of components that are as good as ours.

    Components without rows are alike, and sticks have an order: they are not counted.
    """
    bound, size = float(model.evidence_bound_), int(model.n_components)
    if not _is_exchangeable(model):
        return bound
    return bound + math.lgamma(size + 1) - math.lgamma(size - model.effective_components_ + 1)


def _is_exchangeable(model: Any) -> bool:
    params = model.get_params(deep=False)
    kind = params.get("weight_concentration_prior_type", params.get("weights"))
    return isinstance(kind, str) and kind in ("auto", "dirichlet", "ml", "dirichlet_distribution")


# ------------------------------------------------ held-out rows


def hold_out(
    fits: list[Fitted], rows: Rows, divided: list[tuple[Array, Array]], worker: Worker
) -> list[Fitted]:
    """With the scores of rows that are held out from fits of the same settings."""
    done = [fit for fit in fits if fit.model is not None]
    tasks = ((fit, rows, fold, worker) for fit in done for fold in divided)
    scores: Iterator[_Held | Exception] = worker.run(_score_fold, tasks)
    out: list[Fitted] = []
    for fit in fits:
        if fit.model is not None:
            fit = _add_scores(fit, [next(scores) for _ in divided])
            worker.say(f"held-out log-density per row {fit.held_out[0]:.6g}: {describe_fit(fit)}")
        out.append(fit)
    return out


class _Held(NamedTuple):
    """Of held-out rows: log-densities, and losses of what was predicted of them."""

    density: Scores
    losses: dict[str, Scores]


def _score_fold(
    fit: Fitted, rows: Rows, fold: tuple[Any, Any], worker: Worker
) -> _Held | Exception:
    """Scores of the rows that are held out from a fit to the others."""
    train, test = fold
    try:
        model = _fit_rows(worker.ready(fit.setting.estimator), rows.part(train))
        held = rows.part(test)
        losses = score_outputs(model, held) if learns_from_y(model) else {}
        return _Held(score_rows(model, held), losses)
    except Exception as failure:
        return failure


def _add_scores(fit: Fitted, scores: list[_Held | Exception]) -> Fitted:
    """A fit with the mean score of its folds, or the first failure of one."""
    failures = [s for s in scores if isinstance(s, Exception)]
    if failures:
        return replace(fit, error=failures[0])
    held = [s for s in scores if isinstance(s, _Held)]
    names = [] if not held else list(held[0].losses)
    losses = {name: mean_and_error(s.losses[name] for s in held) for name in names}
    return replace(fit, held_out=mean_and_error(s.density for s in held), losses=losses)
