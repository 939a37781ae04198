"""A Dask cluster gives the same bits as threads, moves data once, and explains itself."""

from __future__ import annotations

import copy
import gc
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block, Source, Stats
from mixfold.engine.executors import ClusterError, DaskExecutor, ThreadExecutor, resolve_executor
from mixfold.engine.executors import dask as dask_executor
from mixfold.engine.sources import open_source

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")


def make_task() -> Callable[[Block], Any]:
    """Made in here so that it travels by value: workers need not find the tests."""

    @dataclass(frozen=True)
    class Total(Stats):
        value: Any
        rows: int

    def task(block: Block) -> Any:
        weight = block.weights()
        return Total(weight @ np.nan_to_num(np.asarray(block.X)), block.n_rows)

    return task


def wide_range(n: int, columns: int = 3) -> Any:
    """Numbers whose sum depends on the order of the additions."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, columns)) * 10.0 ** rng.integers(-8, 9, size=(n, columns))


def sources() -> dict[str, Callable[[], Source]]:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    X, weight = wide_range(9000), np.random.default_rng(2).uniform(size=9000)
    chunks = ((100, 2500, 1, 4000, 1024, 1375), 3)
    frame = pd.DataFrame(X, columns=["a", "b", "w"]).assign(w=weight)
    return {
        "array": lambda: open_source(X, weight=weight),
        "dask array": lambda: open_source(da.from_array(X, chunks=chunks), weight=weight),
        "dask frame": lambda: open_source(dd.from_pandas(frame, npartitions=3), weight="w"),
    }


@pytest.mark.parametrize("kind", ["array", "dask array"])
def test_same_bits_as_threads(client: Any, kind: str) -> None:
    source, task = sources()[kind](), make_task()
    wanted = ThreadExecutor(2).map_reduce(task, source)
    executor = DaskExecutor()
    for _ in range(2):
        got = executor.map_reduce(task, source)
        assert got.rows == 9000
        assert got.value.tobytes() == wanted.value.tobytes()


def test_same_sum_as_threads_for_a_frame(client: Any) -> None:
    """Up to rounding: pandas may lay out a partition in another way once it has travelled."""
    source, task = sources()["dask frame"](), make_task()
    wanted, got = (
        ThreadExecutor(2).map_reduce(task, source),
        DaskExecutor().map_reduce(task, source),
    )
    scale = sum(block.weights() @ abs(block.X) for block in source.blocks())
    assert np.all(abs(got.value - wanted.value) <= 1e-13 * scale)


@pytest.mark.parametrize("kind", ["array", "dask array"])
def test_rows_come_in_order(client: Any, kind: str) -> None:
    source = sources()[kind]()
    starts = list(DaskExecutor(client).map_rows(lambda block: block.start, source))
    assert starts == [block.start for block in source.blocks()]
    assert starts == sorted(starts) and len(starts) > 8


def test_many_pieces_are_joined_on_the_workers(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixfold.engine.executors.placement.PIECE_BLOCKS", 1)
    monkeypatch.setattr(dask_executor, "FAN_IN", 2)
    source, task = open_source(wide_range(11_000)), make_task()
    wanted = ThreadExecutor(1).map_reduce(task, source)
    got = DaskExecutor(client).map_reduce(task, source)
    assert got.value.tobytes() == wanted.value.tobytes()


def test_data_is_sent_once_and_freed_with_the_source(client: Any) -> None:
    class Counted:
        n_samples, n_features, feature_names, dtype = 3000, 2, None, np.dtype(float)
        passes = 0

        def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
            self.passes += 1
            return open_source(np.ones((3000, 2))).blocks()

    def held() -> int:
        return sum(key.startswith("list-") for keys in client.has_what().values() for key in keys)

    gc.collect()
    before = held()
    source, executor = Counted(), DaskExecutor(client)
    for _ in range(3):
        assert executor.map_reduce(make_task(), source).rows == 3000
    assert list(executor.map_rows(lambda block: block.n_rows, source)) == [1024, 1024, 952]
    assert source.passes == 1
    assert held() > before
    del source
    gc.collect()
    deadline = time.monotonic() + 10
    while held() != before and time.monotonic() < deadline:
        time.sleep(0.02)  # the release travels by way of the scheduler
    assert held() == before


def test_dask_partitions_are_computed_once(client: Any, tmp_path: Any) -> None:
    import dask.array as da

    log = str(tmp_path / "log")

    def compute(part: Any) -> Any:
        with open(log, "a") as file:
            file.write("x")
        return part

    X = da.from_array(wide_range(4000), chunks=(1000, 3)).map_blocks(compute, meta=np.empty((0, 0)))
    source, executor = open_source(X), DaskExecutor(client)
    open(log, "w").close()
    for _ in range(3):
        executor.map_reduce(make_task(), source)
    with open(log) as file:
        assert file.read() == "xxxx"


def test_blas_has_one_thread_on_the_workers(client: Any) -> None:
    def threads(block: Block) -> set[int]:
        import threadpoolctl

        info = threadpoolctl.threadpool_info()
        return {library["num_threads"] for library in info if library["user_api"] == "blas"}

    def more() -> None:
        import threadpoolctl

        threadpoolctl.threadpool_limits(2, user_api="blas")
        from mixfold.engine.executors.blas import release_control

        release_control()

    client.run(more)
    source = open_source(np.ones((5000, 2)))
    assert list(DaskExecutor(client).map_rows(threads, source)) == [{1}] * 5


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("kind", ["array", "dask array"])
def test_error_of_a_task_names_the_rows(client: Any, kind: str) -> None:
    source = sources()[kind]()
    start = [block.start for block in source.blocks()][3]

    def fail(block: Block) -> Any:
        if block.start == start:
            raise ArithmeticError("bad rows")
        return None if block.n_rows == 0 else Stats()

    executor = DaskExecutor(client)
    for run in (executor.map_reduce, lambda *args: list(executor.map_rows(*args))):
        with pytest.raises(ArithmeticError, match="bad rows") as caught:
            run(fail, source)
        assert any(f"while visiting rows {start} to" in n for n in caught.value.__notes__)


def test_bad_entries_of_a_dask_array_are_the_users_error(client: Any) -> None:
    import dask.array as da

    X = np.ones((4000, 2))
    X[3210, 1] = np.inf
    with pytest.raises(ValueError, match="3210"):
        DaskExecutor(client).map_reduce(make_task(), open_source(da.from_array(X, chunks=1000)))


def test_no_rows_is_an_error(client: Any) -> None:
    class Nothing:
        n_samples, n_features, feature_names, dtype = 0, 2, None, np.dtype(float)

        def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
            return iter(())

    with pytest.raises(ValueError, match="no blocks"):
        DaskExecutor(client).map_reduce(make_task(), Nothing())


# ------------------------------------------------------------------ which client


def test_resolve_and_copies(client: Any) -> None:
    source = open_source(np.ones((3000, 2)))
    named = resolve_executor(client, None, source)
    assert isinstance(named, DaskExecutor) and named.client is client
    current = resolve_executor("dask", None, source)
    assert isinstance(current, DaskExecutor)
    for executor in (current, copy.deepcopy(named), pickle.loads(pickle.dumps(named))):
        assert executor.map_reduce(make_task(), source).rows == 3000


def test_closed_client_is_explained(client: Any) -> None:
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    other.close()
    with pytest.raises(ClusterError, match="must be connected; its status is 'closed'"):
        DaskExecutor(other).map_reduce(make_task(), open_source(np.ones((30, 2))))


def test_no_workers_is_explained(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def scatter(*args: Any, **kwargs: Any) -> None:
        raise TimeoutError("No valid workers found")

    monkeypatch.setattr(client, "scatter", scatter)
    with pytest.raises(ClusterError, match="has no workers; start some"):
        DaskExecutor(client).map_reduce(make_task(), open_source(np.ones((30, 2))))
