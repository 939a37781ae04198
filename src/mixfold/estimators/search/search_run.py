"""The stages of a search: every fit, growing from smaller ones, rows held out, tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mixfold.contracts import Array
from mixfold.estimators.mixtures.bootstrap import LikelihoodRatioTest, bootstrap_lrt
from mixfold.estimators.search.search_fits import (
    Fitted,
    Worker,
    fit_setting,
    grow,
    measured,
    score_fold,
    with_scores,
)
from mixfold.estimators.search.search_grid import Setting
from mixfold.estimators.search.search_rows import Rows

# a p-value above this ends a sequence of tests
LEVEL = 0.05


def fit_all(found: list[Setting], rows: Rows, worker: Worker, split: bool) -> list[Fitted]:
    """Every setting fitted to all rows, in order; with ``split`` also from smaller mixtures."""
    fits: list[Fitted] = []
    for fit in worker.run(fit_setting, ((setting, rows, worker) for setting in found)):
        fits.append(fit)
        worker.say(f"fit {len(fits)} of {len(found)}: {_line(fit)}")
    _raise_if_none(fits)
    if split:
        fits = _grown(fits, rows, worker)
    return list(worker.run(measured, ((fit, rows) for fit in fits)))


def _grown(fits: list[Fitted], rows: Rows, worker: Worker) -> list[Fitted]:
    groups: dict[int, list[Fitted]] = {}
    for fit in fits:
        groups.setdefault(fit.setting.group, []).append(fit)
    out: list[Fitted] = []
    for group in worker.run(grow, ((group, rows, worker) for group in groups.values())):
        out += group
        for fit in group:
            if fit.start == "split":
                worker.say(f"a better fit, from one with fewer components: {_line(fit)}")
    return out


def _raise_if_none(fits: list[Fitted]) -> None:
    """A search in which nothing could be fitted is an error, that of its first setting."""
    first = fits[0].error
    if first is None or any(fit.model is not None for fit in fits):
        return
    many = f"None of the {len(fits)} settings of the search could be fitted; the first: "
    if type(first) in (ValueError, TypeError):
        raise type(first)(f"{many}{first}") from first
    first.add_note(f"{many}see above")
    raise first


def hold_out(
    fits: list[Fitted], rows: Rows, divided: list[tuple[Array, Array]], worker: Worker
) -> list[Fitted]:
    """With the scores of rows that are held out from fits of the same settings."""
    done = [fit for fit in fits if fit.model is not None]
    tasks = ((fit, rows, fold, worker) for fit in done for fold in divided)
    scores = worker.run(score_fold, tasks)
    out: list[Fitted] = []
    for fit in fits:
        if fit.model is not None:
            fit = with_scores(fit, [next(scores) for _ in divided])
            worker.say(f"held-out log-density per row {fit.held_out[0]:.6g}: {_line(fit)}")
        out.append(fit)
    return out


def sequential_tests(
    fits: list[Fitted], best: int, rows: Rows, worker: Worker, n_bootstrap: int
) -> Iterator[tuple[int, LikelihoodRatioTest]]:
    """Tests of the kind of the best, each fit against the next smaller one, with its number."""
    kind, sound = fits[best].setting.group, fits[best].sound
    # the likelihood of a fit at the floor is not comparable to that of one that is not
    own = [
        i
        for i, fit in enumerate(fits)
        if fit.setting.group == kind and fit.model is not None and fit.sound == sound
    ]
    for small, large in pairwise(own):
        result = bootstrap_lrt(
            fits[small].model,
            fits[large].model,
            rows.X,
            n_bootstrap,
            worker.seed,
            sample_weight=rows.weight,
            n_jobs=worker.n_jobs,
        )
        sizes = fits[small].setting.n_components, fits[large].setting.n_components
        worker.say(f"test of {sizes[0]} against {sizes[1]} components: p = {result.p_value:.3g}")
        yield large, result
        if result.p_value > LEVEL:
            return


def _line(fit: Fitted) -> str:
    params = ", ".join(f"{k}={v}" for k, v in fit.setting.params.items())
    failed = f", failed: {fit.error}" if fit.error else ""
    return f"{fit.setting.name}({params}), {fit.seconds:.1f} s{failed}"
