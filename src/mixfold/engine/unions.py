"""Restarts that ended in different optima, merged: what each of them has found, in one fit.

A model proposes parameters made of several fits (``unions``). Each proposal is climbed, and one
that ends above the best fit takes its place and is a fit to be merged with the others in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mixfold.contracts import Pilot, record
from mixfold.engine.climb import climb
from mixfold.engine.state import Climb, Rules, Task, has_spikes, was_stopped

# rounds of proposals, and the steps after which one has to promise an end above the best fit
ROUNDS, TRIAL_STEPS = 4, 10
# fits whose objectives differ by less, per unit of weight, are one
SAME = 1e-6


class Unitable(Protocol):
    """What a model offers beyond ``Model`` to have its fits merged."""

    def unions(self, fits: Sequence[Any], pilot: Pilot) -> Iterator[Any]:
        """Parameters made of several fits, of which the first is the best."""
        ...


@record
@dataclass(frozen=True, slots=True)
class Ended:
    """What is kept of a restart until the last has ended: where it ended and how high."""

    params: Any
    objective: float


def keep_ended(ended: tuple[Ended, ...], done: Climb) -> tuple[Ended, ...]:
    """With one more restart, unless one has ended there before."""
    if any(abs(one.objective - done.objective) <= SAME * done.weight for one in ended):
        return ended
    return (*ended, Ended(done.best, done.objective))


def merge_climbs(
    task: Task, best: Climb, ended: tuple[Ended, ...], rules: Rules, watch: Callable[[Climb], None]
) -> Climb:
    """The best climb, or a higher one that began with components of several.

    Its passes are those of all that were tried, too. Ctrl-C or the deadline end it with the best
    so far.
    """
    n_passes = best.n_passes
    for _ in range(ROUNDS):
        found = best
        try:
            for params in _proposals(task, ended):
                trial = _try(task, params, best, rules, watch)
                n_passes += trial.n_passes
                if _is_better(trial, best, rules):
                    found = trial
                elif was_stopped(trial):
                    found = replace(best, reason=trial.reason)
                if found is not best:
                    break
        except KeyboardInterrupt:
            found = replace(best, reason="interrupted")
        if found is best or was_stopped(found):
            best = found
            break
        best, ended = found, keep_ended(ended, found)
    return replace(best, n_passes=n_passes)


def _proposals(task: Task, ended: tuple[Ended, ...]) -> Iterator[Any]:
    assert task.pilot is not None
    ranked = sorted(ended, key=lambda one: -one.objective)
    model: Any = task.model
    yield from model.unions([one.params for one in ranked], task.pilot)


def _try(
    task: Task, params: Any, best: Climb, rules: Rules, watch: Callable[[Climb], None]
) -> Climb:
    """A climb from a proposal, to its end if after a few steps that seems to be above the best."""
    trial = climb(task, Climb(params), replace(rules, batch_size=None), watch, TRIAL_STEPS)
    if not trial.reason and trial.objective + _prospect(trial) > best.objective:
        trial = climb(task, trial, rules, watch)
    return trial


def _prospect(trial: Climb) -> float:
    """What more steps of a climb may gain: after few of them the projection is often too high."""
    return max(min(trial.remaining, TRIAL_STEPS * (trial.trace[-1] - trial.trace[-2])), 0.0)


def _is_better(trial: Climb, best: Climb, rules: Rules) -> bool:
    """Whether it ended above, and not by a spike that the best does not have."""
    if has_spikes(trial) and not has_spikes(best):
        return False
    return trial.objective > best.objective + max(rules.tol, SAME) * best.weight
