"""Preparation of the rows of a block for a mixture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mixfold.contracts import Array, Block

# a tile of the general route, dense, is about this large
_TILE_BYTES = 2**21
# and the rows completed for every component, where entries are missing
_COMPLETED_BYTES = 2**25


def without_empty_rows(block: Block) -> Block:
    """Rows with nothing observed say nothing: they get weight zero."""
    if block.complete:
        return block
    if isinstance(block.X, np.ndarray):
        empty = np.isnan(block.X).all(axis=1)
    else:
        missing = block.X.copy()
        missing.data = np.isnan(missing.data).astype(float)
        empty = np.asarray(missing.sum(axis=1)).ravel() == block.X.shape[1]
    return replace(block, weight=np.where(empty, 0.0, block.weights())) if empty.any() else block


def informative(block: Block) -> Block:
    """The rows with anything observed."""
    block = without_empty_rows(block)
    keep = np.flatnonzero(block.weights() > 0)
    return block if len(keep) == block.n_rows else take_rows(block, keep)


def take_rows(block: Block, which: Array) -> Block:
    """Some rows of a block; they have no place among all rows any more."""
    y = None if block.y is None else block.y[which]
    return replace(block, X=block.X[which], y=y, weight=block.weights()[which])


def with_labels(block: Block, n_components: int) -> Block:
    """The block with its labels as integers, -1 where unknown.

    Raises
    ------
    ValueError
        If a label is not the number of a component; labels named by a column are first seen here.
    """
    if block.y is None:
        return block
    labels: Array = (
        np.where(np.isnan(block.y), -1, block.y) if block.y.dtype.kind == "f" else block.y
    )
    bad = np.flatnonzero((labels < -1) | (labels >= n_components) | (labels != np.round(labels)))
    if bad.size:
        raise ValueError(
            "component_labels must be whole numbers from -1 (unknown) to n_components - 1 = "
            f"{n_components - 1}; row {block.start + bad[0]} has {labels[bad[0]]}"
        )
    return replace(block, y=labels.astype(np.int64))


def tiles(block: Block, per_row: int, width: int) -> Iterator[Block]:
    """Parts of a block whose temporaries stay small.

    A row takes ``width`` numbers, and ``per_row`` where entries lack.
    """
    rows = int(np.clip(_TILE_BYTES // (8 * width), 64, 8192))
    if not block.complete:  # the more rows, the more share a pattern
        rows = max(256, _COMPLETED_BYTES // (8 * per_row))
    for first in range(0, block.n_rows, rows):
        yield block.part(first, first + rows)
