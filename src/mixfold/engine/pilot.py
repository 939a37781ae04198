"""The pilot: a seeded sample of the rows, with counts and ranges of all rows, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from mixfold.contracts import Array, Block, Executor, Pilot, Source, Stats
from mixfold.engine.column_summary import column_summary
from mixfold.engine.random import RowKeys
from mixfold.engine.reservoir import Reservoir, sample
from mixfold.engine.sources.checks import nothing_weighs

# The pilot's own stream of random numbers, apart from those that a fit uses.
PILOT_STREAM = 0x70696C6F74


@dataclass(frozen=True)
class Overview(Stats):
    """What is known of some rows of positive weight; ``+`` merges."""

    total_rows: int
    total_weight: float
    observed: Array
    minimum: Array
    maximum: Array
    reservoir: Reservoir

    def __add__(self, other: Overview) -> Overview:
        return Overview(
            self.total_rows + other.total_rows,
            self.total_weight + other.total_weight,
            self.observed + other.observed,
            np.fmin(self.minimum, other.minimum),
            np.fmax(self.maximum, other.maximum),
            self.reservoir + other.reservoir,
        )

    def __sub__(self, other: Overview) -> Overview:
        raise TypeError("an overview cannot be subtracted: extremes and samples only grow.")

    def scale(self, factor: float) -> Overview:
        raise TypeError(f"an overview cannot be scaled (by {factor}): it holds rows.")

    def zero(self) -> Overview:
        """The overview of no rows."""
        nothing = np.full_like(self.minimum, np.nan)
        return Overview(
            0, 0.0, np.zeros_like(self.observed), nothing, nothing, Reservoir(self.reservoir.size)
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """The task of the pass: an overview of one block. Picklable.

    Attributes
    ----------
    keys : RowKeys
        The rows of the smallest keys make the sample, so blocks and executors do not matter.
    size : int
        Rows of the sample.
    below : float
        Keys above cannot be among the smallest; their rows are not copied.
    """

    keys: RowKeys
    size: int
    below: float = 1.0

    def __call__(self, block: Block) -> Overview:
        X, rows, weight = block.X, block.n_rows, float(block.n_rows)
        if block.weight is not None:
            counts = block.weight > 0
            rows, weight = int(counts.sum()), float(block.weight.sum())
            X = X if rows == block.n_rows else X[counts]
        keys = self.keys.uniform(block.rows)[:, 0]
        return Overview(
            rows,
            weight,
            *column_summary(X, block.complete),
            sample(block, keys, self.size, self.below),
        )


def draw_pilot(source: Source, executor: Executor, size: int, seed: int) -> Pilot:
    """Sample ``size`` rows without replacement and look at all of them.

    One pass over the data. When the length is known, rows that are bound to lose are
    not even copied; only if more than a fifth of the rows weigh nothing may that bound turn
    out too tight, and a second pass is made.

    Parameters
    ----------
    source : Source
    executor : Executor
    size : int
        Rows of the sample; all rows of positive weight if they are fewer.
    seed : int
        The same seed gives the same rows for any blocks and any executor.

    Returns
    -------
    Pilot
        Its ``total_rows`` counts the rows of positive weight: weight zero equals absence.
    """
    if size < 1:
        raise ValueError(f"size of the pilot must be at least 1, got {size}")
    keys = RowKeys(seed, stream=PILOT_STREAM)
    below = 1.0 if source.n_samples is None else _key_bound(size, source.n_samples)
    while True:
        seen = executor.map_reduce(Survey(keys, size, below), source)
        if seen.total_weight == 0.0:
            raise nothing_weighs()
        reservoir = seen.reservoir.trim()
        block = reservoir.block(source.n_features, source.dtype)
        if below >= 1.0 or block.n_rows >= min(size, seen.total_rows):
            break
        below = min(1.0, max(2.0 * below, _key_bound(size, seen.total_rows)))
    return Pilot(
        block,
        seen.total_rows,
        seen.total_weight,
        seen.observed,
        seen.minimum,
        seen.maximum,
    )


def _key_bound(size: int, n_rows: int) -> float:
    """A key that at least ``size`` of ``n_rows`` uniform keys undercut, but for odds of 1e-15.

    A quarter more than needed, for rows that weigh nothing.
    """
    return min(1.0, (1.25 * size + 8.0 * sqrt(size) + 64.0) / max(n_rows, 1))
