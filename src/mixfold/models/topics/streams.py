"""Documents in batches: how statistics of batches are blended, and the order of documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Source, record
from mixfold.models.topics.records import TopicParams, TopicSums, counts_of

# documents that are held at a time to be put in random order
SHUFFLED = 16384
# documents that one thread takes
PART = 256


@record
@dataclass(frozen=True, slots=True)
class TopicStream:
    """Statistics per document that forget slowly, the documents seen, and the steps made.

    Stochastic variational inference: step t weighs (offset + t)^-decay. A batch of ``size``
    documents is a step, one of half as many half a step.
    """

    stats: TopicSums
    documents: float
    steps: float

    def rate(self, batch: TopicSums, size: float, decay: float, offset: float) -> float:
        """How much a batch weighs against all that was seen before."""
        full = min(1.0, max(offset + self.steps, 1.0) ** -decay)
        return float(1.0 - (1.0 - full) ** (batch.documents / size))

    def blend(self, batch: TopicSums, rate: float, size: float) -> TopicStream:
        part = batch.documents / size
        stats = self.stats.scale(1.0 - rate) + per_document(batch).scale(rate)
        return TopicStream(stats, self.documents + batch.documents, self.steps + part)


def per_document(stats: TopicSums) -> TopicSums:
    """So that batches of any size can be blended."""
    return stats.scale(1.0 / stats.documents)


def stream_of(params: TopicParams, documents: float, tokens: float, size: float) -> TopicStream:
    """The stream that fitted topics might have come from."""
    words = np.ascontiguousarray(np.maximum(params.topics - params.smoothing, 0.0).T)
    none = np.zeros(len(params.prior) + 1)
    each = TopicSums(words / documents, none, 0.0, 1.0, tokens / documents, 0.0)
    return TopicStream(each, documents, documents / size)


# ------------------------------------------------ documents


class SparseBlocks:
    """A source whose blocks are CSR: a sample of it does not take the room of a table."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_source"], name)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        for block in self._source.blocks(max_rows):
            yield Block(counts_of(block).matrix, block.start, None, block.weight)


def joined(blocks: list[Block]) -> Block:
    """Sparse blocks as one; rows are numbered from 0."""
    if len(blocks) == 1:
        return Block(blocks[0].X, 0, None, blocks[0].weights())
    X = sparse.vstack([block.X for block in blocks], format="csr")
    return Block(X, 0, None, np.concatenate([block.weights() for block in blocks]))


def held(source: Source, rows: int) -> Iterator[Block]:
    """All documents, ``rows`` at a time however the source is cut."""
    waiting: list[Block] = []
    size = 0
    for block in SparseBlocks(source).blocks():
        waiting.append(block)
        size += block.n_rows
        while size >= rows:
            whole = joined(waiting)
            yield whole.part(0, rows)
            waiting, size = [whole.part(rows, whole.n_rows)], size - rows
    if size:
        yield joined(waiting)


def shuffled(source: Source, size: int, rng: np.random.Generator) -> Iterator[list[Block]]:
    """Batches of about ``size`` documents in random order, each in parts for threads."""
    for whole in held(source, SHUFFLED):
        order = rng.permutation(whole.n_rows)
        for first in range(0, whole.n_rows, size):
            yield parts(_taken(whole, order[first : first + size]))


def parts(block: Block) -> list[Block]:
    """A batch as what threads take: the same ones however many there are."""
    return [block.part(i, min(i + PART, block.n_rows)) for i in range(0, block.n_rows, PART)]


def _taken(block: Block, rows: Array) -> Block:
    return Block(block.X[rows], 0, None, block.weights()[rows])
