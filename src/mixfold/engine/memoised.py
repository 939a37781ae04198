"""The memoised schedule: parameters follow every batch of rows, and the objective stays exact.

The statistics of each batch are remembered. A visit replaces those of one batch by new ones, so
their total always stands for all rows, each with the responsibilities it was given last (Neal and
Hinton, 1998; Hughes and Sudderth, 2013). It cannot lower the objective, needs no learning rate, and
moves the parameters many times a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Context, record
from mixfold.engine.batches import batches
from mixfold.engine.random import RowKeys
from mixfold.engine.state import Task


class Incremental(Protocol):
    """What a model offers beyond ``Model`` to be fitted batch by batch."""

    def additive(self, stats: Any) -> Any:
        """Statistics in a form that can be added to those of other passes."""
        ...

    def free_energy(self, params: Any, stats: Any) -> float:
        """The objective with the responsibilities that made the statistics."""
        ...


@record
@dataclass(frozen=True, slots=True)
class Memo:
    """Statistics of every batch, in order."""

    batches: tuple[Any, ...] = ()

    def total(self) -> Any:
        return reduce(lambda a, b: a + b, self.batches)


def lap(
    task: Task, params: Any, memo: Memo, size: int, n_passes: int, context: Context
) -> tuple[Any, Any, Memo]:
    """One visit to every batch: parameters, statistics of all rows, and what to remember.

    The first lap only fills the memory: its statistics are those of ``params``.
    """
    model: Any = task.model
    keys = RowKeys(task.seed, n_passes)
    total = memo.total() if memo.batches else None
    fresh: list[Any] = []
    reading = model.prepare(params)
    for index, batch in enumerate(batches(task.source, size)):
        visit = partial(model.expect, reading, rng=keys)
        where = task.executor if task.memory is None else task.memory
        stats = model.additive(where.map_reduce(visit, batch))
        fresh.append(stats)
        if total is not None:
            total = total - memo.batches[index] + stats
            params = model.update(params, total, context).params
            reading = model.prepare(params)
    known = Memo(tuple(fresh))
    # summed anew, so that no rounding is carried from lap to lap
    total = known.total()
    if memo.batches:
        params = model.update(params, total, context).params
    return params, total, known


def context_of(task: Task, n_passes: int) -> Context:
    """What the M steps of a lap may look at."""
    return Context(task.pilot, np.random.default_rng([task.seed % 2**63, n_passes, 5]))
