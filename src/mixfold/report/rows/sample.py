"""A seeded sample of the rows: for the map, and for statistics too slow for all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.engine.random import RowKeys
from mixfold.engine.reservoir import Reservoir, sample
from mixfold.report.rows.piece import Piece

# its own stream of random numbers, apart from those of fits
_STREAM = 0x7265706F7274


class SampledRows:
    """The rows of the smallest keys: the same for any blocks."""

    def __init__(self, size: int, seed: int) -> None:
        self._keys = RowKeys(seed, stream=_STREAM)
        self._reservoir = Reservoir(size)
        self._size = size

    def add(self, piece: Piece) -> None:
        """One more piece."""
        first, last = int(piece.rows[0]), int(piece.rows[-1]) + 1
        keys = self._keys.uniform(slice(first, last))[:, 0][piece.rows - first]
        self._reservoir = self._reservoir + _number_rows(piece, keys, self._size)

    def finish(self) -> Sampled:
        """The sample, in the order of the rows."""
        chosen = self._reservoir.trim().parts[0]
        return Sampled(chosen.rows, chosen.X, chosen.weight, chosen.y)


class Sampled:
    """Rows with their numbers ``rows`` (n,), weights and targets (None: none were given)."""

    def __init__(self, rows: Array, X: Any, weight: Array | None, y: Array | None) -> None:
        self.rows, self.X, self.weight, self.y = rows, X, weight, y

    def __len__(self) -> int:
        return len(self.rows)

    def block(self) -> Block:
        """As a block whose rows are numbered from zero."""
        values = self.X.data if hasattr(self.X, "tocsr") else self.X
        return Block(self.X, weight=self.weight, complete=not np.isnan(values).any())

    def at(self, index: Array) -> Sampled:
        """Some of the rows."""
        y = None if self.y is None else self.y[index]
        weight = None if self.weight is None else self.weight[index]
        return Sampled(self.rows[index], self.X[index], weight, y)


def _number_rows(piece: Piece, keys: Array, size: int) -> Reservoir:
    """The best rows of a piece under the numbers that they have in the data."""
    block = Block(piece.X, y=piece.y, weight=piece.weight)
    found = sample(block, keys, size, 2.0)
    parts = tuple(
        type(part)(part.keys, piece.rows[part.rows], part.X, part.weight, part.y)
        for part in found.parts
    )
    return Reservoir(size, parts)
