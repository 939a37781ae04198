"""A Parquet file that is larger than the memory the fit may use."""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench import peak
from bench.jobs import run
from bench.options import Options
from bench.problems import Problem, draw
from bench.tables import table
from mixfold import GaussianMixture

TITLE = "A Parquet file larger than the memory allowed"
GROUP = 65_536  # rows of a row group
LIMIT = 1000  # MB in total
SHAPE = Problem(GROUP, 32, 8, "full")


def write(folder: Path, gigabytes: float, options: Options) -> Path:
    """A file of about that size, written row group by row group.

    Raises
    ------
    OSError
        If the disk has not half as much again to spare.
    """
    wanted, free = gigabytes * 1e9, shutil.disk_usage(folder).free
    if free < 1.5 * wanted:
        raise OSError(
            f"a file of {gigabytes:g} GB needs {1.5 * wanted / 1e9:.1f} GB free in {folder}, which "
            f"has {free / 1e9:.1f} GB; set TMPDIR to another disk, or run with --quick"
        )
    path = folder / "mixture.parquet"
    names = [f"x{j}" for j in range(SHAPE.d)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    n_groups = max(2, round(wanted / (GROUP * SHAPE.d * 8)))
    # random digits do not compress, so that the size on disk is the size of the numbers
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for group in range(n_groups):
            X = draw(SHAPE, seed=group)
            columns = [pa.array(X[:, j]) for j in range(SHAPE.d)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=GROUP)
            if group % 50 == 49:
                options.say(f"parquet: {path.stat().st_size / 1e9:.1f} GB written")
    return path


def fit(threads: int | None, path: str, n_iter: int) -> dict[str, float]:
    """Fits of 1 and of 1 + n steps; all memory of the process counts, from its start on."""
    took = [_fit(path, steps) for steps in (1, 1 + n_iter)]
    per_pass = (took[1]["seconds"] - took[0]["seconds"]) / (took[1]["passes"] - took[0]["passes"])
    return {**took[1], "pass": per_pass, "peak": peak.peak() / 1e6}


def _fit(path: str, max_iter: int) -> dict[str, float]:
    model = GaussianMixture(SHAPE.k, random_state=0, max_iter=max_iter, tol=0.0, acceleration=None)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        model.fit(path)
    return {"seconds": time.perf_counter() - began, "passes": model.n_passes_}


def measure(options: Options) -> dict[str, Any]:
    gigabytes = 0.2 if options.quick else 4.0
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        options.say(f"parquet: writing {gigabytes:g} GB")
        path = write(Path(folder), gigabytes, options)
        size, rows = path.stat().st_size, pq.read_metadata(path).num_rows
        options.say("parquet: fitting")
        result: dict[str, Any] = run("bench.parquet:fit", threads=None, path=str(path), n_iter=3)
    return {"gigabytes": size / 1e9, "rows": rows, **result}


def report(result: dict[str, Any]) -> str:
    head = [
        "file, GB",
        "rows",
        "peak memory, MB",
        f"under {LIMIT} MB",
        "s per pass",
        "MB/s",
        "fit, s",
    ]
    return table(head, [[
        f"{result['gigabytes']:.2f}", f"{result['rows']:,}", f"{result['peak']:.0f}",
        "yes" if result["peak"] < LIMIT else "NO", f"{result['pass']:.1f}",
        f"{result['gigabytes'] * 1000 / result['pass']:.0f}", f"{result['seconds']:.0f}",
    ]])  # fmt: skip
