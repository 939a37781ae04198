"""What is known of rows between passes: in memory, in a scratch file, on a cluster, in a file."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from mixfold.contracts import Array, Block, Context, Stats, Update
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.climb import climb
from mixfold.engine.executors import DaskExecutor, ThreadExecutor, dask_memory, row_memory
from mixfold.engine.executors.row_memory import (
    HeldRows,
    LocalMemory,
    NoMemory,
    NotStored,
    StoredRows,
    open_memory,
)
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.records import TopicParams
from mixfold.testing.compare import require_same
from mixfold.testing.toys import Bowl, BowlStats, Serial

N = 10


def rows_of(values: Array, starts: list[int]) -> HeldRows:
    memory = HeldRows(0, len(values))
    for a, b in zip(starts, [*starts[1:], len(values)], strict=True):
        memory.keep(slice(a, b), values[a:b])
    return memory


# ------------------------------------------------ the array


@pytest.mark.parametrize("limit", [2**30, 0], ids=["memory", "scratch file"])
def test_rows_are_recalled_in_any_cutting_once_they_are_accepted(monkeypatch, limit: int) -> None:
    monkeypatch.setattr(row_memory, "SCRATCH_BYTES", limit)
    values = np.arange(N * 3.0).reshape(N, 3)
    memory = rows_of(values, [0, 4, 7])
    assert memory.recall(slice(0, 4)) is None
    memory.accept()
    for a, b in ((0, 10), (2, 9), (5, 6), (3, 3)):
        np.testing.assert_array_equal(memory.recall(slice(a, b)), values[a:b])
    with pytest.raises(ValueError, match="read-only"):
        memory.recall(slice(0, 2))[:] = 0
    assert [len(part) for part in memory.state.split()] == [4, 3, 3]
    state = memory.state
    memory.keep(slice(0, 5), -values[:5])  # of a pass that is interrupted
    memory.resume(state)
    np.testing.assert_array_equal(memory.recall(slice(0, N)), values)
    memory.forget()
    assert memory.recall(slice(0, N)) is None


@pytest.mark.parametrize("starts", [[1, 4], [0, 4, 4]], ids=["one missing", "one twice"])
def test_a_pass_keeps_each_row_once(starts: list[int]) -> None:
    values = np.zeros((N, 2))
    memory = rows_of(values, [0, 4])
    memory.resume(None)
    for a, b in zip(starts, [4, 10, 10], strict=False):
        memory.keep(slice(a, b), values[a:b])
    with pytest.raises(RuntimeError, match="must keep each row once"):
        memory.accept()


def count_open_scratch() -> int:
    """Open files of the folder for temporary ones; other threads may open others meanwhile."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{number}").startswith(tempfile.gettempdir())
    return found


def test_a_scratch_file_is_gone_with_the_array(monkeypatch, tmp_path: Path) -> None:
    """It has no name even while it is used, so that a killed process leaves none."""
    monkeypatch.setattr(row_memory, "SCRATCH_BYTES", 100)
    monkeypatch.setattr(row_memory.tempfile, "tempdir", str(tmp_path))
    memory = rows_of(np.ones((N, 3)), [0])
    memory.accept()
    assert not isinstance(memory.state.values.base, type(None))
    assert not list(tmp_path.iterdir())
    opened = count_open_scratch() if os.path.exists("/proc/self/fd") else None
    del memory
    gc.collect()
    if opened is not None:
        assert count_open_scratch() == opened - 1


def test_threads_fill_one_array() -> None:
    values = np.random.default_rng(0).normal(size=(5000, 4))
    memory = HeldRows(0, 5000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda a: memory.keep(slice(a, a + 10), values[a : a + 10]),
                      range(0, 5000, 10)))  # fmt: skip
    memory.accept()
    np.testing.assert_array_equal(memory.recall(slice(0, 5000)), values)
    np.testing.assert_array_equal(memory.state.starts, np.arange(0, 5000, 10))


def test_models_that_ask_for_none_have_none() -> None:
    source = open_source(np.zeros((N, 2)))
    assert open_memory(Bowl(np.eye(2), np.ones(2), np.zeros(2)), source, Serial()) is None


# ------------------------------------------------ the climb


@dataclass(frozen=True)
class Counting(Bowl):
    """Remembers of each row how many passes have counted, and where the last of them was.

    Steps are too long by a factor, so that tentative ones are taken back.
    """

    remembers_rows: ClassVar[bool] = True
    tentative: bool = True

    def expect(self, reading: Any, block: Block, rng: Any, memory: Any = None) -> BowlStats:
        known = memory.recall(block.rows)
        counts = np.zeros(block.n_rows) if known is None else known[:, 0]
        where = np.tile(reading, (block.n_rows, 1))
        memory.keep(block.rows, np.column_stack([counts + 1, where]))
        return super().expect(reading, block, rng)

    def update(self, params: Array, stats: BowlStats, context: Context) -> Update[Array]:
        assert context.rows is not None
        seen = context.rows.sum(partial_where)
        np.testing.assert_allclose(seen.where / seen.weight, params)
        if not self.tentative:
            return super().update(params, stats, context)
        gradient, metric = self.derivatives(params, stats)
        if not context.length:
            return Update(params)
        fresh = params + context.length * metric.solve(gradient)
        return Update(fresh, length=context.length)


@dataclass(frozen=True)
class Where(Stats):
    where: Array
    weight: float


def partial_where(part: Array) -> Where:
    return Where(part[:, 1:].sum(axis=0), float(len(part)))


@pytest.mark.parametrize("tentative", [True, False])
@pytest.mark.parametrize("rule", [None, *ACCELERATIONS])
def test_a_rejected_proposal_leaves_no_trace(rule: str | None, tentative: bool) -> None:
    model = Counting(
        np.diag([1.0, 0.5]), np.array([0.125, 0.125]) if tentative else np.array([3.0, 0.3]),
        np.array([1.0, -9.0]), tentative=tentative,
    )  # fmt: skip
    source, executor = open_source(np.arange(20.0).reshape(N, 2)), Serial()
    task = Task(model, source, executor, None, 0, open_memory(model, source, executor))
    states: list[Climb] = []
    acceleration = None if rule is None else ACCELERATIONS[rule]
    done = climb(task, Climb(model.start), Rules(0.0, 25, acceleration), states.append)
    if tentative:
        assert done.n_passes > len(done.trace)  # some were taken back
    for state in states:
        assert (state.rows.values[:, 0] == len(state.trace)).all()
        np.testing.assert_array_equal(state.rows.values[:, 1:], np.tile(state.best, (N, 1)))


# ------------------------------------------------ whole fits


def documents(n: int = 300) -> Array:
    rng = np.random.default_rng(5)
    return rng.poisson(rng.dirichlet(np.ones(3), n) @ rng.dirichlet(np.full(12, 0.3), 3) * 25) * 1.0


def lda() -> LDAModel:
    rng = np.random.default_rng(6)
    return LDAModel(TopicParams(rng.gamma(1.0, size=(3, 12)) + 0.1, np.full(3, 0.4), 0.1))


PLAN = Plan(0.0, 9, n_candidates=1, seed=3)


class Cut:
    """The documents in blocks of so many."""

    def __init__(self, X: Array, size: int) -> None:
        self._whole, self._size = open_source(X), size
        self.n_samples, self.n_features = X.shape
        self.feature_names, self.dtype = None, X.dtype

    def blocks(self, max_rows: int | None = None) -> Any:
        [whole] = self._whole.blocks(len(documents()))
        for a in range(0, whole.n_rows, self._size):
            yield whole.part(a, min(a + self._size, whole.n_rows))


def fitted(source: Any = None, executor: Any = None, **other: Any) -> Fit:
    return fit(lda(), source or Cut(documents(), 40), executor or ThreadExecutor(1), PLAN, **other)


def test_blocks_do_not_matter() -> None:
    wanted = fitted(Cut(documents(), 300))
    for size in (7, 100, 299):
        found = fitted(Cut(documents(), size))
        require_same("blocks", found.params, wanted.params, 1e-9)


def test_threads_and_a_scratch_file_give_the_same_bits(monkeypatch) -> None:
    wanted = fitted()
    require_same("threads", fitted(executor=ThreadExecutor(3)).params, wanted.params)
    monkeypatch.setattr(row_memory, "SCRATCH_BYTES", 0)
    require_same("scratch", fitted(executor=ThreadExecutor(3)).params, wanted.params)


def test_a_fit_keeps_no_rows() -> None:
    assert fitted().climb.rows is None


class Elsewhere(Serial):
    """Visits rows as another process would, with nothing but what can be sent there."""

    def map_reduce(self, task: Any, source: Any) -> Any:
        return super().map_reduce(pickle.loads(pickle.dumps(task)), source)


def test_an_executor_of_other_processes_without_a_memory_is_told_of() -> None:
    found = fitted(executor=Elsewhere())
    assert [event.kind for event in found.events] == ["memory"]
    assert "offers no open_memory" in found.events[0].message
    assert isinstance(pickle.loads(pickle.dumps(LocalMemory(Cut(documents(), 9), Serial()))),
                      NoMemory)  # fmt: skip


# ------------------------------------------------ checkpoints


class Every(Checkpoint):
    """Writes at every offer, not now and then."""

    def offer(self, progressed: Any) -> None:
        self.write(progressed)


class Dying(ThreadExecutor):
    """Dies in a pass of this number, from 0 on."""

    def __init__(self, at: int) -> None:
        super().__init__(1)
        self.at = at

    def map_reduce(self, task: Any, source: Any) -> Any:
        if self.at == 0:
            raise MemoryError("the machine is gone")
        self.at -= 1
        return super().map_reduce(task, source)


def test_a_checkpoint_holds_what_is_known(tmp_path: Path) -> None:
    wanted, path = fitted(), tmp_path / "fit"
    with pytest.raises(MemoryError):
        fitted(executor=Dying(5), checkpoint=Every(path, {}))
    assert isinstance(Every(path, {}).read().climb.rows, StoredRows)
    found = fitted(executor=ThreadExecutor(2), checkpoint=Every(path, {}))
    require_same("resumed", found.params, wanted.params)
    require_same("resumed", found.trace, wanted.trace)
    assert not found.events


def test_what_is_too_much_for_a_checkpoint_is_made_again_with_an_event(
    tmp_path: Path, monkeypatch
) -> None:
    wanted, path = fitted(), tmp_path / "fit"
    monkeypatch.setattr(row_memory, "STORED_BYTES", 300 * 3 * 8 - 1)
    with pytest.raises(MemoryError):
        fitted(executor=Dying(5), checkpoint=Every(path, {}))
    assert Every(path, {}).read().climb.rows == NotStored(300 * 3 * 8)
    found = fitted(checkpoint=Every(path, {}))
    assert [event.kind for event in found.events] == ["memory"]
    assert "may end in other numbers" in found.events[0].message
    assert len(found.trace) == len(wanted.trace)
    np.testing.assert_allclose(found.objective, wanted.objective, rtol=1e-2)


# ------------------------------------------------ a cluster


def test_a_cluster_gives_the_same_bits(client) -> None:
    require_same("cluster", fitted(executor=DaskExecutor(client)).params, fitted().params)


def test_a_fit_goes_from_a_process_to_a_cluster_and_back(client, tmp_path: Path) -> None:
    wanted, path = fitted(), tmp_path / "fit"
    with pytest.raises(MemoryError):
        fitted(executor=Dying(4), checkpoint=Every(path, {}))

    class Stopping(Every):
        def write(self, progressed: Any) -> None:
            super().write(progressed)
            if progressed.climb.n_passes == 6:
                raise MemoryError("the client is gone")

    with pytest.raises(MemoryError):
        fitted(executor=DaskExecutor(client), checkpoint=Stopping(path, {}))
    assert isinstance(Every(path, {}).read().climb.rows, StoredRows)
    found = fitted(checkpoint=Every(path, {}))
    require_same("there and back", found.params, wanted.params)
    require_same("there and back", found.trace, wanted.trace)


@pytest.mark.parametrize("most", [64, 3], ids=["all passes", "three passes, then rows"])
def test_rows_that_were_lost_are_found_again_by_their_passes(client, monkeypatch, most) -> None:
    """All that is known of rows is cancelled before every third pass."""
    monkeypatch.setattr(dask_memory, "REPLAYED_PASSES", most)
    found, lost = fit_and_lose(client)
    assert lost == 3
    require_same("replayed", found.params, fitted().params)
    assert not found.events


def test_rows_that_were_lost_for_good_are_made_again_with_an_event(client, monkeypatch) -> None:
    monkeypatch.setattr(dask_memory, "REPLAYED_BYTES", 10)
    found, lost = fit_and_lose(client)
    assert lost == 3
    assert [event.kind for event in found.events] == ["memory"]
    assert "a worker was lost" in found.events[0].message
    np.testing.assert_allclose(found.objective, fitted().objective, rtol=1e-2)


def fit_and_lose(client: Any) -> tuple[Fit, int]:
    lost = 0

    class Losing(dask_memory.ClusterMemory):
        passes = 0

        def map_reduce(self, task: Any, source: Any) -> Any:
            nonlocal lost
            Losing.passes += 1
            if Losing.passes % 3 == 0 and self._known is not None:
                client.cancel(list(self._known.pieces))
                lost += 1
            return super().map_reduce(task, source)

    class Executor(DaskExecutor):
        def open_memory(self, source: Any) -> Any:
            return Losing(self, source)

    return fitted(executor=Executor(client)), lost


def test_passes_leave_nothing_on_the_scheduler(client) -> None:
    """The way in which rows became known is not kept there: it would grow with each pass."""
    counts: list[int] = []
    source, executor, model = Cut(documents(), 40), DaskExecutor(client), lda()
    memory = executor.open_memory(source)
    task = Task(model, source, executor, None, 0, memory)

    def look(state: Climb) -> None:
        counts.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    climb(task, Climb(model.first), Rules(0.0, 12), look)
    assert max(counts[6:]) <= max(counts[:6]) + 3


def test_a_batch_on_a_cluster_is_not_remembered(client) -> None:
    source = Cut(documents(), 40)
    memory, model = DaskExecutor(client).open_memory(source), lda()
    reading = model.prepare(model.first)
    other = Cut(documents(), 100)
    stats = memory.map_reduce(_Expect(model, reading), other)
    memory.accept()
    assert memory.state is None and stats.documents == 300
    with pytest.raises(RuntimeError, match="by their workers"):
        memory.keep(slice(0, 1), np.zeros((1, 3)))
    assert memory.recall(slice(0, 1)) is None


@dataclass(frozen=True)
class _Expect:
    model: LDAModel
    reading: Any

    def __call__(self, block: Block, memory: Any) -> Any:
        return self.model.expect(self.reading, block, None, memory)


def test_a_worker_that_dies_between_passes_changes_no_bit() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="needs Dask: pip install 'mixfold[dask]'"
    )
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0",
            host="127.0.0.1", silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        deaths = []

        def watch(state: Climb) -> None:
            if state.n_passes in (3, 7):
                pids = client.run(os.getpid)
                deaths.append(next(iter(pids.values())))
                os.kill(deaths[-1], signal.SIGKILL)

        model, executor, source = lda(), DaskExecutor(client), Cut(documents(), 40)
        task = Task(model, source, executor, None, 3, executor.open_memory(source))
        done = climb(task, Climb(model.first), Rules(0.0, 9), watch)
    assert len(deaths) == 2
    require_same("after deaths", done.best, fitted().params)
    assert replace(done, rows=None).reason == "max_iter"
