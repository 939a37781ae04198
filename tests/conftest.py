"""Fixtures that several folders share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20240607)


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Path of a data set that lies beside the repository; the test is skipped without it."""

    def find(name: str) -> Path:
        path = _SHARED / name
        if not path.exists():
            pytest.skip(
                f"needs the data set {name}, which is not part of the repository: "
                f"put it into shared/data in the folder that holds the clone"
            )
        return path

    return find


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """Two worker processes on this machine, started once for all tests of a pytest worker."""
    distributed = pytest.importorskip(
        "distributed", reason="needs Dask: pip install 'mixfold[dask]'"
    )
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
    ) as cluster:
        yield cluster


@pytest.fixture
def client(dask_cluster: Any) -> Iterator[Any]:
    """A client of the cluster, the default one while the test runs."""
    import distributed

    with distributed.Client(dask_cluster) as client:
        yield client
