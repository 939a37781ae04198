"""Executors: threads of this process, or the workers of a Dask cluster."""

from __future__ import annotations

import sys
from typing import Any, Protocol, cast

from mixfold.contracts import Executor
from mixfold.engine.executors.cluster import ClusterError
from mixfold.engine.executors.dask import DaskExecutor
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.executors.threads import ThreadExecutor, count_threads
from mixfold.engine.sources.features import FeatureSource
from mixfold.engine.sources.sizes import block_rows

__all__ = ["ClusterError", "DaskExecutor", "ThreadExecutor", "resolve_executor"]


class Sized(Protocol):
    """What has so many rows, None if that is not known, and columns: a source, say."""

    @property
    def n_samples(self) -> int | None: ...

    @property
    def n_features(self) -> int: ...


def resolve_executor(spec: Any, n_jobs: int | None, source: Sized) -> Executor:
    """The executor that a user asked for.

    Parameters
    ----------
    spec : "threads", "dask", a distributed.Client, or an Executor
        "dask" is the current client. A source over a Dask collection can be visited by
        threads too: its partitions then come here one after the other.
    n_jobs : int or None
        Number of threads; a cluster has its own, so it must be None for the others.
    source : Source, or anything of its size
        What will be visited. One block needs no threads. Rows that are seen through a map are
        mapped where they are visited.

    Raises
    ------
    TypeError, ValueError
        If ``spec`` or ``n_jobs`` is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.engine.executors import resolve_executor
    >>> from mixfold.engine.sources import open_source
    >>> resolve_executor("threads", 2, open_source(np.ones((5000, 2))))
    ThreadExecutor(n_jobs=2)
    """
    executor = _resolve(spec, n_jobs, source)
    return FeatureExecutor(executor) if isinstance(source, FeatureSource) else executor


def _resolve(spec: Any, n_jobs: int | None, source: Sized) -> Executor:
    if isinstance(spec, str) and spec == "threads":
        count_threads(n_jobs)  # refuses what is no number of threads
        return ThreadExecutor(1 if _is_one_block(source) else n_jobs)
    executor = _without_threads(spec)
    if n_jobs is not None:
        raise ValueError(
            f"n_jobs is the number of threads of executor='threads'; with executor={spec!r} it "
            f"must be None, got {n_jobs!r}"
        )
    return executor


def _without_threads(spec: Any) -> Executor:
    if isinstance(spec, str):
        if spec == "dask":
            return DaskExecutor()
        raise ValueError(f"executor must be {_CHOICES}; got {spec!r}")
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(spec, distributed.Client):
        return DaskExecutor(spec)
    methods = (getattr(spec, name, None) for name in ("map_reduce", "map_rows"))
    if isinstance(spec, type) or not all(map(callable, methods)):
        raise TypeError(f"executor must be {_CHOICES}; got {spec!r} of type {type(spec).__name__}")
    return cast(Executor, spec)


def _is_one_block(source: Sized) -> bool:
    rows = source.n_samples
    return rows is not None and rows <= block_rows(rows, source.n_features)


_CHOICES = (
    "'threads', 'dask' (the current Dask client), a distributed.Client, or an object with "
    "methods map_reduce and map_rows"
)
