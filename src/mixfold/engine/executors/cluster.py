"""The connection to a Dask cluster: finding it, sending to it, and what goes wrong with it."""

from __future__ import annotations

import time
from asyncio import CancelledError as AsyncCancelledError
from concurrent.futures import CancelledError
from typing import Any

SEND_ATTEMPTS = 3


class ClusterError(RuntimeError):
    """The cluster cannot do the work: no client, no workers, or they keep dying."""


def usable_client(client: Any = None) -> Any:
    """The client given, or the current one, if work can be sent through it.

    Raises
    ------
    ClusterError
        If there is none, or it is closed or asynchronous.
    """
    if client is None:
        client = _current_client()
    if getattr(client, "asynchronous", False):
        raise ClusterError(
            "executor: the Dask client must not be asynchronous; got one made with "
            "asynchronous=True. Connect a second one: Client(client.scheduler.address)"
        )
    if client.status != "running":
        raise ClusterError(
            f"executor: the Dask client must be connected; its status is {client.status!r}. "
            "Make a new one: distributed.Client(address)"
        )
    return client


def _current_client() -> Any:
    try:
        from distributed import get_client
    except ImportError as error:
        raise ClusterError(
            "executor='dask' needs the package 'distributed'; pip install 'mixfold[dask]'"
        ) from error
    try:
        return get_client()
    except ValueError as error:
        raise ClusterError(
            "executor='dask' needs a Dask cluster and there is no current client; make one "
            "first: from distributed import Client; client = Client() for this machine, "
            "Client('tcp://scheduler:8786') for a cluster"
        ) from error


def send(client: Any, value: Any) -> Any:
    """Put one value on a worker and return its future.

    Raises
    ------
    ClusterError
        If there is no worker, or each one tried went away meanwhile.
    """
    for attempt in range(SEND_ATTEMPTS):
        try:
            # A random key: by content, the release of an equal value could race with this one.
            [future] = client.scatter([value], hash=False)
            return future
        except TimeoutError as error:
            raise no_workers(client) from error
        except OSError as error:  # the worker chosen has just died
            last = error
            time.sleep(0.2 * (attempt + 1))
    raise ClusterError(
        f"the Dask cluster at {client.scheduler.address} took no data in {SEND_ATTEMPTS} "
        f"attempts; check that its workers are alive and can be reached ({last})"
    ) from last


def no_workers(client: Any) -> ClusterError:
    """The error of a cluster that nobody works for."""
    return ClusterError(
        f"the Dask cluster at {client.scheduler.address} has no workers; start some, or "
        "wait for them with client.wait_for_workers(1)"
    )


def lost_data_errors() -> tuple[type[BaseException], ...]:
    """What a future raises when its data, or what it needs, went away with a worker."""
    from distributed.comm.core import CommClosedError

    return (CancelledError, AsyncCancelledError, CommClosedError)


def killed_worker_error() -> type[Exception]:
    """What a future raises when worker after worker died on it."""
    from distributed.scheduler import KilledWorker

    return KilledWorker


def deadly_task(error: BaseException) -> ClusterError:
    """The same, in words."""
    return ClusterError(
        "several workers of the Dask cluster died one after the other on the same rows; most "
        f"often they run out of memory: use smaller partitions or larger workers ({error})"
    )
