"""A Dask cluster of two worker processes on this machine that loses workers in the middle of fits.

    python -m tools.faults cluster [--fits 10] [--only GaussianMixture,PPCA]
    python -m tools.faults cluster --forms          # unknown chunks, dataframes, nullable columns, slow workers, restarts
    python -m tools.faults cluster --moved MB       # memory of the client and bytes moved for a Parquet folder

Every fit is compared with the same fit by threads of this process.
"""  # noqa: E501

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np

from tools.faults.running import (
    child_environment,
    peak_megabytes,
    resident_megabytes,
    scratch_folder,
)

os.environ.update(child_environment())


def cluster(**options: Any) -> Any:
    import dask
    from distributed import Client, LocalCluster

    dask.config.set(
        {
            "distributed.comm.timeouts.connect": "60s",
            "distributed.scheduler.allowed-failures": 10,
            "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": 1,
        }
    )
    made = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(scratch_folder("dask")),
        silence_logs=50,
        **options,
    )
    return made, Client(made)


def fits() -> Any:
    import mixfold as m

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40000, 8)) + 1.5 * rng.integers(0, 4, (40000, 1)) * rng.normal(size=8)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    counts = rng.poisson(
        rng.gamma(0.5, 2.0, (4000, 1)) * rng.dirichlet(np.full(100, 0.1), 4000) * 40
    ).astype(float)
    y = (X[:, 0] > 1).astype(int)
    s = dict(random_state=0, tol=0.0)
    return {
        "GaussianMixture": (
            lambda **k: m.GaussianMixture(6, max_iter=25, acceleration=None, **s, **k),
            X,
            None,
            "means_",
        ),
        "KMeans": (lambda **k: m.KMeans(30, max_iter=30, **s, **k), X, None, "cluster_centers_"),
        "PPCA": (
            lambda **k: m.PPCA(3, max_iter=20, acceleration=None, **s, **k),
            holes,
            None,
            "noise_variance_",
        ),
        "FactorAnalysis": (
            lambda **k: m.FactorAnalysis(3, max_iter=25, acceleration=None, **s, **k),
            holes,
            None,
            "noise_variance_",
        ),
        "MixtureOfFactorAnalyzers": (
            lambda **k: m.MixtureOfFactorAnalyzers(4, 2, max_iter=20, acceleration=None, **s, **k),
            X,
            None,
            "means_",
        ),
        "BayesianGaussianMixture": (
            lambda **k: m.BayesianGaussianMixture(6, max_iter=25, **s, **k),
            X,
            None,
            "means_",
        ),
        "LatentDirichletAllocation": (
            lambda **k: m.LatentDirichletAllocation(5, max_iter=15, **s, **k),
            counts,
            None,
            "components_",
        ),
        "SupervisedPPCA": (
            lambda **k: m.SupervisedPPCA(2, solver="em", max_iter=25, **s, **k),
            X,
            y,
            "noise_variance_",
        ),
        "MatrixFactorization": (
            lambda **k: m.MatrixFactorization(4, max_iter=10, **s, **k),
            X[:8000],
            None,
            "components_",
        ),
        "RBM": (
            lambda **k: m.RBM(16, max_epochs=3, random_state=0, **k),
            (X > 1).astype(float)[:8000],
            None,
            "components_",
        ),
    }


def compared(a: Any, b: Any, name: Any) -> Any:
    if not hasattr(a, name):
        name = next(n for n in ("means_", "components_", "lower_bound_") if hasattr(a, n))
    x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
    return float(np.abs(x - y).max() / max(1e-300, np.abs(x).max()))


def worker_pids(client: Any) -> Any:
    """Process ids of the workers; one that has just been restarted may still be in the way."""
    for _ in range(20):
        try:
            return list(client.run(os.getpid).values())
        except Exception:
            time.sleep(1)
            both_workers(client)
    raise RuntimeError("the cluster does not come back")


def both_workers(client: Any) -> Any:
    """Wait for two workers; a nanny that has lost its process for good is made anew."""
    try:
        client.wait_for_workers(2, timeout=30)
    except Exception:
        print("  (a worker did not come back by itself: the cluster is restarted)", flush=True)
        client.restart(timeout=120, wait_for_workers=False)
        client.wait_for_workers(2, timeout=120)


def murders(client: Any, name: Any, n_fits: Any, rng: np.random.Generator) -> Any:
    import dask.array as da

    make, X, y, attribute = fits()[name]
    here = make().fit(X) if y is None else make().fit(X, y)
    rows = da.from_array(X, chunks=(max(500, len(X) // 8), X.shape[1]))
    began = time.monotonic()
    try:
        make(executor=client).fit(rows) if y is None else make(executor=client).fit(rows, y)
    except Exception as error:
        print(
            f"{name}: does not run on a cluster: {type(error).__name__}: {str(error)[:150]}",
            flush=True,
        )
        return
    seconds = time.monotonic() - began
    worst, failed, killed, longest = 0.0, [], 0, 0.0
    for i in range(n_fits):
        both_workers(client)
        kind = i % 3  # a Dask array, a local array that is sent, and both again
        data = rows if kind else X
        pids = worker_pids(client)
        dead = []

        def kill(pids: Any = pids, dead: Any = dead) -> Any:
            time.sleep(rng.uniform(0.05, 0.8) * seconds)
            pid = rng.choice(pids)
            try:
                os.kill(pid, signal.SIGKILL)
                dead.append(pid)
            except ProcessLookupError:
                pass

        thread = threading.Thread(target=kill)
        thread.start()
        t = time.monotonic()
        try:
            model = (
                make(executor=client).fit(data) if y is None else make(executor=client).fit(data, y)
            )
            worst = max(worst, compared(here, model, attribute))
        except Exception as error:
            failed.append(f"{type(error).__name__}: {str(error)[:120]}")
        longest = max(longest, time.monotonic() - t)
        thread.join()
        killed += len(dead)
    print(
        f"{name}: {n_fits} fits, {killed} workers killed, {len(failed)} failed, largest relative difference from the local fit {worst:.1e}, "  # noqa: E501
        f"{seconds:.1f} s undisturbed, {longest:.1f} s at most {failed[:2]}",
        flush=True,
    )


def forms(client: Any) -> Any:
    """Other forms of data, and other troubles."""
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    import mixfold as m

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3)) + 4 * rng.integers(0, 2, (6000, 1))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    here = m.GaussianMixture(2, random_state=0).fit(X)

    def try_it(what: Any, data: Any, same: Any = True, **k: Any) -> Any:
        began = time.monotonic()
        try:
            model = m.GaussianMixture(2, random_state=0, executor=client).fit(data, **k)
            difference = compared(here, model, "means_") if same else float("nan")
            print(
                f"ok   {what}: difference {difference:.1e}, {time.monotonic() - began:.1f} s",
                flush=True,
            )
            return model
        except Exception as error:
            print(
                f"{'ok  ' if isinstance(error, (ValueError, TypeError)) else 'BAD '} {what}: {type(error).__name__}: {str(error)[:200]}",  # noqa: E501
                flush=True,
            )
        return None

    rows = da.from_array(X, chunks=(1000, 3))
    try_it("array", rows)
    try_it("columns in two chunks", da.from_array(X, chunks=(1000, 2)))
    try_it("unknown chunks", dd.from_pandas(frame, npartitions=4).to_dask_array())
    try_it("unknown chunks after a filter", rows[rows[:, 0] > -100])
    try_it(
        "an empty partition",
        dd.from_pandas(frame, npartitions=4).map_partitions(
            lambda part: part[part.a < 3.5] if part.index[0] == 0 else part
        ),
        same=False,
    )
    try_it("dataframe", dd.from_pandas(frame, npartitions=3))
    try_it("nullable dataframe", dd.from_pandas(frame.astype("Float64"), npartitions=3))
    try_it(
        "nullable with NA",
        dd.from_pandas(frame.astype("Float64").mask(rng.random(X.shape) < 0.1), npartitions=3),
        same=False,
    )
    try_it("text column", dd.from_pandas(frame.assign(t="x"), npartitions=3))
    try_it("series", dd.from_pandas(frame, npartitions=3)["a"])
    try_it(
        "lazy inf", da.from_array(np.where(rng.random(X.shape) < 1e-3, np.inf, X), chunks=(1000, 3))
    )
    try_it("1d", rows[:, 0])
    try_it(
        "a partition that raises",
        rows.map_blocks(
            lambda block: 1 / 0 if block[0, 0] != 99 else block, dtype=float, meta=np.empty((0, 0))
        ),
    )
    try_it(
        "a partition that lies about its length",
        da.from_array(X, chunks=(1000, 3)).map_blocks(
            lambda b: b[:-1], dtype=float, meta=np.empty((0, 0))
        ),
    )
    try_it("weights of another length", rows, sample_weight=np.ones(10))
    try_it("Dask weights", rows, sample_weight=da.ones(6000, chunks=700))
    try_it(
        "slow partitions",
        rows.map_blocks(lambda b: (time.sleep(1.0), b)[1], dtype=float, meta=np.empty((0, 0))),
    )
    try_it("delayed", __import__("dask").delayed(X))

    def restart() -> Any:
        time.sleep(1.5)
        client.restart(wait_for_workers=False)

    thread = threading.Thread(target=restart)
    slow = rows.map_blocks(lambda b: (time.sleep(0.5), b)[1], dtype=float, meta=np.empty((0, 0)))
    thread.start()
    try_it("restart of all workers in the middle", slow)
    thread.join()
    client.wait_for_workers(2, timeout=120)
    model = try_it("afterwards", rows)
    if model is not None:
        print(
            "predict on the cluster equals the local one:",
            bool((model.predict(rows) == here.predict(X)).all()),
        )
    for pid in worker_pids(client):
        os.kill(pid, signal.SIGKILL)
    try_it("both workers killed just before", rows)


def moved(client: Any, megabytes: Any) -> Any:
    """A folder of Parquet files: who reads it, what travels, what the client needs."""
    import dask.dataframe as dd
    import psutil
    import pyarrow as pa
    from pyarrow import parquet

    import mixfold as m

    folder = scratch_folder("parquet") / f"{megabytes}"
    rng = np.random.default_rng(0)
    rows, parts = 1_000_000, max(1, megabytes // 64)
    if not folder.exists():
        folder.mkdir()
        for i in range(parts):
            X = rng.normal(size=(rows, 8)) + 3 * rng.integers(0, 3, (rows, 1))
            parquet.write_table(
                pa.table({f"c{j}": X[:, j] for j in range(8)}),
                folder / f"part{i:03d}.parquet",
                compression="none",
                use_dictionary=False,
            )
    size = sum(p.stat().st_size for p in folder.iterdir()) / 1e6

    def measured(what: Any, call: Any) -> Any:
        start, base = psutil.net_io_counters(pernic=True)["lo"].bytes_sent, resident_megabytes()
        peak, stop = [base], threading.Event()

        def watch() -> Any:
            while not stop.wait(0.05):
                peak[0] = max(peak[0], resident_megabytes())

        thread = threading.Thread(target=watch)
        thread.start()
        began = time.monotonic()
        try:
            call()
            end = "done"
        except Exception as error:
            end = f"{type(error).__name__}: {str(error)[:150]}"
        stop.set()
        thread.join()
        sent = (psutil.net_io_counters(pernic=True)["lo"].bytes_sent - start) / 1e6
        workers = [round(resident_megabytes(pid)) for pid in client.run(os.getpid).values()]
        print(
            f"{what}: data {size:.0f} MB, client +{peak[0] - base:.0f} MB, moved over loopback {sent:.0f} MB, workers now {workers} MB, "  # noqa: E501
            f"{time.monotonic() - began:.0f} s, {end}",
            flush=True,
        )

    measured("threads, path", lambda: m.PPCA(2, random_state=0).fit(str(folder)))
    measured(
        "executor=client, path", lambda: m.PPCA(2, random_state=0, executor=client).fit(str(folder))
    )
    measured(
        "executor=client, dask.dataframe.read_parquet",
        lambda: m.PPCA(2, random_state=0, executor=client).fit(dd.read_parquet(str(folder))),
    )


def main() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forms", action="store_true")
    parser.add_argument("--moved", type=int, default=0)
    parser.add_argument("--worker-memory", default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    made, client = cluster(memory_limit=options.worker_memory)
    try:
        if options.forms:
            forms(client)
        elif options.moved:
            moved(client, options.moved)
        else:
            rng = random.Random(options.seed)
            for name in options.only.split(",") if options.only else fits():
                murders(client, name, options.fits, rng)
    finally:
        client.close()
        made.close()
    print(f"client peak {peak_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
