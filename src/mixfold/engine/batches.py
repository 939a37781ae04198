"""Rows in batches: in their order, or in random order as far as they are held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Source

# rows of a batch that one thread takes: the same ones however many threads there are
PART = 256


class BatchSource:
    """Some blocks of a source, in memory."""

    def __init__(self, whole: Source, blocks: list[Block]) -> None:
        self._blocks = blocks
        self.n_samples = sum(block.n_rows for block in blocks)
        self.n_features = whole.n_features
        self.feature_names = whole.feature_names
        self.dtype = whole.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        for block in self._blocks:
            rows = max_rows or max(block.n_rows, 1)
            for first in range(0, block.n_rows, rows):
                yield block.part(first, first + rows) if rows < block.n_rows else block


def batches(source: Source, size: int) -> Iterator[BatchSource]:
    """The source in batches of about ``size`` rows, read once; the same ones every time."""
    held: list[Block] = []
    for block in source.blocks(size):
        if held and sum(b.n_rows for b in held) + block.n_rows > size:
            yield BatchSource(source, held)
            held = []
        held.append(block)
    if held:
        yield BatchSource(source, held)


def hold_rows(source: Source, rows: int) -> Iterator[Block]:
    """All rows, ``rows`` at a time however the source is cut; each block is numbered from 0."""
    waiting: list[Block] = []
    size = 0
    for block in source.blocks():
        waiting.append(block)
        size += block.n_rows
        while size >= rows:
            whole = join_blocks(waiting)
            yield whole.part(0, rows)
            waiting, size = [whole.part(rows, whole.n_rows)], size - rows
    if size:
        yield join_blocks(waiting)


def mixed_batches(
    source: Source, size: int, held: int, rng: np.random.Generator | None
) -> Iterator[BatchSource]:
    """Batches of ``size`` rows, mixed by ``rng`` among ``held`` rows at a time; None: in order.

    Where fewer than ``size`` rows are left of those held, the batch is smaller.
    """
    for rows in hold_rows(source, held):
        order = np.arange(rows.n_rows) if rng is None else rng.permutation(rows.n_rows)
        for first in range(0, rows.n_rows, size):
            batch = take_rows(rows, order[first : first + size])
            yield BatchSource(source, split_block(batch))


def join_blocks(blocks: list[Block]) -> Block:
    """Blocks, all dense or all sparse, as one; rows are numbered from 0."""
    if len(blocks) == 1:
        return replace(blocks[0], start=0)
    X, y, weight = [b.X for b in blocks], [b.y for b in blocks], [b.weight for b in blocks]
    return Block(
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        0,
        None if y[0] is None else np.concatenate([side for side in y if side is not None]),
        None if all(w is None for w in weight) else np.concatenate([b.weights() for b in blocks]),
        all(block.complete for block in blocks),
    )


def split_block(block: Block) -> list[Block]:
    """A batch as what threads take."""
    return [block.part(i, min(i + PART, block.n_rows)) for i in range(0, block.n_rows, PART)]


def take_rows(rows: Block, chosen: Array) -> Block:
    """The chosen rows, in this order, as a block that starts at 0."""
    return Block(
        rows.X[chosen],
        0,
        None if rows.y is None else rows.y[chosen],
        None if rows.weight is None else rows.weight[chosen],
        rows.complete,
    )
