"""Moves out of local optima: a model proposes parameters, kept if the objective rises.

A climb ends where no small step helps, perhaps with two components on one cluster or one on two.
Proposals (merged or split components) are climbed for a few steps each, and the first that ends
above is followed to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Pilot
from mixfold.engine.climb import Watcher, climb, visit
from mixfold.engine.state import Climb, Rules, Task

# steps that a proposal has to show what it is worth
TRIAL_STEPS = 30


class Movable(Protocol):
    """What a model offers beyond ``Model`` to leave local optima."""

    def moves(
        self, params: Any, stats: Any, pilot: Pilot, rng: np.random.Generator
    ) -> Sequence[Any]:
        """Parameters that may lead higher, the most promising first."""
        ...


@dataclass(frozen=True, slots=True)
class _Round:
    """A round of proposals: the one to follow, passes spent, and why it was cut short."""

    better: Climb | None
    n_passes: int
    reason: str = ""


def improve_by_moves(
    task: Task, done: Climb, rules: Rules, rounds: int, watch: Watcher | None
) -> Climb:
    """The climb, followed by moves while they help; at most ``rounds`` of them are kept.

    Ctrl-C or the deadline end it with the best so far.
    """
    for number in range(rounds):
        if done.reason != "converged":
            break
        try:
            tried = _round(task, done, rules, number)
        except KeyboardInterrupt:
            return replace(done, reason="interrupted")
        done = replace(done, n_passes=done.n_passes + tried.n_passes)
        if tried.reason:
            return replace(done, reason=tried.reason)
        if tried.better is None:
            break
        followed = climb(
            task,
            replace(tried.better, reason="", n_passes=0, proposal=None, points=()),
            rules,
            watch,
        )
        done = _join_climbs(done, followed)
    return done


def _round(task: Task, done: Climb, rules: Rules, number: int) -> _Round:
    """The first proposal that ends above, after a few steps."""
    assert task.pilot is not None
    rng = np.random.default_rng([task.seed % 2**63, number, 6])
    stats = visit(task, done.best, done.n_passes)
    n_passes = 1
    few = replace(rules, max_iter=TRIAL_STEPS, batch_size=None)
    for params in task.model.moves(done.best, stats, task.pilot, rng):  # type: ignore[attr-defined]
        trial = climb(task, Climb(params), few)
        n_passes += trial.n_passes
        if trial.reason in ("interrupted", "time_budget"):
            return _Round(None, n_passes, trial.reason)
        if trial.objective > done.objective + max(rules.tol, 1e-9) * done.weight:
            return _Round(trial, n_passes)
    return _Round(None, n_passes)


def _join_climbs(done: Climb, followed: Climb) -> Climb:
    """A climb and the one that a move led to; its first steps, still below, are left out."""
    above = tuple(value for value in followed.trace if value > done.objective)
    return replace(
        followed,
        n_passes=done.n_passes + followed.n_passes,
        trace=(*done.trace, *above),
        events=(*done.events, *followed.events),
        earlier=done.earlier,
    )
