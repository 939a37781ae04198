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


def hold_rows(source: Source, rows: int, entries: int = 0) -> Iterator[Block]:
    """All rows, ``rows`` at a time however the source is cut; each block is numbered from 0.

    More at a time, in multiples of ``rows``, as long as they have fewer than ``entries`` entries.
    """
    waiting: list[Block] = []
    size, room = 0, entries
    for block in source.blocks():
        waiting.append(block)
        size, room = size + block.n_rows, room - _count_entries(block)
        while size >= rows and room <= 0:
            whole = join_blocks(waiting)
            first = rows if entries == 0 else size // rows * rows
            yield whole.part(0, first)
            waiting, size = [whole.part(first, whole.n_rows)], size - first
            room = entries - _count_entries(waiting[0]) if entries else 0
    if size:
        yield join_blocks(waiting)


def _count_entries(block: Block) -> int:
    return int(block.X.nnz if sparse.issparse(block.X) else block.X.size)


def mixed_batches(
    source: Source, size: int, held: int, rng: np.random.Generator | None, entries: int = 0
) -> Iterator[BatchSource]:
    """Batches of ``size`` rows, mixed by ``rng`` among ``held`` rows at a time; None: in order.

    As many more rows are held as have ``entries`` entries: short rows are mixed with all others,
    whatever their order. Where fewer than ``size`` rows are left of those held, the batch is
    smaller.
    """
    for rows in hold_rows(source, held, 0 if rng is None else entries):
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
