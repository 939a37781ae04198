"""A Dask cluster for the tests that need one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_scheduler_without_a_client() -> None:
    """A client whose workers were killed may be closed without giving back Dask's scheduler, and
    every later use of Dask in this process would ask for a client."""
    if "distributed" not in sys.modules:
        return
    import dask
    from distributed.client import _get_global_client

    if dask.config.get("scheduler", None) is not None and _get_global_client() is None:
        dask.config.set(scheduler=None)


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
