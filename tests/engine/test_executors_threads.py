"""Threads: the same result for any number, in order, and nothing left running."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from mixfold.contracts import Block, Stats
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.executors.blas import release_control, single_threaded_blas
from mixfold.engine.executors.threads import LOOK_AHEAD


@dataclass(frozen=True)
class Total(Stats):
    value: Any


class Rows:
    """Blocks of one row; counts how many were read."""

    feature_names = None
    dtype = np.dtype(float)
    n_features = 1

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(n, 1)) * 10.0 ** rng.integers(-8, 9, size=(n, 1))
        self.n_samples = n
        self.read = 0
        self.closed = False

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        try:
            for i in range(self.n_samples):
                self.read += 1
                yield Block(self.X[i : i + 1], start=i)
        finally:
            self.closed = True


def total(block: Block) -> Total:
    return Total(block.X.sum(axis=0))


def shuffled(block: Block) -> Total:
    time.sleep(0.002 * ((block.start * 7) % 5))  # completion out of order
    return total(block)


def blas_threads() -> list[int]:
    info = threadpoolctl.threadpool_info()
    return [library["num_threads"] for library in info if library["user_api"] == "blas"]


# ------------------------------------------------------------------ results


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_sum_has_the_same_bits_for_any_number_of_threads(n: int) -> None:
    wanted = ThreadExecutor(1).map_reduce(total, Rows(n)).value
    for n_jobs in (2, 3, 8):
        assert ThreadExecutor(n_jobs).map_reduce(shuffled, Rows(n)).value == wanted


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_rows_come_in_order(n_jobs: int) -> None:
    source = Rows(60)
    got = list(ThreadExecutor(n_jobs).map_rows(shuffled, source))
    assert [part.value[0] for part in got] == source.X[:, 0].tolist()


def test_tasks_run_in_several_threads_at_once() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def meet(block: Block) -> Total:
        meeting.wait()  # passes only if three blocks are under way together
        return total(block)

    ThreadExecutor(3).map_reduce(meet, Rows(6))


def test_one_job_runs_in_the_calling_thread() -> None:
    threads = ThreadExecutor(1).map_rows(lambda block: threading.get_ident(), Rows(3))
    assert set(threads) == {threading.get_ident()}


def test_threads_are_kept_between_passes() -> None:
    executor = ThreadExecutor(2)
    passes = [
        set(executor.map_rows(lambda block: threading.get_ident(), Rows(50))) for _ in range(5)
    ]
    assert len(set.union(*passes)) <= 2
    assert threading.get_ident() not in set.union(*passes)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_reading_ahead_is_bounded(n_jobs: int) -> None:
    source = Rows(100)
    results = ThreadExecutor(n_jobs).map_rows(total, source)
    next(results)
    assert source.read <= LOOK_AHEAD * n_jobs
    results.close()  # type: ignore[attr-defined]
    assert source.closed


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_rows_is_an_error(n_jobs: int) -> None:
    with pytest.raises(ValueError, match="no blocks"):
        ThreadExecutor(n_jobs).map_reduce(total, Rows(0))


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_error_of_a_task_names_the_rows_and_stops_the_pass(n_jobs: int) -> None:
    running = set()

    def fail(block: Block) -> Total:
        running.add(block.start)
        if block.start in (7, 8):
            raise ArithmeticError(f"bad {block.start}")
        time.sleep(0.002)
        running.discard(block.start)
        return total(block)

    source = Rows(200)
    before = blas_threads()
    with pytest.raises(ArithmeticError, match="bad 7") as caught:  # the first in row order
        ThreadExecutor(n_jobs).map_reduce(fail, source)
    assert caught.value.__notes__ == ["while visiting rows 7 to 7"]
    assert running <= {7, 8}  # nothing is still under way
    assert source.read <= 8 + LOOK_AHEAD * n_jobs and source.closed
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_of_the_source_is_passed_on(n_jobs: int) -> None:
    class Broken(Rows):
        def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
            yield from list(super().blocks())[:3]
            raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        ThreadExecutor(n_jobs).map_reduce(total, Broken(9))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell lets what it runs in the background ignore SIGINT; Python then does too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_keyboard_interrupt_ends_the_pass(n_jobs: int, interruptible: None) -> None:
    """The signal arrives during a block; the pass ends with it and the executor lives on."""
    lock = threading.Lock()
    under_way = 0
    main = threading.main_thread().ident
    assert main is not None

    def slow(block: Block) -> Total:
        nonlocal under_way
        with lock:
            under_way += 1
        try:
            if block.start == 4:
                signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.02)
            return total(block)
        finally:
            with lock:
                under_way -= 1

    executor, source, before = ThreadExecutor(n_jobs), Rows(500), blas_threads()
    with pytest.raises(KeyboardInterrupt):
        executor.map_reduce(slow, source)
    assert under_way == 0
    assert source.read < 30
    assert blas_threads() == before
    assert executor.map_reduce(total, Rows(3)).value == Rows(3).X.sum()


# ------------------------------------------------------------------ BLAS


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_inside_and_what_it_had_outside(n_jobs: int) -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        seen = list(ThreadExecutor(n_jobs).map_rows(lambda block: blas_threads(), Rows(4)))
        assert all(set(counts) == {1} for counts in seen)
        assert set(blas_threads()) == {2}


@pytest.fixture
def two_blas_threads() -> Iterator[None]:
    """BLAS set to two threads, by nobody who still has a say in it."""
    limits = threadpoolctl.threadpool_limits(2, user_api="blas")
    release_control()
    yield
    release_control()
    limits.restore_original_limits()
    release_control()


def test_overlapping_passes_restore_blas_once_both_are_over(two_blas_threads: None) -> None:
    """Also when the last to end is not in the thread of the first to begin."""
    first_inside, first_may_end = threading.Event(), threading.Event()

    def first() -> None:
        with single_threaded_blas():
            first_inside.set()
            first_may_end.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    assert first_inside.wait(10)
    with single_threaded_blas():
        first_may_end.set()
        thread.join()
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_an_iterator_closed_by_another_thread_restores_blas(two_blas_threads: None) -> None:
    results = ThreadExecutor(1).map_rows(total, Rows(4))
    next(results)
    assert set(blas_threads()) == {1}
    thread = threading.Thread(target=results.close)  # type: ignore[attr-defined]
    thread.start()
    thread.join()
    assert set(blas_threads()) == {2}


# ------------------------------------------------------------------ copies


def test_copies_and_pickles_work_after_use() -> None:
    executor = ThreadExecutor(2)
    executor.map_reduce(total, Rows(5))
    for other in (copy.deepcopy(executor), pickle.loads(pickle.dumps(executor))):
        assert repr(other) == "ThreadExecutor(n_jobs=2)"
        assert other.map_reduce(total, Rows(5)).value == executor.map_reduce(total, Rows(5)).value
