"""Moves out of local optima: a model proposes parameters, kept if the objective rises.

A climb ends where no small step helps, perhaps with two components on one cluster or one on two.
Proposals (merged or split components) are climbed for a few steps each, and the first that ends
above is followed to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Pilot, record
from mixfold.engine.climb import climb, visit
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


@record
@dataclass(frozen=True, slots=True)
class Moving:
    """A move that is being followed: the climb before it, and its number."""

    before: Climb
    number: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The climb after all moves, and what a fit goes on from that is stopped here.

    That is the climb under way (or the last one, if there is none), and the move that it follows.
    """

    done: Climb
    under_way: Climb
    moving: Moving | None


@dataclass(frozen=True, slots=True)
class _Round:
    """A round of proposals: the one to follow, passes spent, and why it was cut short."""

    better: Climb | None
    n_passes: int
    reason: str = ""


MoveWatcher = Callable[[Climb, Moving | None], None]


def improve_by_moves(
    task: Task,
    climbed: Climb,
    rules: Rules,
    rounds: int,
    watch: MoveWatcher | None = None,
    moving: Moving | None = None,
) -> Moved:
    """The climb, followed by moves while they help; at most ``rounds`` of them are kept.

    ``moving`` is the move that ``climbed`` has followed, if a fit goes on within them. Ctrl-C or
    the deadline end it with the best so far.
    """
    done, first = climbed, 0
    if moving is not None:
        done, first = _join_climbs(moving.before, climbed), moving.number + 1
    for number in range(first, rounds):
        if done.reason != "converged":
            break
        try:
            tried = _round(task, done, rules, number)
        except KeyboardInterrupt:
            return Moved(replace(done, reason="interrupted"), climbed, moving)
        if tried.reason:
            spent = replace(done, n_passes=done.n_passes + tried.n_passes, reason=tried.reason)
            return Moved(spent, climbed, moving)
        done = replace(done, n_passes=done.n_passes + tried.n_passes)
        if tried.better is None:
            break
        moving = Moving(replace(done, rows=None), number)
        begun = replace(tried.better, reason="", n_passes=0, proposal=None, points=())
        see = None if watch is None else partial(_watch_move, watch, moving)
        climbed = climb(task, begun, rules, see)
        done = _join_climbs(done, climbed)
    return Moved(done, climbed, moving)


def _watch_move(watch: MoveWatcher, moving: Moving, now: Climb) -> None:
    watch(now, moving)


def _round(task: Task, done: Climb, rules: Rules, number: int) -> _Round:
    """The first proposal that ends above, after a few steps."""
    assert task.pilot is not None
    rng = np.random.default_rng([task.seed % 2**63, number, 6])
    stats = visit(task, done.best, done.n_passes, done.rows)
    n_passes = 1
    few = replace(rules, max_iter=TRIAL_STEPS, batch_size=None)
    for params in task.model.moves(done.best, stats, task.pilot, rng):  # type: ignore[attr-defined]
        trial = climb(task, Climb(params, rows=done.rows), few)
        n_passes += trial.n_passes
        if trial.reason in ("interrupted", "time_budget"):
            return _Round(None, n_passes, trial.reason)
        if trial.objective > done.objective + max(rules.tol, 1e-9) * done.weight:
            return _Round(trial, n_passes)
    return _Round(None, n_passes)


def _join_climbs(done: Climb, followed: Climb) -> Climb:
    """A climb and the one that a move led to; its first steps, still below, are left out."""
    above = tuple(value for value in followed.trace if value > done.objective)
    sizes = zip(followed.trace, followed.sizes, strict=False)  # there are none of some models
    return replace(
        followed,
        n_passes=done.n_passes + followed.n_passes,
        trace=(*done.trace, *above),
        sizes=(*done.sizes, *(size for value, size in sizes if value > done.objective)),
        events=(*done.events, *followed.events),
        earlier=done.earlier,
    )
