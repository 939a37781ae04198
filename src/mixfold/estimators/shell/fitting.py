"""The steps of a fit by the engine, as functions that the ``fit`` of an estimator calls in turn.

Open the data (``estimator._open``), look at them (``survey_rows``), make the model, run it
(``run_fit``), store and publish what was found (``store_fit``, ``publish_convergence``), warn
(``warn_about_fit``). ``learn_one_batch`` is the step of ``partial_fit``.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mixfold.contracts import Array, Event, Executor, Pilot, Source
from mixfold.engine import loop
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.loop import Fit, Plan, pilot_size
from mixfold.engine.order import OrderCheck, Shift, begin_check
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.engine.schedules import Learned, Schedule, learn_batch
from mixfold.engine.state import Climb
from mixfold.estimators.shell.base import DegenerateWarning, warn


class OrderWarning(UserWarning):
    """The batches of a stream are not samples of the same rows: they are sorted, or drift."""


# steps on the first batch of a stream
FIRST_BATCH_STEPS = 20
# parameters that may change between a fit and the one that goes on from its checkpoint
_FREE_OF_CHECKPOINT = (
    "checkpoint", "executor", "n_jobs", "verbose", "verbose_interval", "time_budget",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Survey:
    """A data set that was looked at: where its rows are visited, the seed, and a sample of rows."""

    source: Source
    executor: Executor
    seed: int
    pilot: Pilot

    @property
    def has_missing(self) -> bool:
        """Whether any entry is missing."""
        return bool((self.pilot.observed < self.pilot.total_rows).any())


@dataclass(frozen=True, slots=True)
class WarmStart:
    """The parameters that a fit goes on from, if any, and the climb that found them."""

    params: Any = None
    climb: Climb | None = None


# ---------------------------------------------------- before a fit


def survey_rows(estimator: Any, source: Source, n_components: int = 1) -> Survey:
    """Resolve executor and seed, draw the pilot, and refuse columns without an entry."""
    executor = estimator._executor(source)
    seed = seed_from(estimator.random_state)
    checkpoint = checkpoint_of(estimator)
    if checkpoint is not None:
        seed = checkpoint.seed(seed)
    pilot = draw_pilot(source, executor, pilot_size(source, n_components), seed)
    estimator._check_columns(pilot)
    return Survey(source, executor, seed, pilot)


def check_enough_rows(n_rows: int, wanted: int, name: str = "n_components") -> None:
    """Refuse fewer rows than components; the first words are scikit-learn's."""
    if n_rows < wanted:
        raise ValueError(
            f"Expected n_samples >= {name} but got {name} = {wanted}, n_samples = {n_rows}. "
            f"Lower {name} or give more rows of positive weight."
        )


# components for each row beyond which their number cannot be meant
_ROOM, _PER_ROW = 10_000, 100


def check_room(n_rows: int, wanted: int, name: str = "n_components") -> None:
    """Refuse sizes that only memory and time would end, where priors allow more components than
    rows."""
    most = max(_ROOM, _PER_ROW * n_rows)
    if wanted > most:
        raise ValueError(
            f"{name}={wanted} is more than n_samples = {n_rows} rows can ever use; lower {name} "
            f"to {most} or less"
        )


def acceleration_named(name: str | None) -> Acceleration | None:
    """The rule that the parameter ``acceleration`` names."""
    if name is None:
        return None
    return ACCELERATIONS["quasi-newton" if name == "auto" else name]


def checkpoint_of(estimator: Any) -> Checkpoint | None:
    """The file that an estimator names by its parameter ``checkpoint``, None if it does not."""
    if estimator.checkpoint is None:
        return None
    values = estimator.get_params(deep=False).items()
    settings = {k: _fingerprint(v) for k, v in values if k not in _FREE_OF_CHECKPOINT}
    return Checkpoint(estimator.checkpoint, settings)


def _fingerprint(value: Any) -> str:
    """A parameter in a form that differs where the parameter does; arrays print in part only."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return type(value).__name__  # the seed that was drawn from it is stored
    if isinstance(value, str) or np.ndim(value) == 0:
        return repr(value)
    array = np.ascontiguousarray(value)
    return f"array {array.shape} {array.dtype} {zlib.crc32(array.tobytes()):08x}"


# ---------------------------------------------------- the fit


def run_fit(
    estimator: Any,
    model: Any,
    survey: Survey,
    plan: Plan,
    warm: WarmStart | None = None,
    *,
    resumable: bool = True,
) -> Fit:
    """Fit a model by the engine, with the estimator's progress and, if ``resumable``, its
    checkpoint."""
    warm = warm or WarmStart()
    return loop.fit(
        model,
        survey.source,
        survey.executor,
        plan,
        pilot=survey.pilot,
        checkpoint=checkpoint_of(estimator) if resumable else None,
        progress=Progress(int(estimator.verbose), estimator.verbose_interval),
        start=warm.params,
        earlier=warm.climb,
    )


# ---------------------------------------------------- after a fit


def reorder_components(model: Any, fit: Fit, order: Array) -> Fit:
    """The fit with its components in another order, if their prior allows it; events follow."""
    params = model.permute_components(fit.params, order)
    if params is fit.params:
        return fit
    return replace(fit, params=params, events=reorder_events(fit.events, order))


def reorder_events(events: tuple[Event, ...], order: Array) -> tuple[Event, ...]:
    """Events of components that have been put in another order."""
    place = np.argsort(order)
    return tuple(e if e.component < 0 else _rename(e, int(place[e.component])) for e in events)


def _rename(event: Event, component: int) -> Event:
    message = event.message.replace(f"component {event.component}", f"component {component}", 1)
    return replace(event, component=component, message=message)


def store_fit(estimator: Any, fit: Fit, survey: Survey) -> None:
    """Store the parameters, the type of the data and the stream of random numbers of draws."""
    estimator._params = fit.params
    estimator._dtype = survey.source.dtype.name
    estimator._stream = (survey.seed, 0)
    forget_stream(estimator)


def forget_stream(estimator: Any) -> None:
    """Without what batches before a fit have left."""
    for name in ("_schedule", "_order", "_kept"):
        estimator.__dict__.pop(name, None)


def publish_convergence(estimator: Any, fit: Fit) -> None:
    """Publish how the fit went: the objective per row, steps, passes, why it ended, events."""
    per_row = fit.trace / fit.weight
    estimator.lower_bounds_ = per_row[1:].tolist()
    estimator.lower_bound_ = float(per_row[-1])
    estimator.n_iter_ = fit.n_iter
    estimator.n_passes_ = fit.n_passes
    estimator.converged_ = fit.converged
    estimator.stop_reason_ = fit.reason
    estimator.events_ = list(fit.events)


def warn_about_fit(fit: Fit, max_iter: int) -> None:
    """Warn of events, and of a fit that ended before it had converged."""
    if fit.events:
        first = fit.events[0].message
        more = f" ({len(fit.events) - 1} more events)" if len(fit.events) > 1 else ""
        warn(f"{first}{more}; see events_", DegenerateWarning)
    warn_if_not_converged(fit, max_iter)


def warn_if_not_converged(fit: Fit, max_iter: int) -> None:
    """Warn of a fit that max_iter, the time budget or Ctrl-C has ended."""
    if fit.reason == "max_iter" and max_iter > 0:
        warn(
            "Best performing initialization did not converge. Try different init parameters, "
            "or increase max_iter, tol, or check for degenerate data.",
            ConvergenceWarning,
        )
    elif fit.reason in ("time_budget", "interrupted"):
        budget = fit.reason == "time_budget"
        what = "time_budget was used up" if budget else "the fit was interrupted"
        warn(
            f"{what} after {fit.n_iter} iterations; the best parameters so far are kept",
            ConvergenceWarning,
        )


def warn_about_empty_rows(fit: Fit) -> None:
    """Warn of rows without any observed entry, which a density cannot learn from."""
    pilot = fit.pilot
    empty, total = pilot.total_weight - fit.weight, pilot.total_weight
    if empty > 1e-9 * total:
        rows = f"{empty:g} of the {total:g} rows"
        weighed = f"rows of weight {empty:g} (all rows together weigh {total:g})"
        warn(
            f"{rows if total == pilot.total_rows else weighed} have no observed entry: they "
            "say nothing about the model, which is fitted to the others",
            UserWarning,
        )


# ---------------------------------------------------- one batch of a stream


def learn_one_batch(
    estimator: Any,
    model: Any,
    source: Source,
    schedule: Schedule,
    total_weight: float | None = 1.0,
    kept: str = "_params",
) -> Learned | None:
    """One step from a batch: store parameters and schedule; None if no row of it counts.

    ``total_weight`` is the weight of all rows that the stream stands for, None of those seen.
    ``kept`` names the attribute with the parameters of the model.
    """
    learned = learn_batch(
        model,
        getattr(estimator, kept),
        schedule,
        source,
        estimator._executor(source),
        total_weight=total_weight,
        seed=estimator._stream[0],
        order=order_of(estimator, source, new=schedule.weight == 0),
    )
    if learned.schedule is schedule:
        return None
    note_order(estimator, learned)
    setattr(estimator, kept, learned.params)
    estimator._schedule = learned.schedule
    estimator.n_iter_ = int(learned.schedule.n_batches)
    return learned


def order_of(estimator: Any, source: Source, *, new: bool) -> OrderCheck:
    """What is known of the order of the rows of a stream before a batch."""
    known: OrderCheck | None = None if new else getattr(estimator, "_order", None)
    return begin_check(source) if known is None else known


def note_order(estimator: Any, learned: Learned) -> None:
    """Remember the order of the rows; an event and a warning if batches differ, once a stream."""
    estimator._order = learned.order
    if learned.shift is None:
        return
    message = _describe_shift(estimator, learned.shift)
    event = Event("order", message, int(learned.schedule.n_batches))
    estimator.events_ = [*getattr(estimator, "events_", ()), event]
    warn(f"{message}; see events_", OrderWarning)


def _describe_shift(estimator: Any, shift: Shift) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    name = f"{shift.column}"
    if names is not None and shift.column < len(names):
        name = repr(str(names[shift.column]))
    if shift.column >= estimator.n_features_in_:  # outputs beside the columns
        name = f"of outputs {shift.column - estimator.n_features_in_}"
    level = f"at least {shift.level:.4g}" if shift.inclusive else f"above {shift.level:.4g}"
    (k, n), (k_before, n_before) = shift.last, shift.before
    return (
        f"the rows of the stream are sorted, or drift: column {name} is {level} in {k} of the last "
        f"{n} rows and was so in {k_before} of the {n_before} before, which rows in random order "
        f"show with a probability below {_power_of_ten(shift.log_chance)}. partial_fit takes "
        "every batch for a sample of all rows: shuffle the rows, or use fit, which needs no order "
        "and reads files larger than memory"
    )


def _power_of_ten(log_chance: float) -> str:
    return f"1e{int(np.ceil(log_chance / np.log(10)))}"
