"""A worker of a Dask cluster dies in the middle of a fit, which ends in the same bits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import GaussianMixture
from mixfold.contracts import Array, Block, Source
from mixfold.engine.executors import DaskExecutor

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")
da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="needs POSIX: kills a process by a signal"
)


def table(n: int, n_features: int = 3, n_clusters: int = 3) -> Array:
    """Clusters that overlap, so that a fit goes on for long."""
    rng = np.random.default_rng(4)
    centres = 1.5 * rng.standard_normal((n_clusters, n_features))
    return centres[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, n_features))


def bits(fitted: GaussianMixture) -> bytes:
    parts = (fitted.weights_, fitted.means_, fitted.covariances_, np.array(fitted.lower_bounds_))
    return b"".join(part.tobytes() for part in parts)


@pytest.fixture
def client() -> Iterator[Any]:
    with (
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


def killing(task: Callable[[Block], Any], row: int, trace: Path) -> Callable[[Block], Any]:
    """The task, but the first worker that comes to the block at ``row`` dies."""

    def visit(block: Block) -> Any:
        if block.start == row and not trace.exists():
            trace.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return task(block)

    return visit


class Deadly(DaskExecutor):
    """A cluster that loses a worker in the middle of pass ``at``."""

    def __init__(self, client: Any, at: int, row: int, trace: Path) -> None:
        super().__init__(client)
        self.left, self.row, self.trace = at, row, trace

    def map_reduce(self, task: Callable[[Block], Any], source: Source) -> Any:
        self.left -= 1
        return super().map_reduce(
            killing(task, self.row, self.trace) if self.left == 0 else task, source
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_worker_killed_in_the_middle_of_a_fit(client: Any, tmp_path: Path) -> None:
    X = table(6000)
    lazy = da.from_array(X, chunks=(1000, 3), name=False)
    options: dict[str, Any] = {
        "n_components": 3,
        "max_iter": 10,
        "init_params": "k-means++",
        "random_state": 0,
    }
    for name, data, row in (("array", X, 2048), ("dask array", lazy, 4000)):
        client.wait_for_workers(2, timeout=30)
        undisturbed = GaussianMixture(**options, executor=client).fit(data)
        trace = tmp_path / name
        deadly = Deadly(client, 7, row, trace)
        got = GaussianMixture(**options, executor=deadly).fit(data)
        assert trace.exists() and deadly.left < 0, "no worker was killed: the test shows nothing"
        assert bits(got) == bits(undisturbed)
