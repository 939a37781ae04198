"""Laws of fits: the objective rises, and a fit can be repeated."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.testing.case import Case
from mixfold.testing.compare import require, require_same
from mixfold.testing.shrinking import shrinks


@shrinks
def monotone(case: Case, n_steps: int = 25, slack: float | None = None) -> None:
    """No plain step lowers the objective beyond rounding, save after a repair that says so.

    ``slack`` is relative to the objective; by default ten times the tolerance of the case.
    """
    slack = 10 * case.rtol if slack is None else slack
    params, last = case.start(), -np.inf
    for step in range(n_steps):
        stats = case.stats(params)
        value = case.model.objective(params, stats)
        require(bool(np.isfinite(value)), "finite objective", f"{value} in step {step}")
        least = last - slack * (1 + abs(value))
        message = f"step {step} lowered the objective from {last:.12g} to {value:.12g}"
        require(value >= least, "monotone objective", message)
        update = case.update(params, stats, step + 1)
        params, last = update.params, value if update.monotone else -np.inf


@shrinks
def repeatable(case: Case) -> None:
    """The same seed gives the same bits: start, statistics, a whole fit on one or two threads."""
    require_same("repeatable start", case.start(), case.start())
    params = case.start()
    require_same("repeatable statistics", case.stats(params), case.stats(params))
    once, again = _fit_case(case, 1), _fit_case(case, 1)
    require_same("repeatable fit", once.params, again.params)
    require_same("repeatable fit", once.trace, again.trace, what="trace")
    # blocks are the same for any number of threads, and so is the tree that adds them
    threaded = _fit_case(case, 2)
    require_same("repeatable on threads", threaded.params, once.params)


@shrinks
def pure(case: Case) -> None:
    """A step leaves the table, the parameters and the statistics as they were."""
    params = case.start()
    X = case.X.copy()
    before = _copy_record(params)
    stats = case.stats(params)
    kept = _copy_record(stats)
    case.update(params, stats)
    case.model.coordinates(params)
    case.model.derivatives(params, stats)
    require_same("pure functions", params, before, what="params")
    require_same("pure functions", stats, kept, what="statistics")
    changed = (X != case.X) & ~((X != X) & (case.X != case.X))
    count = int(changed.sum())
    require(count == 0, "pure functions", f"{count} entries of the table changed")


def _copy_record(value: Any) -> Any:
    """The same record with arrays of its own."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if not is_dataclass(value) or isinstance(value, type):
        return value
    names = [field.name for field in fields(value) if field.init]
    return replace(value, **{name: _copy_record(getattr(value, name)) for name in names})


def _fit_case(case: Case, n_threads: int) -> Fit:
    source = open_source(case.X, weight=case.weight, y=case.y)
    plan = Plan(max_iter=10, n_candidates=2, seed=case.seed)
    return fit(case.model, source, ThreadExecutor(n_threads), plan)
