"""The whole fit: pilot, starts, restarts, checkpoints. ``climb`` runs the passes of one start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Event, Executor, Model, Pilot, Source
from mixfold.engine.acceleration import Acceleration
from mixfold.engine.budget import Deadline
from mixfold.engine.checkpoints import Checkpoint, Progressed, going_on
from mixfold.engine.climb import climb
from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.engine.executors.row_memory import NotStored, open_memory
from mixfold.engine.moves import Moving, improve_by_moves
from mixfold.engine.online import Online
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.sources import open_source
from mixfold.engine.state import (
    Climb,
    Rules,
    Task,
    add_events,
    begin_next_stage,
    has_spikes,
    resume_climb,
    was_stopped,
)
from mixfold.engine.together import first_steps
from mixfold.engine.unions import keep_ended, merge_climbs

# Candidate starts race on the pilot: so many steps, after which so many go on
RACE = ((4, 6), (8, 3), (12, 2))
# passes of a start whatever max_iter is
FEWEST = 8
# Climbs whose objectives differ by less, per unit of weight, have met; so many of them, above all
# others, decide the race
SAME, DECIDED = 1e-7, 3
# A restart is better if its objective is, by more than this per unit of weight: rounding does not
# choose between two that have met
ROUNDING = 1e-12
# what the best one may have there before it meets all rows, or if it has met them already; how many
# are tried if it has spikes
PILOT_STEPS, WHOLE_STEPS, SETTLED = 40, 200, 8
# how often its components are rearranged, the race of the results, and what one of them has to gain
# per weight
REARRANGED, TRIALS, BETTER = 3, ((4, 2), (12, 1)), 1e-4


@dataclass(frozen=True, slots=True)
class Plan:
    """How a fit is run; ``moves`` out of local optima, ``batch_size`` rows between M steps.

    ``merge_starts`` makes one more fit of the components of all restarts.
    ``online`` makes stochastic steps, for data of which a pass takes long.
    """

    tol: float = 1e-6
    max_iter: int = 500
    n_init: int = 1
    n_candidates: int = 4
    merge_starts: bool = False
    acceleration: Acceleration | None = None
    time_budget: float | None = None
    pilot_size: int | None = None
    batch_size: int | None = None
    online: Online | None = None
    moves: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Fit:
    """The result: parameters, objective there, and how it came about."""

    params: Any
    objective: float
    weight: float
    entropy: float
    trace: Array
    n_iter: int
    n_passes: int
    reason: str
    remaining: float
    events: tuple[Event, ...]
    pilot: Pilot
    climb: Climb

    @property
    def sizes(self) -> tuple[int, ...]:
        """Components in use at each value of the trace; none of models that do not count them, and
        of a fit that goes on from a file of an earlier version."""
        found = self.climb.sizes
        return found[self.climb.earlier :] if len(found) == len(self.climb.trace) else ()

    @property
    def converged(self) -> bool:
        return self.reason == "converged"


def pilot_size(source: Source, n_components: int) -> int:
    """Rows of the pilot: all of a small table, 5 % of a large one, within a memory bound."""
    n = source.n_samples or 10**6
    size = int(np.clip(0.05 * n, 5000, 25000))
    within = 2**22 // max(1, source.n_features)
    # a component needs rows to start from, but wide rows of a sparse table become dense here
    return max(min(size, within), min(25 * n_components, 2 * within), n_components, 2)


def fit(
    model: Model[Any, Any, Any],
    source: Source,
    executor: Executor,
    plan: Plan,
    *,
    start: Any = None,
    earlier: Climb | None = None,
    pilot: Pilot | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit a model by restarts of climbs; ``start`` parameters replace them all.

    ``earlier`` is the climb that ``start`` comes from; on the same data it is continued.

    The best of the climbs is returned, also after Ctrl-C or at the end of the time budget.
    """
    saved = checkpoint.read() if checkpoint else None
    seed = saved.seed if saved else plan.seed
    if pilot is None:
        pilot = draw_pilot(source, executor, plan.pilot_size or 5000, seed)
    if checkpoint:
        checkpoint.check(saved, pilot)
    memory = open_memory(model, source, executor) if plan.online is None else None
    task = Task(model, source, executor, pilot, seed, memory)
    if checkpoint:
        checkpoint.pack = partial(_pack, task)
    job = _Job(task, plan, _rules(plan), start, earlier, checkpoint, progress or Progress(0))
    # M steps are many small factorisations, in which threads of BLAS only wait for each other
    with job.progress, single_threaded_blas(), going_on(checkpoint, saved):
        best = _restarts(job, saved or Progressed(seed, 0, None, None))
    return _result(best, pilot)


@dataclass(frozen=True, slots=True)
class _Job:
    """What stays the same through a fit."""

    task: Task
    plan: Plan
    rules: Rules
    start: Any
    earlier: Climb | None
    checkpoint: Checkpoint | None
    progress: Progress


def _rules(plan: Plan) -> Rules:
    deadline = Deadline.after(plan.time_budget)
    return Rules(plan.tol, plan.max_iter, plan.acceleration, deadline, batch_size=plan.batch_size,
                 online=plan.online)  # fmt: skip


def _restarts(job: _Job, progressed: Progressed) -> Climb:
    """The best of the climbs that are still to be made, and of those made already."""
    n_init = 1 if job.start is not None else job.plan.n_init
    while progressed.restart < n_init:
        try:
            progressed = _one_restart(job, progressed)
        except KeyboardInterrupt:
            if progressed.best is None:
                raise
            progressed = replace(progressed, best=replace(progressed.best, reason="interrupted"))
        if progressed.best is not None and was_stopped(progressed.best):
            break
    if job.plan.merge_starts:
        progressed = _merge_restarts(job, progressed)
    assert progressed.best is not None
    if job.checkpoint:
        job.checkpoint.finish(progressed)
    return progressed.best


def _merge_restarts(job: _Job, progressed: Progressed) -> Progressed:
    """The restarts merged into a better fit, if they have ended and there is one."""
    best = progressed.best
    if best is None or was_stopped(best) or len(progressed.ended) < 2:
        return progressed
    watch = partial(job.progress.report, progressed.restart)
    merged = merge_climbs(job.task, best, progressed.ended, job.rules, watch)
    if job.checkpoint and was_stopped(merged):
        job.checkpoint.write(progressed)  # a fit that goes on from there makes the same steps
    return replace(progressed, best=replace(merged, rows=None))


def _one_restart(job: _Job, progressed: Progressed) -> Progressed:
    restart, checkpoint = progressed.restart, job.checkpoint
    state = _note_lost_rows(progressed.climb) if progressed.climb else _start(job, restart)

    def watch(now: Climb, moving: Moving | None) -> None:
        job.progress.report(restart, now)
        if checkpoint:
            checkpoint.offer(replace(progressed, climb=now, moving=moving))

    moving = progressed.moving
    while True:
        done = under_way = climb(job.task, state, job.rules, partial(watch, moving=moving))
        if job.plan.moves:
            moved = improve_by_moves(job.task, done, job.rules, job.plan.moves, watch, moving)
            done, under_way, moving = moved.done, moved.under_way, moved.moving
        following = None if was_stopped(done) else begin_next_stage(job.task.model, done)
        if following is None:
            break
        state, moving = following, None
    if checkpoint and was_stopped(done):
        if was_stopped(under_way):
            under_way = replace(under_way, reason="")
        checkpoint.write(replace(progressed, climb=under_way, moving=moving))
    done = replace(done, rows=None)  # of this climb alone, and perhaps large
    ended = progressed.ended
    if job.plan.merge_starts and not was_stopped(done):
        ended = keep_ended(ended, done)
    best = progressed.best
    if best is None or done.objective > best.objective + ROUNDING * best.weight:
        best = done
    elif was_stopped(done):
        best = replace(best, reason=done.reason)
    return replace(progressed, restart=restart + 1, best=best, climb=None, moving=None, ended=ended)


def _pack(task: Task, progressed: Progressed) -> Progressed:
    """As a file can hold it: what is known of the rows may lie elsewhere, or be too much."""
    if task.memory is None or progressed.climb is None:
        return progressed
    rows = task.memory.store(progressed.climb.rows)
    return replace(progressed, climb=replace(progressed.climb, rows=rows))


def _note_lost_rows(stored: Climb) -> Climb:
    """A stored climb; an event if what was known of the rows is not there."""
    if not isinstance(stored.rows, NotStored):
        return stored
    event = stored.rows.event(stored.n_iter)
    return replace(stored, rows=None, events=add_events(stored.events, (event,)))


def _start(job: _Job, restart: int) -> Climb:
    if job.start is not None:
        return resume_climb(job.start, job.earlier)
    return choose_start(job.task, job.plan, job.rules, restart)


def choose_start(task: Task, plan: Plan, rules: Rules, restart: int) -> Climb:
    """Several starts that race on the pilot; the best of them, after some steps of its own there.

    A start whose components hit the variance floor is taken only if all do: a spike on a few rows
    has a high likelihood and no meaning.
    """
    assert task.pilot is not None
    rng = np.random.default_rng([task.seed % 2**63, restart, 1])
    first = restart * plan.n_candidates
    if plan.n_candidates == 1:
        return Climb(task.model.initialise(task.pilot, rng, first))
    block = task.pilot.block
    source = open_source(block.X, weight=block.weight, y=block.y)
    small = replace(task, source=source, memory=open_memory(task.model, source, task.executor))
    rules = replace(rules, batch_size=None, online=None)
    climbs = [
        Climb(task.model.initialise(task.pilot, rng, attempt))
        for attempt in range(first, first + plan.n_candidates)
    ]
    chosen = _settle(small, _race(small, climbs, rules, RACE), rules)
    chosen = _rearrange(small, chosen, rules, rng)
    # what was dropped on the way stays dropped; floors and falls will show again
    dropped = tuple(e for e in chosen.events if e.kind == "drop")
    return Climb(chosen.best, events=dropped, length=chosen.length)


def _race(
    task: Task, climbs: list[Climb], rules: Rules, rounds: tuple[tuple[int, int], ...]
) -> list[Climb]:
    """Several climbs, best first: all make a few steps, the best of them some more, and so on.

    Those that were left behind come after the others."""
    behind: list[Climb] = []
    for passes, survivors in rounds:
        climbs, complete = _make_passes(task, climbs, rules, passes)
        groups = _group_equal(climbs)
        best = [group[0] for group in groups]
        best, behind = best[:survivors], best[survivors:] + behind
        ahead = {id(c): complete(c) for c in best}
        climbs = [ahead[id(c)] for c in climbs if id(c) in ahead]
        best = [ahead[id(c)] for c in best]
        if len(best) == 1 or len(groups[0]) >= DECIDED:
            break
    return best + behind


def _make_passes(
    task: Task, climbs: list[Climb], rules: Rules, passes: int
) -> tuple[list[Climb], Callable[[Climb], Climb]]:
    """Each climb after some more passes, and what makes one that goes on whole: a climb that was
    made together with others lacks what it remembers."""
    together = first_steps(task, climbs, rules, passes)
    if together is None:
        return [_follow(task, c, rules, passes) for c in climbs], lambda climb: climb
    done = [
        _follow(task, c, rules, passes) if made is None else made
        for c, made in zip(climbs, together.climbs, strict=True)
    ]
    places = {id(c): i for i, c in enumerate(together.climbs) if c is not None}

    def complete(climb: Climb) -> Climb:
        place = places.get(id(climb))
        return climb if place is None else together.whole(task, rules, place)

    return done, complete


def _group_equal(climbs: list[Climb]) -> list[list[Climb]]:
    """The climbs by their objective, best first and those with spikes last, in groups of those
    that have met, with equal objectives. In a group the order is that of the starts, so that
    rounding does not choose between them."""
    order = sorted(
        range(len(climbs)),
        key=lambda i: (not has_spikes(climbs[i]), climbs[i].objective),
        reverse=True,
    )
    groups: list[list[int]] = []
    for i in order:
        if not groups or not _have_met(climbs[groups[-1][0]], climbs[i]):
            groups.append([])
        groups[-1].append(i)
    return [[climbs[i] for i in sorted(group)] for group in groups]


def _have_met(one: Climb, other: Climb) -> bool:
    near = abs(one.objective - other.objective) <= SAME * one.weight
    return near and has_spikes(one) == has_spikes(other)


def _settle(task: Task, ranked: list[Climb], rules: Rules) -> Climb:
    """The first climb that goes on without ending in a spike, or the best of some.

    It goes on for a while, or to its end where the pilot has all rows: a climb that seems to have
    ended may still find its way to a spike."""
    assert task.pilot is not None
    steps = PILOT_STEPS
    if task.pilot.block.n_rows == task.pilot.total_rows:
        steps = WHOLE_STEPS
    else:
        rules = replace(rules, tol=max(rules.tol, 1e-4))
    tried: list[Climb] = []
    for one in ranked[:SETTLED]:
        tried.append(_follow(task, one, rules, steps))
        if not has_spikes(tried[-1]):
            return tried[-1]
    return _group_equal(tried)[0][0]


def _rearrange(task: Task, chosen: Climb, rules: Rules, rng: np.random.Generator) -> Climb:
    """A climb, or a better one that begins with its components merged and split."""
    propose = getattr(task.model, "rearrangements", None)
    if propose is None or task.pilot is None:
        return chosen
    for _ in range(REARRANGED):
        trials = [Climb(params) for params in propose(chosen.best, task.pilot, rng)]
        if not trials:
            break
        ranked = _race(task, trials, rules, TRIALS)
        if not _is_better(ranked[0], chosen):
            break
        chosen = _settle(task, ranked[:1], rules)
    return chosen


def _is_better(one: Climb, other: Climb) -> bool:
    if has_spikes(one) != has_spikes(other):
        return has_spikes(other)
    return one.objective > other.objective + BETTER * one.weight


def _follow(task: Task, state: Climb, rules: Rules, passes: int) -> Climb:
    """The climb after some more passes; all of them together are no more than max_iter, but a few
    that starts are compared after."""
    passes = min(passes, max(rules.max_iter, FEWEST) - state.n_passes)
    done = climb(task, state, replace(rules, max_iter=10**9), max_passes=passes)
    if done.reason == "interrupted":  # a Ctrl-C among the candidates is meant for the fit
        raise KeyboardInterrupt
    return done


def _result(best: Climb, pilot: Pilot) -> Fit:
    trace = np.array(best.trace[best.earlier :])
    return Fit(
        best.best, best.objective, best.weight, best.entropy, trace, len(trace) - 1, best.n_passes,
        best.reason, best.remaining, best.events, pilot, best,
    )  # fmt: skip
