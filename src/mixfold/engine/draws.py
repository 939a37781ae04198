"""Draw rows with probability proportional to a mass of each, in one pass over any blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block, Executor, Source, Stats
from mixfold.engine.random import RowKeys
from mixfold.engine.reservoir import Reservoir, sample

Mass = Callable[[Block], Array]


@dataclass(frozen=True)
class Drawn(Stats):
    """Rows that may be among those drawn; ``+`` merges."""

    reservoir: Reservoir

    def __sub__(self, other: Drawn) -> Drawn:
        raise TypeError("drawn rows cannot be subtracted: those that lost are gone.")

    def scale(self, factor: float) -> Drawn:
        raise TypeError(f"drawn rows cannot be scaled (by {factor}).")

    def zero(self) -> Drawn:
        """No rows."""
        return Drawn(Reservoir(self.reservoir.size))


@dataclass(frozen=True, slots=True)
class Race:
    """The task of the pass: the rows of one block that may win. Picklable.

    A row of mass m gets the key E / m, E ~ Exp(1); the smallest keys win. So a row comes first with
    probability m / sum of m, and no total is needed before the pass.
    """

    mass: Mass
    keys: RowKeys
    size: int

    def __call__(self, block: Block) -> Drawn:
        mass = self.mass(block)
        exponential = -np.log(self.keys.uniform(block.rows)[:, 0])
        key = np.full(len(mass), np.inf)
        np.divide(exponential, mass, out=key, where=mass > 0)
        return Drawn(sample(block, key, self.size, np.inf))


def draw_rows(source: Source, executor: Executor, mass: Mass, size: int, keys: RowKeys) -> Block:
    """``size`` rows without replacement in proportion to their mass, in row order; one pass.

    Parameters
    ----------
    source : Source
    executor : Executor
    mass : callable
        Block to non-negative masses (n,), weights of the rows included; 0 is never drawn.
    size : int
        All rows of positive mass if they are fewer.
    keys : RowKeys
        The same keys give the same rows for any blocks and any executor.

    Returns
    -------
    Block
    """
    drawn = executor.map_reduce(Race(mass, keys, size), source)
    return drawn.reservoir.trim().block(source.n_features, source.dtype)
