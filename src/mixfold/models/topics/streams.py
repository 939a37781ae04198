"""Documents in batches: as sparse rows, and as the schedule that fitted topics might have left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Block, Source, record
from mixfold.models.topics.records import TopicParams, TopicSums, counts_of


@record
@dataclass(frozen=True, slots=True)
class TopicStream:
    """What files of earlier versions hold of a stream: statistics per document, documents seen,
    and steps. Now it is a ``Stepwise``; a stream that is loaded becomes one."""

    stats: TopicSums
    documents: float
    steps: float


def mean_document(params: TopicParams, documents: float, tokens: float) -> TopicSums:
    """Statistics per document of a corpus whose posterior are these topics."""
    words = np.ascontiguousarray(np.maximum(params.topics - params.smoothing, 0.0).T)
    none = np.zeros(len(params.prior) + 1)
    return TopicSums(words / documents, none, 0.0, 1.0, tokens / documents, 0.0)


class SparseBlocks:
    """A source whose blocks are CSR: documents that are held do not take the room of a table."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_source"], name)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        for block in self._source.blocks(max_rows):
            yield Block(counts_of(block).matrix, block.start, None, block.weight)
