"""The first plain steps of several starts, made together.

Most passes of a fit to a small table belong to starts that are given up after a few steps. A model
that offers ``step_together`` makes such a step for all of them at once. What a climb remembers for
acceleration is made of the statistics afterwards, of the few that go on: each is then in the state
in which ``climb`` would have left it, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Block, Context, Event, changed
from mixfold.engine.climb import remember
from mixfold.engine.state import Climb, Rules, Task
from mixfold.engine.stopping import fell, remaining_gain


@dataclass(frozen=True, slots=True)
class Step:
    """A point that was visited: parameters, statistics there, and where the plain step leads."""

    params: Any
    stats: Any
    image: Any
    objective: float


@dataclass(frozen=True, slots=True)
class Together:
    """Climbs after some steps, and the steps by the place of the climb; None where one has to be
    made by itself."""

    climbs: list[Climb | None]
    steps: list[list[Step]]

    def whole(self, task: Task, rules: Rules, place: int) -> Climb:
        """A climb with what it remembers of its points."""
        state = self.climbs[place]
        assert state is not None
        points: tuple[Any, ...] = ()
        for step in self.steps[place]:
            here = changed(
                state, params=step.params, trace=(step.objective,), points=points, proposal=None
            )
            points = remember(task.model, here, step.stats, step.image, rules)
        return changed(state, points=points)


def first_steps(task: Task, climbs: list[Climb], rules: Rules, passes: int) -> Together | None:
    """So many passes of each of several new climbs; None where they cannot be made together.

    A climb that would do anything but plain steps (which ends, falls, has something to tell) is
    left to be made by itself.
    """
    block = _only_block(task)
    step_together = getattr(task.model, "step_together", None)
    few = passes > min(rules.warm_up, rules.max_iter) or rules.deadline.has_passed
    if len(climbs) < 2 or few or block is None or step_together is None:
        return None
    if task.memory is not None or any(c.n_passes or c.trace for c in climbs):
        return None
    running = list(range(len(climbs)))
    params = [c.params for c in climbs]
    steps: list[list[Step]] = [[] for _ in climbs]
    for number in range(passes):
        rng = np.random.default_rng([task.seed % 2**63, number])
        context = Context(task.pilot, rng, number + 1)
        made = step_together([params[i] for i in running], block, context)
        if made is None:  # one that has to be visited with care keeps all others from it
            able = [i for i in running if step_together([params[i]], block, context) is not None]
            if not 1 < len(able) < len(running):
                return None
            running = able
            made = step_together([params[i] for i in running], block, context)
        going = []
        for i, (stats, update) in zip(running, made, strict=True):
            objective = task.model.objective(params[i], stats)
            before = [step.objective for step in steps[i]]
            if update is None or _ends_or_falls(before, objective, stats, task, rules):
                continue
            steps[i].append(Step(params[i], stats, update.params, objective))
            params[i] = update.params
            going.append(i)
        running = going
        if not running:
            break
    done = [_after(task, one, steps[i]) if i in running else None for i, one in enumerate(climbs)]
    return Together(done, steps)


def _only_block(task: Task) -> Block | None:
    """The rows, if they are one small block."""
    n_rows = task.source.n_samples
    if n_rows is None or not hasattr(task.model, "step_together"):
        return None
    blocks = task.source.blocks()
    first = next(blocks)
    return first if first.is_small and first.n_rows == n_rows else None


def _ends_or_falls(
    before: list[float], objective: float, stats: Any, task: Task, rules: Rules
) -> bool:
    if not np.isfinite(objective):
        return True
    if not before:
        return False
    gain = objective - before[-1]
    return gain <= rules.tol * task.model.total_weight(stats) or fell(
        before[-1], objective, task.single
    )


def _after(task: Task, start: Climb, steps: list[Step]) -> Climb:
    """The climb after these steps, without points."""
    trace, last = tuple(step.objective for step in steps), steps[-1]
    events: tuple[Event, ...] = ()
    return changed(
        start,
        params=last.image,
        best=last.params,
        image=last.image,
        n_iter=len(steps),
        n_passes=len(steps),
        weight=task.model.total_weight(last.stats),
        entropy=task.model.entropy(last.stats),
        trace=trace,
        plain=len(steps),
        remaining=remaining_gain(trace),
        events=events,
    )
