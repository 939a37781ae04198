"""Rows on a Dask cluster
=========================

Parameters travel to the rows, statistics come back.

Needs ``pip install 'mixfold[dask]'``. The cluster is two processes of this machine; with the
address of yours in ``Client(...)`` nothing else changes. ::

    python examples/dask_cluster.py
"""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from mixfold import GaussianMixture

N, D = 40_000, 4


def rows() -> da.Array:
    """Two groups, made chunk by chunk on the workers."""
    state = da.random.default_rng(0)
    chunks = (5_000, D)
    second = state.random((N, 1), chunks=(5_000, 1)) < 0.3
    return state.normal(size=(N, D), chunks=chunks) + da.where(second, 4.0, 0.0)


def main() -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        X = rows().persist()
        mixture = GaussianMixture(2, random_state=0, executor=client).fit(X)
        print(f"{len(client.nthreads())} workers, {mixture.n_passes_} passes")
        print("weights:", np.round(np.sort(mixture.weights_), 3).tolist())
        # Answers come back as arrays: ask for a part if all rows would be too many.
        print("first rows:", mixture.predict(X[:5]).tolist())
        here = X.compute()

    # The same fit here: blocks are cut elsewhere, so the rounding differs, and nothing else.
    threads = GaussianMixture(2, random_state=0, n_jobs=1).fit(here)
    gap = float(np.abs(threads.means_ - mixture.means_).max())
    print(f"largest difference to the same fit on threads: {gap:.1e}")


# Worker processes import this file: without the guard each of them would start a cluster.
if __name__ == "__main__":
    main()
