"""The executor of threads of this process; numpy and numba release the GIL."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from mixfold.contracts import Block, Source, Stats
from mixfold.engine.executors.blas import pin_this_thread, single_threaded_blas
from mixfold.engine.executors.reduction import tree_sum

S = TypeVar("S", bound=Stats)
R = TypeVar("R")

# Blocks handed out per thread: enough that none waits for the reader, few enough that the
# blocks of a file in flight stay small.
LOOK_AHEAD = 3


class ThreadExecutor:
    """Visit blocks in threads, with results summed or given back in row order.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads. None or -1 means all the cores this process may use, -2 all but
        one, and so on; 1 runs in the calling thread. The result does not depend on it.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.n_threads = count_threads(n_jobs)
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = -1

    def __repr__(self) -> str:
        return f"ThreadExecutor(n_jobs={self.n_jobs})"

    def __reduce__(self) -> tuple[type[ThreadExecutor], tuple[int | None]]:
        # Copies and pickles (clones of estimators) make their own threads when they need them.
        return (ThreadExecutor, (self.n_jobs,))

    def map_reduce(self, task: Callable[[Block], S], source: Source) -> S:
        """Sum of ``task(block)`` over the blocks of ``source``, in an index-ordered tree."""
        with closing(self._results(task, source)) as results:
            return tree_sum(results)

    def map_rows(self, task: Callable[[Block], R], source: Source) -> Iterator[R]:
        """``task(block)`` for each block, in row order.

        BLAS stays limited to one thread until the iterator is exhausted or closed.
        """
        return self._results(task, source)

    def _results(self, task: Callable[[Block], R], source: Source) -> Generator[R, None, None]:
        blocks = iter(source.blocks())
        with single_threaded_blas(), closed_at_the_end(blocks):
            if self.n_threads == 1:
                for block in blocks:
                    yield run_on_block(task, block)
            else:
                yield from self._run_in_pool(task, blocks)

    def _run_in_pool(self, task: Callable[[Block], R], blocks: Iterator[Block]) -> Iterator[R]:
        pool = self._get_pool()
        pending: deque[Future[R]] = deque()
        try:
            for block in blocks:
                pending.append(pool.submit(run_on_block, task, block))
                if len(pending) >= LOOK_AHEAD * self.n_threads:
                    yield take_first(pending)
            while pending:
                yield take_first(pending)
        finally:
            # Only after an error, Ctrl-C or an abandoned iterator is anything left: nothing
            # of this pass may still run when the caller goes on.
            for future in pending:
                future.cancel()
            wait(pending)

    def _get_pool(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_pid != os.getpid():  # threads do not survive a fork
            self._pool = ThreadPoolExecutor(
                self.n_threads, thread_name_prefix="mixfold", initializer=pin_this_thread
            )
            self._pool_pid = os.getpid()
        return self._pool


def run_on_block(task: Callable[[Block], R], block: Block) -> R:
    """``task(block)``; an error says which rows it met."""
    try:
        return task(block)
    except Exception as error:
        error.add_note(f"while visiting rows {block.rows.start} to {block.rows.stop - 1}")
        raise


def take_first(pending: deque[Future[R]]) -> R:
    """The oldest result; its future leaves the queue only once it is done."""
    result = pending[0].result()
    pending.popleft()
    return result


@contextmanager
def closed_at_the_end(iterator: Iterator[Any]) -> Iterator[None]:
    """Close the iterator on exit if it can be closed: a generator over a file can."""
    try:
        yield
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


# ------------------------------------------------------------------ how many threads


def count_threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` asks for.

    Raises
    ------
    TypeError, ValueError
        If ``n_jobs`` is not a whole number other than zero.
    """
    if n_jobs is None:
        return available_cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(
            f"n_jobs must be a whole number or None (all cores); got {n_jobs!r} of type "
            f"{type(n_jobs).__name__}"
        )
    jobs = int(n_jobs)
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread, None or -1 for all cores")
    return jobs if jobs > 0 else max(1, available_cores() + 1 + jobs)


def available_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores this process may use: its affinity, bounded by a container's CPU quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _cgroup_quota(cgroup)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _cgroup_quota(root: Path) -> float | None:
    """Cores' worth of time granted by Linux control groups, version 2 or 1; None if unlimited."""
    try:
        if (root / "cpu.max").exists():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        return None if quota == "max" or int(quota) <= 0 else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None  # not Linux, or no such file: no quota is known
