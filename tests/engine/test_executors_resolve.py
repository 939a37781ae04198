"""From what a user wrote to an executor, and to a number of threads."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Executor, Stats
from mixfold.engine.executors import ClusterError, ThreadExecutor, resolve_executor
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.executors.threads import available_cores, count_threads
from mixfold.engine.sources import open_source
from mixfold.engine.sources.features import FeatureSource
from mixfold.testing.toys import Serial


def test_numbers_of_jobs() -> None:
    cores = available_cores()
    assert count_threads(None) == count_threads(-1) == cores
    assert count_threads(-2) == max(1, cores - 1)
    assert count_threads(-1000) == 1
    assert count_threads(np.int64(3)) == 3  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        ThreadExecutor(0)
    for wrong in ("2", 2.0, True):
        with pytest.raises(TypeError, match="n_jobs must be a whole number"):
            ThreadExecutor(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_quota_of_a_container(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    unlimited = available_cores(tmp_path / "nothing")
    assert available_cores(tmp_path) == (unlimited if limit is None else limit)


# ------------------------------------------------------------------ resolve


def test_resolve() -> None:
    large, small = open_source(np.ones((3000, 2))), open_source(np.ones((30, 2)))
    threads = resolve_executor("threads", 3, large)
    assert isinstance(threads, ThreadExecutor) and threads.n_threads == 3
    one = resolve_executor("threads", 3, small)
    assert isinstance(one, ThreadExecutor) and one.n_threads == 1
    own: Executor = ThreadExecutor(2)
    assert resolve_executor(own, None, large) is own


@pytest.mark.parametrize(
    ("spec", "n_jobs", "error", "words"),
    [
        ("processes", None, ValueError, "executor must be 'threads', 'dask'.*got 'processes'"),
        (None, None, TypeError, "got None of type NoneType"),
        (ThreadExecutor, None, TypeError, "of type type"),
        ("threads", 0, ValueError, "n_jobs must not be 0"),
        (ThreadExecutor(2), 2, ValueError, "n_jobs is the number of threads"),
        ("dask", 2, ValueError, "n_jobs is the number of threads"),
    ],
)
def test_resolve_explains(spec: Any, n_jobs: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        resolve_executor(spec, n_jobs, open_source(np.ones((30, 2))))


def test_no_client_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="needs Dask: pip install 'mixfold[dask]'"
    )

    def none() -> None:
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    executor = resolve_executor("dask", None, open_source(np.ones((30, 2))))
    with pytest.raises(ClusterError, match="there is no current client; make one"):
        executor.map_reduce(lambda block: Stats(), open_source(np.ones((30, 2))))


def test_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    executor = resolve_executor("dask", None, open_source(np.ones((30, 2))))
    with pytest.raises(ClusterError, match=r"pip install 'mixfold\[dask\]'"):
        executor.map_reduce(lambda block: Stats(), open_source(np.ones((30, 2))))


def test_cores_where_affinity_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for counted, cores in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda counted=counted: counted)
        assert available_cores(tmp_path / "nothing") == cores


def test_rows_seen_through_a_map_are_mapped_where_they_are_visited() -> None:
    X = np.arange(12.0).reshape(6, 2)
    source, visited = open_source(X), []

    def double(rows: Any) -> Any:
        visited.append(len(rows))
        return 2 * rows

    class Spy(Serial):
        def map_rows(self, task: Any, source: Any) -> Any:
            assert not isinstance(source, FeatureSource)  # the map goes with the task
            return super().map_rows(task, source)

    mapped = FeatureSource(source, double, 2)
    for spec in ("threads", Spy()):
        executor = resolve_executor(spec, None, mapped)
        assert isinstance(executor, FeatureExecutor)
        found = list(executor.map_rows(lambda block: block.X, mapped))
        np.testing.assert_array_equal(np.concatenate(found), 2 * X)
    assert sum(visited) == 12
    assert not isinstance(resolve_executor("threads", 1, source), FeatureExecutor)
