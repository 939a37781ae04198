"""Put the rows of a source on the workers of a Dask cluster once, for all passes.

A piece is a run of consecutive blocks that stays on one worker. The partitions of a Dask
collection are pieces as they are, and the scheduler recomputes them when a worker dies.
The blocks of any other source are read here once and sent; those that died with a worker
are read and sent again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

from mixfold.contracts import Block, Source
from mixfold.engine.executors.cluster import lost_data_errors, send

# A piece of a shipped source closes at this many blocks or bytes, whichever comes first.
PIECE_BLOCKS = 8
PIECE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A future for a list of blocks; the first of them is block ``first`` of the pass."""

    data: Any
    first: int


class Partition(Protocol):
    """One partition of a Dask source."""

    @property
    def data(self) -> Any:
        """A ``dask.delayed.Delayed`` for the partition's values."""
        ...

    @property
    def cut(self) -> Callable[[Any], Iterator[Block]]:
        """Picklable: the computed values to the blocks that ``blocks()`` gives."""
        ...

    @property
    def n_blocks(self) -> int:
        """How many those are."""
        ...


@runtime_checkable
class PartitionedSource(Protocol):
    """A source whose rows already live on a cluster."""

    def partitions(self) -> Sequence[Partition]:
        """Its partitions in row order."""
        ...


class Placement:
    """The pieces of one source on one cluster.

    Parameters
    ----------
    client : distributed.Client
    source : Source
    """

    def __init__(self, client: Any, source: Source) -> None:
        self.client = client
        self.pieces: list[Piece] = []
        self._source = weakref.ref(source)
        self.restore()

    def restore(self) -> None:
        """Put back what was lost with a worker. What is still there stays where it is."""
        source = self._source()
        if source is None:
            raise RuntimeError("the data set was deleted while a pass over it was under way")
        if isinstance(source, PartitionedSource):
            # The scheduler recomputes a partition by itself, unless it was told to forget it.
            kept = [piece for piece in self.pieces if piece.data.status != "cancelled"]
            self.pieces = self._persist(source, {piece.first: piece for piece in kept})
        else:
            self.pieces = self._ship(source, self._alive())

    def _alive(self) -> dict[int, Piece]:
        pieces = [piece for piece in self.pieces if piece.data.status == "finished"]
        if not pieces:
            return {}
        try:
            holders = self.client.who_has([piece.data for piece in pieces])
        except lost_data_errors():
            return self._alive()  # one more went while we asked
        return {piece.first: piece for piece in pieces if holders.get(piece.data.key)}

    def _ship(self, source: Source, alive: dict[int, Piece]) -> list[Piece]:
        pieces: list[Piece] = []
        first = 0
        for blocks in _group_blocks(source.blocks()):
            piece = alive.get(first)
            if piece is None:
                piece = Piece(send(self.client, blocks), first)
            pieces.append(piece)
            first += len(blocks)
        return pieces

    def _persist(self, source: PartitionedSource, kept: dict[int, Piece]) -> list[Piece]:
        from dask.delayed import delayed

        partitions = source.partitions()
        firsts = accumulate((partition.n_blocks for partition in partitions), initial=0)
        # Kept as blocks, not as they came: converted and checked once, not in every pass.
        cut = delayed(cut_partition, pure=False)
        wanted = {
            first: cut(partition.data, partition.cut)
            for first, partition in zip(firsts, partitions, strict=False)
            if first not in kept
        }
        futures = self.client.compute(list(wanted.values()))
        new = {first: Piece(data, first) for first, data in zip(wanted, futures, strict=True)}
        return [piece for _, piece in sorted({**kept, **new}.items())]


def cut_partition(values: Any, cut: Callable[[Any], Iterator[Block]]) -> list[Block]:
    """The blocks of a partition, on the worker that holds it."""
    return list(cut(values))


def _group_blocks(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    # By blocks and bytes only, so that every reading of the source gives the same pieces.
    group: list[Block] = []
    size = 0
    for block in blocks:
        group.append(block)
        size += block.n_rows * block.X.shape[1] * block.X.dtype.itemsize
        if len(group) == PIECE_BLOCKS or size >= PIECE_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
