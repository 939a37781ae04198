"""A folder larger than memory
==============================

A folder of Parquet files, fitted by its path: at each step it is read in pieces. ::

    python examples/larger_than_memory.py                  # 400,000 rows, some seconds
    python examples/larger_than_memory.py --rows 100000000 # more than memory: mind the disk
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from mixfold import GaussianMixture

ROWS_PER_FILE, COLUMNS = 50_000, 8
CENTRES = 3 * np.random.default_rng(7).normal(size=(4, COLUMNS))
SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def write(folder: Path, n_rows: int) -> int:
    """Files of a few rows each, so that this script never holds many; returns their bytes."""
    for part, first in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        rng = np.random.default_rng(part)
        n = min(ROWS_PER_FILE, n_rows - first)
        X = CENTRES[rng.choice(4, n, p=SHARES)] + rng.normal(size=(n, COLUMNS))
        X[rng.random(X.shape) < 0.02] = np.nan
        columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(COLUMNS)}
        parquet.write_table(pa.table(columns), folder / f"part-{part:05d}.parquet")
    return sum(file.stat().st_size for file in folder.iterdir())


def main(folder: Path, n_rows: int) -> None:
    table = folder / "rows"
    table.mkdir()
    size = write(table, n_rows)
    print(f"{n_rows:,} rows in {len(list(table.iterdir()))} files, {size / 1e6:.0f} MB")

    # A killed fit goes on from the checkpoint when the same call is made again.
    mixture = GaussianMixture(
        4, covariance_type="diag", random_state=0, checkpoint=folder / "fit.ckpt", verbose=1
    )
    mixture.fit(table)
    print(f"{mixture.stop_reason_} after {mixture.n_passes_} passes over the files")
    print("weights:", " ".join(f"{w:.3f}" for w in sorted(mixture.weights_, reverse=True)))

    # A question is answered for one file as well as for the folder.
    labels = mixture.predict(table / "part-00000.parquet")
    print("rows of each group in the first file:", np.bincount(labels, minlength=4).tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000)
    with tempfile.TemporaryDirectory() as place:
        main(Path(place), parser.parse_args().rows)
