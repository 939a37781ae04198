"""What a climb is between two passes, and what it is about: values, no steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Event, Executor, Model, Pilot, Source, changed, record
from mixfold.engine.acceleration import Acceleration, Failure, Point, Proposal
from mixfold.engine.budget import NEVER, Deadline

if TYPE_CHECKING:
    from mixfold.engine.executors.row_memory import PassMemory
    from mixfold.engine.online import Online

# events that are true of a component at a step, and need not be at the next
PASSING = ("floor", "thin")
# plain steps before the first extrapolation: far from an optimum EM is hard to beat
WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """When to stop, and how to step: all rows at a time, ``batch_size`` of them by the memoised
    schedule, or as the ``online`` schedule says (``engine/online.py``)."""

    tol: float = 1e-6
    max_iter: int = 500
    acceleration: Acceleration | None = None
    deadline: Deadline = NEVER
    warm_up: int = WARM_UP
    batch_size: int | None = None
    online: Online | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What is climbed: a model on a source, visited by an executor.

    ``memory`` is for models that remember rows, None for all others.
    """

    model: Model[Any, Any, Any]
    source: Source
    executor: Executor
    pilot: Pilot | None
    seed: int
    memory: PassMemory | None = None

    @property
    def single(self) -> bool:
        return self.source.dtype == np.float32


@record
@dataclass(frozen=True, slots=True)
class Climb:
    """The state between two passes.

    ``params`` is to be visited next; ``best`` was visited last, with objective ``trace[-1]``, and
    ``image`` is the plain step from it. ``plain`` counts the values at the end of the trace that
    follow each other by plain steps. A climb that continues an earlier one (a warm start) has the
    ``earlier`` values at the head of its trace and expects a certain objective at its start.
    ``reason`` is empty until the climb has ended; ``memo`` belongs to the memoised and
    to the online schedule.

    ``sizes`` are the components in use at each value of the trace, of models that count them by
    ``components_in_use(stats)``.

    ``length`` is how long a tentative step may be, ``tentative`` says that the last plain step was
    one, and ``stats`` are the statistics at ``best``, kept as long as such a step may be taken
    back. ``rows`` is what the last accepted pass has kept of each row
    (``engine/executors/row_memory.py``).
    """

    params: Any
    best: Any = None
    image: Any = None
    n_iter: int = 0
    n_passes: int = 0
    tries: int = 0
    given_up: int = 0
    rest: int = 0
    jump: float = float("inf")
    weight: float = 0.0
    entropy: float = 0.0
    earlier: int = 0
    expected: float | None = None
    trace: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()
    plain: int = 0
    points: tuple[Point, ...] = ()
    failures: tuple[Failure, ...] = ()
    proposal: Proposal | None = None
    remaining: float = float("inf")
    events: tuple[Event, ...] = ()
    reason: str = ""
    memo: Any = None
    length: float = 1.0
    tentative: bool = False
    stats: Any = None
    rows: Any = None

    @property
    def objective(self) -> float:
        return self.trace[-1] if self.trace else -float("inf")


def was_stopped(climb: Climb) -> bool:
    """Whether a climb was ended from outside."""
    return climb.reason in ("time_budget", "interrupted")


def has_spikes(climb: Climb) -> bool:
    """Whether a component was floored, moved or dropped, and not merely left to an outlier or to
    many rows without spread."""
    return any(event.kind not in ("outlier", "thin") for event in climb.events)


def resume_climb(params: Any, climb: Climb | None) -> Climb:
    """The start of a climb from ``params``, where an earlier one may have ended."""
    if climb is None or not climb.trace:
        return Climb(params)
    return Climb(
        params,
        trace=climb.trace[:-1],
        sizes=climb.sizes[:-1],
        plain=max(climb.plain - 1, 0),
        points=climb.points,
        tries=climb.tries,
        jump=climb.jump,
        given_up=climb.given_up,
        rest=climb.rest,
        earlier=len(climb.trace) - 1,
        expected=climb.trace[-1],
        length=climb.length,
        tentative=climb.tentative,
    )


def begin_next_stage(model: Any, done: Climb) -> Climb | None:
    """The climb that follows one that has ended, if the model has more to learn from there.

    ``model.next_stage(params)``, of models that have it, gives the same point with more of it free
    to move, or None. The objective there is the one found, so that it goes on from its trace, with
    as many iterations as the last stage might have made.
    """
    propose = getattr(model, "next_stage", None)
    params = None if propose is None else propose(done.best)
    if params is None:
        return None
    return Climb(
        params,
        n_passes=done.n_passes,
        trace=done.trace[:-1],
        sizes=done.sizes[:-1],
        events=done.events,
        earlier=done.earlier,
        length=done.length,
        rows=done.rows,
    )


def forget_climb_of_other_data(state: Climb, objective: float) -> Climb:
    """Forget the earlier climb if its objective is not found again: the data are others."""
    if state.expected is None:
        return state
    if np.isclose(objective, state.expected, rtol=1e-12, atol=0):
        return changed(state, expected=None)
    return changed(
        state, expected=None, trace=(), sizes=(), plain=0, points=(), earlier=0, length=1.0
    )


def add_events(events: tuple[Event, ...], fresh: tuple[Event, ...]) -> tuple[Event, ...]:
    """Each kind of event is told once per component (re-seeding: every time)."""
    known = {(e.kind, e.component) for e in events if e.kind != "reseed"}
    return events + tuple(e for e in fresh if (e.kind, e.component) not in known)


def add_step_events(
    events: tuple[Event, ...], fresh: tuple[Event, ...], tentative: bool = False
) -> tuple[Event, ...]:
    """The same after an M step, which also tells what is no longer so: a component may have left
    its floor, or hold others than the row far away. A tentative step may be too short to tell.

    Rows far away come first: they explain other events.
    """
    now = {(e.kind, e.component) for e in fresh}
    kept = tuple(
        e for e in events if e.kind not in PASSING or tentative or (e.kind, e.component) in now
    )
    outliers = tuple(e for e in fresh if e.kind == "outlier")
    return outliers + add_events(
        tuple(e for e in kept if e.kind != "outlier"),
        tuple(e for e in fresh if e.kind != "outlier"),
    )
