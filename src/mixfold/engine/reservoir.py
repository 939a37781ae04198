"""A uniform sample of rows that can be merged: the rows with the smallest random keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some rows, with the keys that decide between them."""

    keys: Array
    rows: Array
    X: Any
    weight: Array | None
    y: Array | None

    def take(self, index: Array) -> Chosen:
        """Some of the rows, in the order of ``index``."""
        return Chosen(
            self.keys[index],
            self.rows[index],
            self.X[index],
            None if self.weight is None else self.weight[index],
            None if self.y is None else self.y[index],
        )


@dataclass(frozen=True, slots=True)
class Reservoir:
    """The rows of the ``size`` smallest keys, and perhaps some more that wait to be dropped.

    ``a + b`` joins the parts and copies only when twice as many rows wait as are wanted, so that
    the memory is bounded and a row is copied a few times at most.
    """

    size: int
    parts: tuple[Chosen, ...] = ()

    def __add__(self, other: Reservoir) -> Reservoir:
        joined = Reservoir(self.size, self.parts + other.parts)
        waiting = sum(len(part.keys) for part in joined.parts)
        return joined.trim() if waiting > 2 * self.size else joined

    def trim(self) -> Reservoir:
        """The same, without rows that can no longer be chosen; rows in their order."""
        if not self.parts:
            return self
        keys = np.concatenate([part.keys for part in self.parts])
        rows = np.concatenate([part.rows for part in self.parts])
        # Equal keys are told apart by the row, so that the order of merging does not matter.
        chosen = np.lexsort((rows, keys))[: self.size]
        kept = np.zeros(len(keys), dtype=bool)
        kept[chosen] = True
        ends = np.cumsum([len(part.keys) for part in self.parts])[:-1]
        masks = np.split(kept, ends)
        small = [p.take(np.flatnonzero(m)) for p, m in zip(self.parts, masks, strict=True)]
        joined = _join([part for part in small if len(part.keys)])
        return Reservoir(self.size, (joined.take(np.argsort(joined.rows)),))

    def block(self, width: int, dtype: np.dtype[Any]) -> Block:
        """The sample as a block."""
        if not self.parts:
            return Block(np.empty((0, width), dtype=dtype))
        chosen = self.trim().parts[0]
        values = chosen.X.data if sparse.issparse(chosen.X) else chosen.X
        return Block(
            chosen.X, y=chosen.y, weight=chosen.weight, complete=not np.isnan(values).any()
        )


def sample(block: Block, keys: Array, size: int, below: float) -> Reservoir:
    """The rows of a block that can be among the ``size`` smallest keys of all blocks.

    Parameters
    ----------
    block : Block
    keys : ndarray of shape (n,)
    size : int
    below : float
        A bound that the caller knows to hold for the keys that will be chosen.
    """
    wanted = keys < below
    if block.weight is not None:
        wanted &= block.weight > 0
    index = np.flatnonzero(wanted)
    if len(index) > size:
        order = np.lexsort((index, keys[index]))[:size]
        index = np.sort(index[order])
    if not len(index):
        return Reservoir(size)
    chosen = Chosen(
        keys[index],
        block.start + index,
        block.X[index] if sparse.issparse(block.X) else np.take(block.X, index, axis=0),
        None if block.weight is None else block.weight[index],
        None if block.y is None else block.y[index],
    )
    return Reservoir(size, (chosen,))


def _join(parts: list[Chosen]) -> Chosen:
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    return Chosen(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.rows for part in parts]),
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        _side([part.weight for part in parts]),
        _side([part.y for part in parts]),
    )


def _side(values: list[Array | None]) -> Array | None:
    """Weights or labels of several parts; either all of them have some or none has."""
    given = [value for value in values if value is not None]
    return np.concatenate(given) if given else None
