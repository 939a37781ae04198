"""Workers of a Dask cluster die in the middle of a pass: the result is the same, bit for bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block, Source, Stats
from mixfold.engine.executors import ClusterError, DaskExecutor, ThreadExecutor, cluster
from mixfold.engine.executors import dask as dask_executor
from mixfold.engine.sources import open_source

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask

    # A local cluster looks 15 s after a death whether the worker is back, and dismisses it for
    # good if it happens to be dying once more.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def two_workers(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "POLL_SECONDS", 1.0)  # a stalled scheduler is seen sooner
    client.wait_for_workers(2, timeout=20)


def make_task(deaths: Path | None = None, at: int = -1, times: int = 1) -> Callable[[Block], Any]:
    """Sum of rows; the worker that comes to row ``at`` is killed, ``times`` times."""

    @dataclass(frozen=True)
    class Total(Stats):
        value: Any

    def task(block: Block) -> Any:
        if deaths is not None and block.start == at:
            died = len(list(deaths.iterdir()))
            if died < times:
                (deaths / str(died)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return Total(block.X.sum(axis=0))

    return task


def make_source(kind: str) -> Source:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3)) * 10.0 ** rng.integers(-8, 9, size=(20_000, 3))
    if kind == "array":
        return open_source(X)
    import dask.array as da

    return open_source(da.from_array(X, chunks=(3000, 3), name=False))


@pytest.mark.parametrize("kind", ["array", "dask array"])
def test_worker_killed_during_a_pass(client: Any, tmp_path: Path, kind: str) -> None:
    source = make_source(kind)
    starts = [block.start for block in source.blocks()]
    wanted = ThreadExecutor(1).map_reduce(make_task(), source).value.tobytes()
    executor = DaskExecutor(client)
    assert executor.map_reduce(make_task(), source).value.tobytes() == wanted
    got = executor.map_reduce(make_task(tmp_path, starts[-3]), source)
    assert len(list(tmp_path.iterdir())) == 1, "no worker was killed: the test shows nothing"
    assert got.value.tobytes() == wanted
    # And the pass after it.
    assert executor.map_reduce(make_task(), source).value.tobytes() == wanted


@pytest.mark.parametrize("kind", ["array", "dask array"])
def test_worker_killed_while_rows_come_back(client: Any, tmp_path: Path, kind: str) -> None:
    source = make_source(kind)
    blocks = list(source.blocks())
    task = make_task(tmp_path, blocks[len(blocks) // 2].start)
    got = list(DaskExecutor(client).map_rows(task, source))
    assert len(list(tmp_path.iterdir())) == 1
    assert [part.value.tobytes() for part in got] == [
        block.X.sum(axis=0).tobytes() for block in blocks
    ]


def test_all_workers_killed_between_passes(client: Any) -> None:
    source, executor = make_source("array"), DaskExecutor(client)
    wanted = executor.map_reduce(make_task(), source).value.tobytes()
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert executor.map_reduce(make_task(), source).value.tobytes() == wanted


def test_cluster_restarted_between_passes(client: Any) -> None:
    source, executor = make_source("dask array"), DaskExecutor(client)
    wanted = executor.map_reduce(make_task(), source).value.tobytes()
    client.restart()
    assert executor.map_reduce(make_task(), source).value.tobytes() == wanted


def test_rows_that_kill_every_worker_are_an_error(client: Any, tmp_path: Path) -> None:
    source = make_source("dask array")
    task, executor = make_task(tmp_path, at=3000, times=1000), DaskExecutor(client)
    set_allowed_failures(client, 0)
    # which of the two is seen first is a race between the scheduler and the client
    either = r"died one after the other on the same rows|lost \d+ times during one pass"
    with pytest.raises(ClusterError, match=either):
        executor.map_reduce(task, source)
    assert 1 <= len(list(tmp_path.iterdir())) <= dask_executor.RETRIES + 1
    # The executor is none the worse for it.
    set_allowed_failures(client, 3)
    wanted = ThreadExecutor(1).map_reduce(make_task(), source).value.tobytes()
    assert executor.map_reduce(make_task(), source).value.tobytes() == wanted


def set_allowed_failures(client: Any, number: int) -> None:
    def change(dask_scheduler: Any) -> None:
        dask_scheduler.allowed_failures = number

    client.run_on_scheduler(change)


# ------------------------------------------------------------------ bounds, without a cluster


def test_losses_are_bounded(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = 0

    def lose(*args: Any) -> Any:
        nonlocal passes
        passes += 1
        raise CancelledError("lost")

    monkeypatch.setattr(dask_executor, "_sum_pieces", lose)
    monkeypatch.setattr(dask_executor, "_visit_pieces", lose)
    executor, source = DaskExecutor(client), make_source("array")
    with pytest.raises(ClusterError, match="lost 6 times during one pass"):
        executor.map_reduce(make_task(), source)
    assert passes == 6
    with pytest.raises(ClusterError, match="lost 6 times during one pass"):
        list(executor.map_rows(make_task(), source))
    assert passes == 12


@pytest.mark.parametrize("alive", [False, True], ids=["no workers", "idle workers"])
def test_a_cluster_that_does_nothing_is_not_waited_for(
    alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "POLL_SECONDS", 0.0)

    def worker(**counts: int) -> dict[str, Any]:
        return {"metrics": {"task_counts": counts}}

    idle = {"a": worker(memory=3)} if alive else {}
    busy = {"a": worker(memory=3, executing=1), "b": worker()}
    states = [busy, idle, idle, {"a": {}}, *[idle] * dask_executor.PATIENCE]

    class Client:
        scheduler = type("Scheduler", (), {"address": "tcp://nowhere"})

        def scheduler_info(self) -> dict[str, Any]:
            return {"workers": states[0]}

    class Never:
        cancelled = False

        def result(self, timeout: float) -> Any:
            if self.asked:
                states.pop(0)
            self.asked = True
            raise TimeoutError

        asked = False

        def done(self) -> bool:
            return False

        def cancel(self) -> None:
            self.cancelled = True

    future = Never()
    if alive:  # what was lost is computed again
        with pytest.raises(CancelledError, match="none of them works"):
            dask_executor.wait_for(future, Client())
    else:
        with pytest.raises(ClusterError, match="tcp://nowhere has no workers; start some"):
            dask_executor.wait_for(future, Client())
    assert len(states) == 1 and future.cancelled


def test_sending_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(cluster, "time", SimpleNamespace(sleep=waited.append))

    class Flaky:
        scheduler = type("Scheduler", (), {"address": "tcp://nowhere"})

        def __init__(self, failures: int) -> None:
            self.failures = failures

        def scatter(self, values: list[Any], hash: bool) -> list[Any]:
            self.failures -= 1
            if self.failures >= 0:
                raise OSError("connection refused")
            return values

    assert cluster.send(Flaky(2), "value") == "value"
    assert waited == [0.2, 0.4]
    with pytest.raises(ClusterError, match=r"took no data in 3 attempts.*connection refused"):
        cluster.send(Flaky(3), "value")
