"""One climb of the objective: the only place where passes over the data follow each other.

A ``Climb`` is the whole state between two passes, as a value: it can be stored, and a climb
that goes on from a stored state ends in the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Context, Event, Model, Update, changed
from mixfold.engine.acceleration import Failure, Point
from mixfold.engine.memoised import Memo, context_of, lap
from mixfold.engine.online import OnlineMemo, begin_online, make_online_pass
from mixfold.engine.random import LateGenerator, RowKeys
from mixfold.engine.state import (
    Climb,
    Rules,
    Task,
    add_events,
    add_step_events,
    forget_climb_of_other_data,
)
from mixfold.engine.stopping import STEPS_TOGETHER, fell, remaining_gain

# extrapolations, or plain steps in a row, before a fit may be called converged
MIN_TRIES, MIN_PLAIN = 4, 7
# what the points of an extrapolation may take
POINTS_BYTES = 2**27
# plain steps after an extrapolation rule has given up: 1, 2, 4, ... and at most this many
LONGEST_REST = 32
# how the length of tentative steps changes after one that lowered the objective and after one that
# did not, and the length below which the model is told that none gains
SHORTEN, LENGTHEN, SHORTEST = 0.5, 1 / 0.7, 1e-9

Watcher = Callable[[Climb], None]


def climb(
    task: Task,
    state: Climb,
    rules: Rules,
    watch: Watcher | None = None,
    max_passes: int | None = None,
) -> Climb:
    """Go on from ``state`` until a rule says stop; ``best`` then holds the result.

    After ``max_passes`` it has not ended (``reason`` is empty) and can be gone on with as it is. A
    ``KeyboardInterrupt`` ends the climb with what it has, once there is anything.
    """
    last = None if max_passes is None else state.n_passes + max_passes
    while not state.reason and (last is None or state.n_passes < last):
        try:
            state = _pass(task, state, rules)
            if not state.reason and rules.deadline.has_passed:
                # only now: the next point is chosen, so that a stored climb can go on
                state = changed(state, reason="time_budget")
            if watch is not None:
                watch(state)
        except KeyboardInterrupt:
            if state.best is None:
                raise
            state = changed(state, reason=state.reason or "interrupted")
    return state


def _pass(task: Task, state: Climb, rules: Rules) -> Climb:
    model = task.model
    if rules.online is not None:
        known = isinstance(state.memo, OnlineMemo)
        make = make_online_pass if known else begin_online
        return make(task, state, rules, rules.online)
    if rules.batch_size is not None:
        return _lap(task, state, rules, rules.batch_size)
    stats = visit(task, state.params, state.n_passes, state.rows)
    objective = model.objective(state.params, stats)
    tries = state.tries + (state.proposal is not None)
    state = changed(
        state, n_passes=state.n_passes + 1, tries=tries, weight=model.total_weight(stats)
    )
    if state.proposal is not None and not objective > state.objective:
        failure = Failure(state.proposal.step, objective)
        return _step(task, changed(state, failures=(*state.failures, failure)), rules)
    if _is_on_trial(state) and not objective >= state.objective:
        return _take_back(task, state)
    _check_finite(objective, state)
    return _accept(task, state, stats, objective, rules)


def visit(task: Task, params: Any, n_passes: int, rows: Any = None) -> Any:
    """Statistics of all rows at these parameters: one pass.

    ``rows`` is what an earlier pass has kept of them, for models that remember it.
    """
    reading = task.model.prepare(params)
    step = partial(task.model.expect, reading, rng=RowKeys(task.seed, n_passes))
    if task.memory is None:
        return task.executor.map_reduce(step, task.source)
    task.memory.resume(rows)
    return task.memory.map_reduce(step, task.source)


def _lap(task: Task, state: Climb, rules: Rules, size: int) -> Climb:
    """A pass of the memoised schedule: the parameters move while it goes on."""
    context = context_of(task, state.n_passes)
    memo = state.memo or Memo()
    if task.memory is not None:
        task.memory.resume(state.rows)
    params, stats, memo = lap(task, state.params, memo, size, state.n_passes, context)
    objective = task.model.free_energy(params, stats)  # type: ignore[attr-defined]
    state = changed(state, n_passes=state.n_passes + 1, weight=task.model.total_weight(stats))
    _check_finite(objective, state)
    return _accept(task, changed(state, params=params, memo=memo), stats, objective, rules)


def _check_finite(objective: float, state: Climb) -> None:
    if not np.isfinite(objective):
        raise FloatingPointError(
            f"the objective became {objective} in iteration {state.n_iter}. The data may hold "
            "values too large for their dtype (rescale them or use float64), or a row has density "
            "zero under every component"
        )


def _accept(task: Task, state: Climb, stats: Any, objective: float, rules: Rules) -> Climb:
    """The point just visited becomes the best; stop there, or choose the next."""
    state = _accept_rows(task, forget_climb_of_other_data(state, objective))
    if _is_on_trial(state):
        state = changed(state, length=LENGTHEN * state.length or 1.0)
    events = add_events(state.events, _falls(state, objective, task.single))
    plain, jump = state.plain + 1, state.jump
    if state.proposal is not None:
        plain, jump = 1, objective - state.objective
    trace = (*state.trace, objective)
    counted = getattr(task.model, "components_in_use", None)
    state = changed(
        state,
        best=state.params,
        trace=trace,
        sizes=() if counted is None else (*state.sizes, counted(stats)),
        plain=plain,
        jump=jump,
        events=events,
        failures=(),
        stats=None,
        entropy=task.model.entropy(stats),
        remaining=remaining_gain(trace[-plain:], state.tentative),
    )
    reason = _reason(state, rules)
    if reason:
        return changed(state, reason=reason)
    update = _m_step(task, state, stats, state.n_iter)
    state = changed(
        state,
        image=update.params,
        events=add_step_events(state.events, update.events, tentative=update.length is not None),
        points=remember(task.model, state, stats, update.params, rules),
        **_trial(update, state, stats),
    )
    if update.params is state.params:  # the model says so: a fixed point, there is no next
        return changed(state, remaining=0.0, reason="converged")
    if not update.monotone:  # a repair: what came before says nothing about what comes now
        state = changed(state, points=(), plain=0)
    return _step(task, state, rules)


def _accept_rows(task: Task, state: Climb) -> Climb:
    """With what the pass has kept of each row; before, it counted for nothing."""
    if task.memory is None:
        return state
    task.memory.accept()
    events = add_events(state.events, task.memory.take_events())
    return changed(state, rows=task.memory.state, events=events)


def _m_step(task: Task, state: Climb, stats: Any, n_iter: int) -> Update[Any]:
    """The plain step from ``best``, which is iteration ``n_iter``, of the length that is due."""
    rng: Any = LateGenerator(task.seed % 2**63, n_iter)
    rows = None if task.memory is None or state.memo is not None else task.memory.parts()
    context = Context(task.pilot, rng, n_iter + 1, state.events, length=state.length, rows=rows)
    return task.model.update(state.best, stats, context)


def _trial(update: Update[Any], state: Climb, stats: Any) -> dict[str, Any]:
    """What is remembered of a step in case that it has to be taken back."""
    if update.length is None:
        return {"tentative": False, "stats": None, "length": state.length or 1.0}
    return {"tentative": True, "stats": stats, "length": update.length}


def _is_on_trial(state: Climb) -> bool:
    """Whether the point to be visited is a tentative step from ``best``."""
    return state.stats is not None and state.proposal is None


def _take_back(task: Task, state: Climb) -> Climb:
    """After a tentative step that lowered the objective: a shorter one from the same point."""
    length = SHORTEN * state.length
    state = changed(state, length=length if length >= SHORTEST else 0.0)
    update = _m_step(task, state, state.stats, state.n_iter - 1)
    state = changed(
        state,
        params=update.params,
        image=update.params,
        events=add_step_events(state.events, update.events, tentative=True),
        points=(),
        **_trial(update, state, state.stats),
    )
    if update.params is state.best:
        return changed(state, n_iter=state.n_iter - 1, remaining=0.0, reason="converged")
    return state if update.monotone else changed(state, plain=0)


def _falls(state: Climb, objective: float, single: bool) -> tuple[Event, ...]:
    """The event of a fall; plain == 0 follows a repair, which may lower the objective."""
    if not (state.trace and state.plain and fell(state.objective, objective, single)):
        return ()
    message = f"the objective fell from {state.objective:.10g} to {objective:.10g}"
    return (Event("fall", message, state.n_iter),)


def _reason(state: Climb, rules: Rules) -> str:
    if state.remaining < rules.tol * state.weight and _projection_is_reliable(
        state, rules
    ):  # never with tol = 0
        return "converged"
    return "max_iter" if state.n_iter >= rules.max_iter else ""


def _projection_is_reliable(state: Climb, rules: Rules) -> bool:
    """Whether the projection can be believed.

    The first plain steps gain by the fast directions and their rate says nothing of the slow
    ones. Believe it after some extrapolations, which go along those, or after a run of plain
    steps, or when a step gains so little that what is left could only come at a rate of 0.999.
    """
    last_gain = state.trace[-1] - state.trace[-2]
    tiny = last_gain < 1e-3 * rules.tol * state.weight
    return tiny or _extrapolation_is_exhausted(state, rules) or state.plain > MIN_PLAIN


def _extrapolation_is_exhausted(state: Climb, rules: Rules) -> bool:
    """Whether extrapolations were tried and the last that was kept gained next to nothing."""
    return state.tries >= MIN_TRIES and state.jump <= rules.tol * state.weight


def remember(
    model: Model[Any, Any, Any], state: Climb, stats: Any, image: Any, rules: Rules
) -> tuple[Point, ...]:
    """What acceleration remembers once the point of ``state`` has been visited."""
    if rules.acceleration is None:
        return ()
    gradient, metric = model.derivatives(state.params, stats) or (None, None)
    here = Point(
        model.coordinates(state.params),
        model.coordinates(image),
        state.objective,
        state.proposal is None,
        gradient,
        metric,
    )
    # only the metric of the last point is asked for, and a large model affords fewer points
    older = tuple(p if p.metric is None else changed(p, metric=None) for p in state.points)
    affordable = POINTS_BYTES // (3 * here.x.nbytes)
    keep = min(rules.acceleration.memory, affordable)
    return (*older, here)[-keep:] if affordable > 1 else ()


def _step(task: Task, state: Climb, rules: Rules) -> Climb:
    """Choose the point to visit next from ``best``: an extrapolation, or the plain step."""
    n_iter = state.n_iter if state.failures else state.n_iter + 1
    proposal = None
    if rules.acceleration is not None and state.points and not _checking(state, rules):
        proposal = rules.acceleration.propose(state.points, state.failures)
    params = None
    if proposal is not None and np.isfinite(proposal.x).all():
        params = task.model.from_coordinates(state.image, proposal.x)
    if params is None:
        resting = _resting(state)
        return changed(state, params=state.image, proposal=None, n_iter=n_iter, **resting)
    return changed(state, params=params, proposal=proposal, n_iter=n_iter)


def _resting(state: Climb) -> dict[str, Any]:
    """After a plain step: one less to rest, or a longer rest if a rule has just given up.

    What it remembers is of a region that is no longer here, and each failure cost a pass.
    """
    if not state.failures:
        return {"rest": max(state.rest - 1, 0)}
    rest = min(2**state.given_up, LONGEST_REST)
    return {"points": (), "rest": rest, "given_up": state.given_up + 1}


def _checking(state: Climb, rules: Rules) -> bool:
    """Whether plain steps are due: to warm up, to rest, or to see how much is really left.

    An extrapolated step that gained next to nothing may be a bad step far from the optimum; only
    plain steps tell, by their rate. A few values in a row are needed.
    """
    if len(state.trace) <= rules.warm_up or state.rest > 0:
        return True
    last_gain = state.trace[-1] - state.trace[-2]
    done = last_gain <= rules.tol * state.weight and _extrapolation_is_exhausted(state, rules)
    return done and state.plain < (2 * STEPS_TOGETHER + 1 if state.tentative else 4)
