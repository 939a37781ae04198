"""A small table in every format, and the program as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from mixfold.cli import main
from mixfold.contracts import Source
from mixfold.engine.sources import open_source

COLUMNS = ("height", "width", "depth")


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a run."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the program in this process; its words may be paths and numbers."""

    def call(*words: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        output = capsys.readouterr()
        code = end.value.code
        return Outcome(0 if code is None else int(code), output.out, output.err)

    return call


@dataclass(frozen=True)
class Example:
    """Two far groups of 60 and 30 rows in three columns, with some entries missing."""

    X: np.ndarray
    group: np.ndarray
    weight: np.ndarray
    parquet: Path
    csv: Path
    npy: Path

    @property
    def source(self) -> Source:
        """The rows, for models that were fitted with names."""
        return open_source(self.X)


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    rng = np.random.default_rng(7)
    group = np.repeat([0, 1], [60, 30])
    X = rng.normal(size=(90, 3)) * [1.0, 2.0, 0.5] + np.where(group[:, None] == 1, 25.0, 0.0)
    X = X[order := rng.permutation(90)]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    weight = rng.integers(1, 4, size=90).astype(float)
    folder = tmp_path_factory.mktemp("tables")
    files = {kind: folder / f"table.{kind}" for kind in ("parquet", "csv", "npy")}
    # NaN becomes a null, as in tables from elsewhere.
    arrays = {name: pa.array(X[:, j], from_pandas=True) for j, name in enumerate(COLUMNS)}
    table = pa.table(arrays | {"count": weight})
    parquet.write_table(table, files["parquet"], row_group_size=20)
    csv.write_csv(table, files["csv"])
    np.save(files["npy"], X)
    return Example(X, group[order], weight, **files)


@pytest.fixture
def model_file(run: Callable[..., Outcome], example: Example, tmp_path: Path) -> Path:
    """A mixture of two components, fitted to the three columns."""
    path = tmp_path / "groups.mixfold"
    words = ["--columns", ",".join(COLUMNS), "-k", 2, "--seed", 0, "--out", path]
    outcome = run("fit", example.parquet, *words)
    assert outcome.code == 0, outcome.err
    return path


def read_table(path: Path) -> dict[str, np.ndarray]:
    """Columns of an output file."""
    table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    return {name: table[name].to_numpy() for name in table.column_names}
