"""Learning batch by batch: how statistics of successive batches become one, and the step itself.

This is the one mechanism of streams. ``learn_batch`` makes the E step on a batch, lets a schedule
blend its statistics with those before, and makes the M step from what the schedule gives back. A
schedule sees statistics alone, never rows or parameters; it is a record, so that a stream can be
saved and gone on with. ``partial_fit`` of an estimator calls ``learn_batch`` once for each batch,
the online schedule of the engine (``engine/online.py``) once for each batch of a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from mixfold.contracts import Block, Context, Event, Executor, Source, record
from mixfold.engine.order import OrderCheck, Shift, Watched, look_at_batch, tally
from mixfold.engine.random import RowKeys


class Schedule(Protocol):
    """What the batches of a stream have left: a record.

    ``mixfold.testing.laws.batches_are_averaged`` checks what is promised here.
    """

    @property
    def n_batches(self) -> float:
        """Steps so far; a small batch may be a part of one."""
        ...

    @property
    def weight(self) -> float:
        """Weight of the rows seen, those that were forgotten left out."""
        ...

    def rate(self, weight: float) -> float:
        """Share of a batch of this weight in what ``blend`` would give; 1 for the first."""
        ...

    def blend(self, batch: Any, weight: float = 1.0) -> Self:
        """With one more batch: its statistics, summed over rows of this weight."""
        ...

    def total(self, weight: float | None = 1.0) -> Any:
        """Statistics of all rows that the stream stands for: of so much weight, None of the rows
        seen so far."""
        ...


@record
@dataclass(frozen=True, slots=True)
class Stepwise:
    """Stepwise EM (Cappe and Moulines, 2009): a running average that forgets its start.

    s <- (1 - rho_t) s + rho_t s_batch with rho_t = (t + delay)^-decay, statistics per unit of
    weight. Each batch is a step; with a ``batch_size`` it is a batch of that weight, and one of
    half the weight is half a step. ``stats`` None has seen nothing; ``weight`` is that of the rows
    seen.
    """

    stats: Any = None
    n_batches: float = 1
    decay: float = 0.7
    delay: float = 1.0
    batch_size: float | None = None
    weight: float = 0.0

    def rate(self, weight: float = 1.0) -> float:
        if self.stats is None:
            return 1.0
        full = float(min(1.0, max(self.n_batches + self.delay, 1.0) ** -self.decay))
        if self.batch_size is None:
            return full
        return float(1.0 - (1.0 - full) ** (weight / self.batch_size))

    def blend(self, batch: Any, weight: float = 1.0) -> Self:
        part = 1 if self.batch_size is None else weight / self.batch_size
        seen = self.weight + weight
        each = batch if weight == 1.0 else batch.scale(1.0 / weight)
        if self.stats is None:
            return replace(self, stats=each, n_batches=part, weight=seen)
        rate = self.rate(weight)
        stats = self.stats.scale(1.0 - rate) + each.scale(rate)
        return replace(self, stats=stats, n_batches=self.n_batches + part, weight=seen)

    def total(self, weight: float | None = 1.0) -> Any:
        whole = self.weight if weight is None else weight
        return self.stats if whole == 1.0 else self.stats.scale(whole)


@record
@dataclass(frozen=True, slots=True)
class Accumulated:
    """Sums over all rows: the posterior of one batch is the prior of the next.

    With ``forgetting`` < 1 all earlier batches are multiplied by it before one is added.
    """

    stats: Any = None
    n_batches: float = 1
    forgetting: float = 1.0
    weight: float = 0.0

    def rate(self, weight: float = 1.0) -> float:
        if self.stats is None:
            return 1.0
        return weight / max(self.forgetting * self.weight + weight, 1e-300)

    def blend(self, batch: Any, weight: float = 1.0) -> Self:
        if self.stats is None:
            return replace(self, stats=batch, n_batches=1, weight=weight)
        before = self.stats if self.forgetting == 1.0 else self.stats.scale(self.forgetting)
        seen = self.forgetting * self.weight + weight
        return replace(self, stats=before + batch, n_batches=self.n_batches + 1, weight=seen)

    def total(self, weight: float | None = None) -> Any:
        """What was added up: a sum over the rows seen stands for no others."""
        return self.stats


# ------------------------------------------------ a step


@dataclass(frozen=True, slots=True)
class Learned:
    """After a batch: parameters, the schedule, the statistics of the batch, what happened.

    ``order`` is what is remembered of the order of rows, and ``shift`` what it has shown.
    """

    params: Any
    schedule: Any
    stats: Any
    events: tuple[Event, ...] = ()
    order: OrderCheck | None = None
    shift: Shift | None = None


def learn_batch(
    model: Any,
    params: Any,
    schedule: Schedule,
    batch: Source,
    executor: Executor,
    *,
    total_weight: float | None = 1.0,
    seed: int = 0,
    step: int = 0,
    order: OrderCheck | None = None,
) -> Learned:
    """One E step on a batch and one M step from all batches so far.

    Parameters
    ----------
    model : Model and StreamedModel
    params
        Where the batch finds the model; they are not changed.
    schedule : Schedule
        What the batches before have left; ``Stepwise()`` before the first.
    batch : Source
    executor : Executor
    total_weight : float, optional
        Weight of all rows of the stream, against which priors and penalties weigh. 1.0 where
        there are none, so that only ratios matter; None: of the rows seen so far.
    seed, step : int
        What random numbers depend on.
    order : OrderCheck, optional
        What is known of the order of the rows so far; the rows are counted on the way.

    Returns
    -------
    Learned
        A batch without a row that counts changes nothing.
    """
    visit = partial(model.expect, model.prepare(params), rng=RowKeys(seed, step))
    shift = None
    if order is None or order.noticed:
        stats = executor.map_reduce(visit, batch)
    else:
        watched = executor.map_reduce(partial(_visit_and_count, visit, order), batch)
        stats = watched.stats
        order, shift = look_at_batch(order, watched.tally)
    weight = model.row_weight(stats)
    if weight == 0:
        return Learned(params, schedule, stats)
    rate = schedule.rate(weight)
    schedule = schedule.blend(model.additive(stats), weight)
    rng = np.random.default_rng(seed % 2**63)
    context = Context(None, rng, batch=stats, rate=rate)
    update = model.update(params, schedule.total(total_weight), context)
    return Learned(update.params, schedule, stats, update.events, order, shift)


def _visit_and_count(visit: Callable[[Block], Any], order: OrderCheck, block: Block) -> Watched:
    return Watched(visit(block), tally(order, block))
