"""The executor of Dask clusters: rows stay on the workers, parameters and sums travel."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from mixfold.contracts import Block, Source, Stats
from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.engine.executors.cluster import (
    ClusterError,
    deadly_task,
    killed_worker_error,
    lost_data_errors,
    no_workers,
    send,
    usable_client,
)
from mixfold.engine.executors.dask_memory import ClusterMemory
from mixfold.engine.executors.placement import Placement
from mixfold.engine.executors.reduction import TreeSum
from mixfold.engine.executors.threads import run_on_block

S = TypeVar("S", bound=Stats)
R = TypeVar("R")

FAN_IN = 8  # partial sums joined by one task
RETRIES = 5  # times that one pass may lose data before the fit is given up
_AT_REST = {"memory", "released", "forgotten", "error"}
POLL_SECONDS, PATIENCE = 10.0, 6  # a cluster that does nothing is looked at so often in a row


class DaskExecutor:
    """Visit blocks on the workers of a Dask cluster.

    The rows are placed on the workers at the first pass over a source and stay there as
    long as the source lives. A worker that dies takes nothing with it but time: its rows
    are computed or sent again and the pass ends in the same sum, bit for bit.

    Parameters
    ----------
    client : distributed.Client, optional
        None means the current client at the time of a pass.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client
        self._placements: dict[int, tuple[weakref.ref[Source], Placement]] = {}

    def __repr__(self) -> str:
        return f"DaskExecutor(client={self.client!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> DaskExecutor:
        return DaskExecutor(self.client)  # a connection is shared, not copied

    def __reduce__(self) -> tuple[type[DaskExecutor], tuple[()]]:
        # A connection does not travel: a pickle finds the current client where it is loaded.
        return (DaskExecutor, ())

    def map_reduce(self, task: Callable[[Block], S], source: Source) -> S:
        """Sum of ``task(block)`` over the blocks of ``source``, in an index-ordered tree.

        Raises
        ------
        ClusterError
            If there is no cluster to work on, or it loses data again and again.
        """

        def attempt(placement: Placement, losses: int) -> S:
            total: S = wait_for(_sum_pieces(placement, task), placement.client)
            return total

        return self.run_until_done(source, attempt)

    def open_memory(self, source: Source) -> ClusterMemory:
        """A memory of the rows of a source, which lies beside them on the workers."""
        return ClusterMemory(self, source)

    def close_sums(self, placement: Placement, sums: list[Any]) -> Any:
        """The sum of futures of ``TreeSum``, one for each piece."""
        return wait_for(add_sums(placement.client, sums), placement.client)

    def run_until_done(self, source: Source, attempt: Callable[[Placement, int], R]) -> R:
        """``attempt(placement, losses)``, again after each loss of workers, a few times."""
        placement = self._place(source)
        losses = 0
        while True:
            try:
                if losses:
                    placement.restore()
                return attempt(placement, losses)
            except lost_data_errors() as error:
                losses = _one_more(losses, error)
            except killed_worker_error() as error:
                self._give_up(source, placement)
                raise deadly_task(error) from error

    def map_rows(self, task: Callable[[Block], R], source: Source) -> Iterator[R]:
        """``task(block)`` for each block, in row order; a few pieces are computed ahead."""
        placement = self._place(source)
        done = losses = 0
        while done < len(placement.pieces):
            try:
                if losses:
                    placement.restore()
                for results in _visit_pieces(placement, task, done):
                    done, losses = done + 1, 0
                    yield from results
            except lost_data_errors() as error:
                losses = _one_more(losses, error)
            except killed_worker_error() as error:
                self._give_up(source, placement)
                raise deadly_task(error) from error

    def _place(self, source: Source) -> Placement:
        client = usable_client(self.client)
        key = id(source)
        known = self._placements.get(key)
        if known is not None and known[0]() is source and known[1].client is client:
            return known[1]
        placement = Placement(client, source)
        placements = self._placements
        # When the source goes, so do its futures, and with them the rows on the workers.
        self._placements[key] = (
            weakref.ref(source, lambda _: placements.pop(key, None)),
            placement,
        )
        return placement

    def _give_up(self, source: Source, placement: Placement) -> None:
        # The scheduler remembers that these futures failed: another try needs new ones.
        self._placements.pop(id(source), None)
        placement.client.cancel([piece.data for piece in placement.pieces])


def _one_more(losses: int, error: BaseException) -> int:
    if losses == RETRIES:
        raise ClusterError(
            f"workers of the Dask cluster were lost {losses + 1} times during one pass over the "
            "data; see the workers' logs (most often they run out of memory: give them more, or "
            "use smaller partitions)"
        ) from error
    return losses + 1


# ------------------------------------------------------------------ one pass, from the client


def _sum_pieces(placement: Placement, task: Callable[[Block], S]) -> Any:
    """Future of the sum over all pieces: one task per piece, then a tree of joins."""
    client, pieces = placement.client, placement.pieces
    shipped = send(client, task)  # once per pass; workers hand it on to each other
    return add_sums(client, [
        client.submit(sum_piece, shipped, piece.data, piece.first, pure=False) for piece in pieces
    ])  # fmt: skip


def add_sums(client: Any, sums: list[Any]) -> Any:
    """Future of the sum of ``TreeSum``s of neighbouring pieces."""
    if not sums:
        raise ValueError("the data gave no blocks: there are no rows to sum over")
    while len(sums) > FAN_IN:
        sums = [
            client.submit(join_sums, sums[i : i + FAN_IN], pure=False)
            for i in range(0, len(sums), FAN_IN)
        ]
    return client.submit(close_sums, sums, pure=False)


def wait_for(future: Any, client: Any) -> Any:
    """The result of a future, as long as somebody works on it.

    A cluster that has lost all its workers is an error. A scheduler that has lost track of a task
    (distributed can, where a worker dies with data that was sent to it) has lost data: the pass is
    tried again.
    """
    try:
        idle, workers, seconds = 0, None, POLL_SECONDS
        while idle < PATIENCE:
            try:
                return future.result(timeout=seconds)
            except TimeoutError:
                if future.done() and future.status == "error":  # of the task itself
                    raise
                if future.done():  # the result is on its way, which takes as long as it takes
                    seconds *= 2
                    continue
            workers = client.scheduler_info()["workers"].values()
            idle = 0 if any(map(_is_busy, workers)) else idle + 1
        if not workers:
            raise no_workers(client)
        raise CancelledError("the scheduler has workers, and none of them works on the task")
    except BaseException:
        # And with it everything that only it needs. Best effort: the cluster may be gone, and
        # the error under way says more.
        with contextlib.suppress(Exception):
            future.cancel()
        raise


def _is_busy(worker: dict[str, Any]) -> bool:
    """Whether a worker runs, fetches or is about to run a task, by its last report."""
    counts = worker.get("metrics", {}).get("task_counts")
    # a worker that has not reported yet may well be
    return counts is None or any(n for state, n in counts.items() if state not in _AT_REST)


def _visit_pieces(
    placement: Placement, task: Callable[[Block], R], first: int
) -> Iterator[list[R]]:
    """The results of each piece from ``first`` on, with a bounded number under way."""
    client = placement.client
    shipped = send(client, task)  # once per pass; workers hand it on to each other
    ahead = 2 * max(1, sum(client.nthreads().values()))
    pending: deque[Any] = deque()
    for piece in placement.pieces[first:]:
        pending.append(client.submit(visit_piece, shipped, piece.data, pure=False))
        if len(pending) >= ahead:
            yield wait_for(pending.popleft(), client)
    while pending:
        yield wait_for(pending.popleft(), client)


# ------------------------------------------------------------------ on a worker


def sum_piece(task: Callable[[Block], S], blocks: list[Block], first: int) -> TreeSum[S]:
    """Sum over one piece, the first block of which is block ``first`` of the pass."""
    total: TreeSum[S] = TreeSum(first)
    with single_threaded_blas():
        for block in blocks:
            total.add(run_on_block(task, block))
    return total


def visit_piece(task: Callable[[Block], R], blocks: list[Block]) -> list[R]:
    """The results for the blocks of one piece."""
    with single_threaded_blas():
        return [run_on_block(task, block) for block in blocks]


def join_sums(sums: list[TreeSum[S]]) -> TreeSum[S]:
    """Neighbouring ranges of blocks as one range."""
    total: TreeSum[S] = TreeSum(sums[0].start)
    for part in sums:
        total.extend(part)
    return total


def close_sums(sums: list[TreeSum[S]]) -> S:
    """The sum over all blocks."""
    return join_sums(sums).result()
