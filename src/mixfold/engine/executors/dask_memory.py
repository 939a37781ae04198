"""What is known of each row, beside the rows on the workers of a Dask cluster.

A future for each piece of the rows holds it; a pass takes those of the last accepted one and makes
new ones, and nothing of them travels. A worker that dies takes some along. They are found again as
they were: the tasks of the accepted passes are remembered here (parameters, no rows), and are run
once more for the pieces that were lost. What that may take is bounded: after ``REPLAYED_PASSES``,
or tasks of ``REPLAYED_BYTES``, the rows are gathered once and the tasks are forgotten. Where that
would be more than ``REPLAYED_BYTES`` too, what was lost is made anew, with an event.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from mixfold.contracts import Array, Block, Event, Source, Stats
from mixfold.engine.executors import row_memory
from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.engine.executors.cluster import ClusterError, lost_data_errors, send
from mixfold.engine.executors.placement import Piece, Placement
from mixfold.engine.executors.reduction import TreeSum
from mixfold.engine.executors.row_memory import (
    HeldRows,
    KnownRows,
    NoMemory,
    NotStored,
    StoredRows,
)
from mixfold.engine.executors.threads import run_on_block

S = TypeVar("S", bound=Stats)
R = TypeVar("R")
Task = Callable[..., Any]

REPLAYED_PASSES, REPLAYED_BYTES = 64, 2**28


class PieceExecutor(Protocol):
    """What a memory asks of the executor of a cluster."""

    def map_reduce(self, task: Callable[[Block], S], source: Source) -> S: ...

    def run_until_done(self, source: Source, attempt: Callable[[Placement, int], R]) -> R: ...

    def close_sums(self, placement: Placement, sums: list[Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Lineage:
    """How to find again what is known: from ``base`` (None: nothing) by the ``tasks`` of passes.

    ``whole`` is False where tasks were forgotten.
    """

    base: StoredRows | None = None
    tasks: tuple[Task, ...] = ()
    n_bytes: int = 0
    whole: bool = True

    def followed_by(self, task: Task) -> Lineage:
        size = self.n_bytes + _size_of(task)
        return replace(self, tasks=(*self.tasks, task), n_bytes=size) if self.whole else self

    @property
    def is_long(self) -> bool:
        return len(self.tasks) > REPLAYED_PASSES or self.n_bytes > REPLAYED_BYTES


@dataclass(frozen=True, slots=True)
class ClusterRows:
    """Futures of what is known of the rows of each piece; none if they are still to be sent."""

    pieces: tuple[Any, ...]
    lineage: Lineage


class ClusterMemory:
    """The rows of one source, remembered on the workers that hold them."""

    def __init__(self, executor: PieceExecutor, source: Source) -> None:
        self._executor, self._source = executor, source
        self._known: ClusterRows | None = None
        self._fresh: ClusterRows | None = None
        self._events: tuple[Event, ...] = ()

    # ------------------------------------------------ for models that run here: nothing is here

    def recall(self, rows: slice) -> None:
        return None

    def keep(self, rows: slice, value: Array) -> None:
        raise RuntimeError("rows on a cluster are remembered by their workers, not here")

    # ------------------------------------------------ for the engine

    def resume(self, state: Any) -> None:
        if isinstance(state, StoredRows):
            state = ClusterRows((), Lineage(state))
        self._known = None if isinstance(state, NotStored) else state
        self._fresh = None

    def accept(self) -> None:
        fresh, self._fresh = self._fresh, None
        self._known = None if fresh is None else self._shorten(fresh)

    def forget(self) -> None:
        self.resume(None)

    @property
    def state(self) -> ClusterRows | None:
        return self._known

    def take_events(self) -> tuple[Event, ...]:
        events, self._events = self._events, ()
        return events

    def map_reduce(self, task: Callable[..., S], source: Source) -> S:
        """Sum of ``task(block, memory=...)``; other sources than its own are not remembered."""
        if source is not self._source:
            return self._executor.map_reduce(partial(task, memory=NoMemory()), source)

        def attempt(placement: Placement, losses: int) -> Any:
            client, known = placement.client, self._futures(placement, losses)
            shipped = send(client, task)  # once per pass; workers hand it on to each other
            both = [
                client.submit(visit_piece, shipped, piece.data, one, piece.first, pure=False)
                for piece, one in zip(placement.pieces, known, strict=True)
            ]
            fresh = tuple(client.submit(take_rows, one, pure=False) for one in both)
            sums = [client.submit(take_sum, one, pure=False) for one in both]
            total = self._executor.close_sums(placement, sums)
            lineage = Lineage() if self._known is None else self._known.lineage
            self._fresh = ClusterRows(fresh, lineage.followed_by(task))
            return total

        total: S = self._executor.run_until_done(source, attempt)
        return total

    def parts(self) -> ClusterParts | None:
        return None if self._known is None else ClusterParts(self)

    def store(self, state: Any) -> StoredRows | NotStored | None:
        if isinstance(state, ClusterRows) and not state.pieces and state.lineage.whole:
            return state.lineage.base  # as it came from a file
        if not isinstance(state, ClusterRows):
            return state  # type: ignore[no-any-return]
        self._known = state
        return self.gather(row_memory.STORED_BYTES)

    # ------------------------------------------------ what lies on the workers

    def gather(self, most: float) -> StoredRows | NotStored | None:
        """What is known, here, if it takes at most so many bytes; None if nothing is."""

        def attempt(placement: Placement, losses: int) -> Any:
            client, known = placement.client, self._futures(placement, losses)
            sizes = client.gather([client.submit(count_bytes, one, pure=False) for one in known])
            if sum(sizes) > most:
                return NotStored(int(sum(sizes)))
            parts = [one for one in client.gather(known) if one is not None]
            if not parts:
                return None
            values = np.concatenate([one.values for one in parts])
            return StoredRows(values, np.concatenate([one.starts for one in parts]))

        found: StoredRows | NotStored | None = self._executor.run_until_done(self._source, attempt)
        return found

    def sum_parts(self, change: Task, task: Callable[[Any], S]) -> S:
        """Sum of ``task(change(part))`` over the parts that are known, on the workers."""

        def attempt(placement: Placement, losses: int) -> Any:
            client, known = placement.client, self._futures(placement, losses)
            shipped = send(client, (change, task))
            return self._executor.close_sums(placement, [
                client.submit(sum_known, shipped, piece.data, one, piece.first, pure=False)
                for piece, one in zip(placement.pieces, known, strict=True)
            ])  # fmt: skip

        total: S = self._executor.run_until_done(self._source, attempt)
        return total

    def _shorten(self, state: ClusterRows) -> ClusterRows:
        """With rows in place of many tasks, or with neither where rows are too many."""
        if not (state.lineage.whole and state.lineage.is_long):
            return state
        self._known = state
        rows = self.gather(REPLAYED_BYTES)
        if isinstance(rows, NotStored):
            return replace(state, lineage=Lineage(whole=False))
        return replace(self._known, lineage=Lineage(rows))

    def _futures(self, placement: Placement, losses: int) -> list[Any]:
        """What is known of each piece; after a loss, or after a file was read, it is restored."""
        if self._known is None:
            return [None] * len(placement.pieces)
        held = self._known.pieces
        if not held or losses:
            alive = _alive(placement, held)
            held = tuple(
                self._restore(placement, piece) if one is None else one
                for piece, one in zip(placement.pieces, alive, strict=True)
            )
            self._known = replace(self._known, pieces=held)
        return list(held)

    def _restore(self, placement: Placement, piece: Piece) -> Any:
        """What was known of a piece, made again; None if that cannot be done."""
        assert self._known is not None
        client, lineage = placement.client, self._known.lineage
        if not lineage.whole:
            message = (
                "a worker was lost with what was known of its rows, which was too much to be kept "
                "elsewhere: it was made again, and the fit may end in other numbers than without "
                "the loss"
            )
            self._events = (Event("memory", message),)
            return client.submit(know_nothing, pure=False)
        one = None
        if lineage.base is not None:
            one = client.submit(cut_rows, send(client, lineage.base), piece.data, pure=False)
        for task in lineage.tasks:
            one = client.submit(visit_again, send(client, task), piece.data, one, pure=False)
        return one


class ClusterParts:
    """Parts on the workers; they are changed where they are summed."""

    def __init__(self, memory: ClusterMemory, changes: tuple[Task, ...] = ()) -> None:
        self._memory, self._changes = memory, changes

    def map(self, change: Callable[[Any], Any]) -> ClusterParts:
        return ClusterParts(self._memory, (*self._changes, change))

    def sum(self, task: Callable[[Any], S]) -> S:
        return self._memory.sum_parts(partial(_change, self._changes), task)


def _change(changes: tuple[Task, ...], part: Any) -> Any:
    for change in changes:
        part = change(part)
    return part


def _alive(placement: Placement, held: tuple[Any, ...]) -> list[Any]:
    """The futures that are still there, None in place of the others."""
    if not held:
        return [None] * len(placement.pieces)
    finished = [one for one in held if one.status == "finished"]
    try:
        holders = placement.client.who_has(finished) if finished else {}
    except lost_data_errors():
        return _alive(placement, held)  # one more went while we asked
    return [one if one.status == "finished" and holders.get(one.key) else None for one in held]


def _size_of(task: Task) -> int:
    """Bytes that a task takes, about."""
    sizes: list[int] = []
    body = pickle.dumps(task, 5, buffer_callback=lambda b: sizes.append(b.raw().nbytes))
    return len(body) + sum(sizes)


# ------------------------------------------------------------------ on a worker


def visit_piece(
    task: Task, blocks: list[Block], known: KnownRows | None, first: int
) -> tuple[TreeSum[Any], KnownRows | None]:
    """Sum over one piece, and what is known of its rows afterwards."""
    n_rows = sum(block.n_rows for block in blocks)
    memory = HeldRows(blocks[0].start if blocks else 0, n_rows)
    memory.resume(known)
    total: TreeSum[Any] = TreeSum(first)
    with single_threaded_blas():
        for block in blocks:
            total.add(run_on_block(partial(task, memory=memory), block))
    memory.accept()
    return total, memory.state


def visit_again(task: Task, blocks: list[Block], known: KnownRows | None) -> KnownRows | None:
    """What was known of the rows of a piece after a pass."""
    return visit_piece(task, blocks, known, 0)[1]


def take_sum(both: tuple[Any, Any]) -> Any:
    return both[0]


def take_rows(both: tuple[Any, Any]) -> Any:
    return both[1]


def know_nothing() -> None:
    return None


def count_bytes(known: KnownRows | None) -> int:
    return 0 if known is None else int(known.values.nbytes)


def cut_rows(stored: StoredRows, blocks: list[Block]) -> KnownRows | None:
    """What a file holds of the rows of a piece."""
    if not blocks:
        return None
    first, last = blocks[0].start, blocks[-1].rows.stop
    starts = stored.starts[(stored.starts >= first) & (stored.starts < last)]
    return KnownRows(stored.values[first:last].copy(), starts, first)


def sum_known(
    changed: tuple[Task, Task], blocks: list[Block], known: KnownRows | None, first: int
) -> TreeSum[Any]:
    """Sum of a task over the parts of a piece."""
    if blocks and known is None:
        raise ClusterError(
            "a worker was lost with what was known of its rows, which was too much to be kept "
            "elsewhere, before a step was made of it; fit again (from the checkpoint, if there is "
            "one)"
        )
    change, task = changed
    total: TreeSum[Any] = TreeSum(first)
    with single_threaded_blas():
        for part in [] if known is None else known.split():
            total.add(task(change(part)))
    return total
