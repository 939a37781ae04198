"""Laws of schedules: how statistics of batches become those of a stream."""

from __future__ import annotations

from typing import Any

from mixfold.engine.schedules import Schedule
from mixfold.testing.compare import require, require_same
from mixfold.testing.storage import stored_identity

_LAW = "batches are averaged"


def batches_are_averaged(empty: Schedule, batches: list[tuple[Any, float]]) -> None:
    """A schedule keeps what ``Schedule`` promises.

    Per unit of weight, what it gives after a batch is an average of what it gave before and of the
    batch, which has the share that ``rate`` says. It is pure, counts steps, and can be stored.

    Parameters
    ----------
    empty : Schedule
        One that has seen nothing.
    batches : list of (Stats, float)
        Statistics summed over the rows of a batch, and the weight of these rows.
    """
    first, weight = batches[0]
    require(empty.rate(weight) == 1.0, _LAW, "the first batch is all there is, and its rate 1")
    schedule = empty.blend(first, weight)
    require_same(_LAW, schedule.total(weight), first, 1e-12, "the first batch")
    for stats, weight in batches[1:]:
        before, rate = schedule, schedule.rate(weight)
        require(0 < rate <= 1, _LAW, f"the rate of a batch must be a share, got {rate}")
        schedule = before.blend(stats, weight)
        require(schedule.n_batches > before.n_batches, _LAW, "the step was not counted")
        require_same(_LAW, before.blend(stats, weight), schedule, what="the same batch again")
        wanted = _mean(before).scale(1 - rate) + stats.scale(rate / weight)
        require_same(_LAW, _mean(schedule), wanted, 1e-9, "per unit of weight")
    stored_identity(schedule)


def _mean(schedule: Schedule) -> Any:
    return schedule.total(None).scale(1.0 / schedule.weight)
