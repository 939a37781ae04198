"""The online schedule: a stochastic step after every batch of rows, in several passes.

For data of which a pass takes long: the parameters move many times within one. Each batch is
learned by stepwise EM (``engine/schedules.py``; Cappe and Moulines, 2009; for posteriors this is
stochastic variational inference, Hoffman et al., 2013).

- **Averages.** The last parameters of a pass know its last batches best: that is the noise of the
  learning rate, which fades only as fast as the rate does. From the second pass on the statistics
  of all its batches, each row once, replace the blend when it ends. (Polyak and Juditsky, 1992, do
  the same to the steps of stochastic approximation.)
- **The objective** at the end of a pass is estimated on a sample of rows that stays the same: from
  pass to pass it changes only because the parameters do. What the batches say while they are
  learned would not do, since a row is met when the parameters have half forgotten it, the less the
  smaller the rate is: such values rise as long as the rate falls. The last parameters are looked
  at with all rows; earlier values are moved along, as their differences are what is known.
- **The end** comes when the gain of all passes to come is projected to be less than ``tol``, as
  everywhere, in two passes in a row (a pass may be unlucky); or when the gain of a pass is within
  its sampling error: then other rows of the same kind might have lost by it, and the projection,
  a ratio of such gains, means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from mixfold.contracts import Array, Context, Source, record
from mixfold.engine.batches import BatchSource, mixed_batches, split_block, take_rows
from mixfold.engine.random import RowKeys
from mixfold.engine.schedules import Stepwise, learn_batch
from mixfold.engine.state import Climb, Rules, Task, add_events
from mixfold.engine.stopping import remaining_gain

# rows that are held at a time to be put in random order, and more if they have fewer entries
HELD, HELD_ENTRIES = 16384, 2**23
# rows of the pilot that the objective is estimated on: a share of all, within limits
SHARE, LEAST, MOST = 1 / 16, 512, 4096
# parts of them, whose gains tell how much a gain depends on the rows; standard errors of no gain
PARTS, ERRORS = 4, 3.0
# passes that a fit makes before it may be called converged
PASSES = 3
# apart from the random numbers of other draws that depend on the seed
_ORDER, _SAMPLE = 14, 15


@dataclass(frozen=True, slots=True)
class Online:
    """How a pass is made: step t weighs (offset + t)^-decay against what was learned before.

    ``shuffled`` rows come in random order, as far as ``held`` of them, or as many as have
    ``entries`` entries, are in memory at a time; otherwise in their own. ``total_weight`` is that
    of all rows that count, by default of all.
    """

    batch_size: int = 512
    decay: float = 0.7
    offset: float = 10.0
    shuffled: bool = True
    held: int = HELD
    entries: int = HELD_ENTRIES
    total_weight: float | None = None


@record
@dataclass(frozen=True, slots=True)
class OnlineMemo:
    """What an online fit remembers: the schedule, and where the pass under way stands.

    That is the sum and the weight of its batches so far, and their number. ``looks`` are the
    objectives of the parts of the sample after the last passes. ``cut`` passes were ended half way,
    and the last value of the trace is of no whole pass.
    """

    schedule: Stepwise
    looks: tuple[Array, ...] = ()
    total: Any = None
    weight: float = 0.0
    n_batches: int = 0
    cut: bool = False


def begin_online(task: Task, state: Climb, rules: Rules, online: Online) -> Climb:
    """Look at the start: its objective, and the statistics that the first batch is blended with.

    The start is known from the pilot, and so are they.
    """
    assert task.pilot is not None
    model: Any = task.model
    pilot = task.pilot.block
    rows = BatchSource(task.source, split_block(replace(pilot, start=0)))
    stats = _expect(task, state.params, rows)
    # where there are fewer rows, all of them are a step
    size = min(float(online.batch_size), _total_weight(task, online))
    schedule = Stepwise(decay=online.decay, delay=online.offset, batch_size=size)
    weight = model.row_weight(stats)
    if weight > 0:
        schedule = schedule.blend(model.additive(stats), weight)
    state = Climb(state.params, memo=OnlineMemo(schedule), events=state.events)
    return _look(task, state, rules, online)


def make_online_pass(task: Task, state: Climb, rules: Rules, online: Online) -> Climb:
    """A step for each batch of all rows; Ctrl-C and the deadline may end it half way."""
    memo: OnlineMemo = state.memo
    trace = state.trace[:-1] if memo.cut else state.trace
    state = replace(state, trace=trace, memo=replace(memo, cut=False))
    reason = ""
    for number, batch in enumerate(_batches(task, online, state.n_iter)):
        if number < state.memo.n_batches:
            continue  # learned before the fit was interrupted
        try:
            state = _learn(task, state, batch, online)
        except KeyboardInterrupt:
            reason = "interrupted"
        if rules.deadline.has_passed:
            reason = reason or "time_budget"
        if reason:
            break
    if reason:
        cut = replace(state, memo=replace(state.memo, cut=True))
        return replace(_look(task, cut, rules, online), reason=reason)
    state = replace(_average(task, state, online), n_iter=state.n_iter + 1)
    return _look(task, state, rules, online)


def _batches(task: Task, online: Online, n_iter: int) -> Any:
    """Those of a pass: the same ones each time it is begun."""
    rng = np.random.default_rng([task.seed % 2**63, n_iter, _ORDER]) if online.shuffled else None
    return mixed_batches(task.source, online.batch_size, online.held, rng, online.entries)


def _learn(task: Task, state: Climb, batch: Source, online: Online) -> Climb:
    memo: OnlineMemo = state.memo
    learned = learn_batch(
        task.model, state.params, memo.schedule, batch, task.executor,
        total_weight=_total_weight(task, online), seed=task.seed,
        step=state.n_iter * 2**32 + memo.n_batches,
    )  # fmt: skip
    model: Any = task.model
    weight = model.row_weight(learned.stats)
    if weight > 0:
        total = memo.total
        if state.n_iter > 0:
            stats = model.additive(learned.stats)
            total = stats if total is None else total + stats
        memo = replace(memo, schedule=learned.schedule, total=total, weight=memo.weight + weight)
    return replace(
        state,
        params=learned.params,
        memo=replace(memo, n_batches=memo.n_batches + 1),
        events=add_events(state.events, learned.events),
    )


def _average(task: Task, state: Climb, online: Online) -> Climb:
    """The pass has ended: what all its batches say, in place of the blend that forgets."""
    memo: OnlineMemo = state.memo
    done = OnlineMemo(memo.schedule, memo.looks)
    if memo.total is None:  # the first pass: its first batches knew little but the start
        return replace(state, memo=done)
    schedule = replace(memo.schedule, stats=memo.total.scale(1.0 / memo.weight))
    rng = np.random.default_rng([task.seed % 2**63, state.n_iter])
    # what steps by batches alone has done so
    context = Context(None, rng, state.n_iter + 1, state.events, batch=memo.total, rate=0.0)
    update = task.model.update(state.params, schedule.total(_total_weight(task, online)), context)
    return replace(
        state,
        params=update.params,
        memo=OnlineMemo(schedule, memo.looks),
        events=add_events(state.events, update.events),
    )


def _total_weight(task: Task, online: Online) -> float:
    assert task.pilot is not None
    return task.pilot.total_weight if online.total_weight is None else online.total_weight


# ------------------------------------------------ the objective


def _look(task: Task, state: Climb, rules: Rules, online: Online) -> Climb:
    """The objective at the parameters, and whether they are the last."""
    model: Any = task.model
    sample, all_rows = _sample(task)
    whole = _total_weight(task, online)
    visit = partial(model.expect, model.prepare(state.params), rng=RowKeys(task.seed, 0))
    parts = list(task.executor.map_rows(visit, sample))
    each = [model.objective(state.params, _scale_to(model, part, whole)) for part in parts]
    stats = reduce(lambda a, b: a + b, parts)
    # objectives are sums over rows and what depends on parameters alone: those of parts average
    objective = model.objective(state.params, stats) if all_rows else float(np.mean(each))
    stats = stats if all_rows else _scale_to(model, stats, whole)
    state = replace(
        state,
        best=state.params,
        trace=(*state.trace, objective),
        n_passes=state.n_iter + state.memo.cut,
        weight=model.total_weight(stats),
        entropy=model.entropy(stats),
    )
    if state.memo.cut:
        return state
    looks = (*state.memo.looks, np.array(each))[-3:]
    remaining = max(remaining_gain(state.trace), remaining_gain(state.trace[:-1]))
    state = replace(state, remaining=remaining, memo=replace(state.memo, looks=looks))
    state = replace(state, reason=_reason(state, rules))
    return state if all_rows or not state.reason else _look_at_all(task, state)


def _scale_to(model: Any, stats: Any, weight: float) -> Any:
    """Statistics of some rows as those of rows of this weight; none stay none."""
    rows = model.row_weight(stats)
    return stats.scale(weight / rows) if rows > 0 else stats


def _reason(state: Climb, rules: Rules) -> str:
    if state.n_iter >= PASSES and rules.tol > 0:
        gain = abs(state.trace[-1] - state.trace[-2])
        if state.remaining < rules.tol * state.weight or gain <= ERRORS * _error(state.memo.looks):
            return "converged"
    return "max_iter" if state.n_iter >= rules.max_iter else ""


def _error(looks: tuple[Array, ...]) -> float:
    """Standard error of the gain of a pass, from what parts of the sample gained in the last ones.

    With a single part nothing is known of it, and no gain is within it.
    """
    gains = np.diff(looks, axis=0)
    if gains.shape[1] < 2:
        return -np.inf
    return float(np.sqrt(gains.var(axis=1, ddof=1).mean() / gains.shape[1]))


def _look_at_all(task: Task, state: Climb) -> Climb:
    """The exact objective of the last parameters; estimates of earlier ones keep their distance."""
    model = task.model
    stats = _expect(task, state.params, task.source)
    objective, weight = model.objective(state.params, stats), model.total_weight(stats)
    per_unit = np.asarray(state.trace) / state.weight
    moved = (per_unit - per_unit[-1]) * weight + objective
    return replace(
        state, trace=tuple(moved.tolist()), weight=weight, entropy=model.entropy(stats),
        remaining=state.remaining / state.weight * weight, n_passes=state.n_passes + 1,
    )  # fmt: skip


def _sample(task: Task) -> tuple[Source, bool]:
    """Some rows of the pilot in parts, the same each time, and whether they are all rows there are.

    Parts are drawn, so that they differ by chance alone.
    """
    assert task.pilot is not None
    n_pilot, n_all = task.pilot.block.n_rows, task.pilot.total_rows
    size = min(n_pilot, int(np.clip(SHARE * n_all, LEAST, MOST)))
    rng = np.random.default_rng([task.seed % 2**63, _SAMPLE])
    rows = take_rows(task.pilot.block, rng.permutation(n_pilot)[:size])
    cuts = np.linspace(0, size, min(PARTS, size) + 1).astype(int)
    parts = [rows.part(int(a), int(b)) for a, b in pairwise(cuts)]
    return BatchSource(task.source, parts), size == n_all


def _expect(task: Task, params: Any, source: Source) -> Any:
    """Statistics of the rows of a source at these parameters."""
    model = task.model
    visit = partial(model.expect, model.prepare(params), rng=RowKeys(task.seed, 0))
    return task.executor.map_reduce(visit, source)
