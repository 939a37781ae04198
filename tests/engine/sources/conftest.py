"""Every kind of source over the same table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse

N, D = 2600, 3
NAMES = ("a", "b", "c")


def _table(X: np.ndarray) -> pa.Table:
    columns = [pa.array(column, from_pandas=True) for column in X.T]  # NaN becomes null
    return pa.table(dict(zip(NAMES, columns, strict=True)))


def _parquet(X: np.ndarray, folder: Path) -> Path:
    pq.write_table(_table(X), folder / "x.parquet", row_group_size=700)
    return folder / "x.parquet"


def _parquet_folder(X: np.ndarray, folder: Path) -> Path:
    (folder / "parts").mkdir()
    for i, first in enumerate(range(0, len(X), 999)):
        pq.write_table(_table(X[first : first + 999]), folder / "parts" / f"{i}.parquet")
    (folder / "parts" / "_SUCCESS").write_text("")
    return folder / "parts"


def _csv(X: np.ndarray, folder: Path) -> Path:
    pa_csv.write_csv(_table(X), folder / "x.csv")
    return folder / "x.csv"


def _csv_list(X: np.ndarray, folder: Path) -> list[str]:
    pa_csv.write_csv(_table(X[:1000]), folder / "1.csv")
    pa_csv.write_csv(_table(X[1000:]), folder / "2.csv")
    return [str(folder / "1.csv"), str(folder / "2.csv")]


def _npy(X: np.ndarray, folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def _memmap(X: np.ndarray, folder: Path) -> np.memmap[Any, Any]:
    return np.load(_npy(np.asfortranarray(X), folder), mmap_mode="r")  # type: ignore[no-any-return]


def _need(module: str, extra: str) -> Any:
    return pytest.importorskip(module, reason=f"needs {module}: pip install 'mixfold[{extra}]'")


def _pandas(X: np.ndarray, folder: Path) -> Any:
    return _need("pandas", "tables").DataFrame(X, columns=list(NAMES))


def _pandas_mixed(X: np.ndarray, folder: Path) -> Any:
    frame = _pandas(X, folder)
    return frame.astype({"b": "Float64", "c": "float64[pyarrow]"})


def _polars(X: np.ndarray, folder: Path) -> Any:
    return _need("polars", "tables").from_arrow(_table(X))


def _dask_array(X: np.ndarray, folder: Path) -> Any:
    return _need("dask.array", "dask").from_array(X, chunks=(901, 2))


def _dask_frame(X: np.ndarray, folder: Path) -> Any:
    frame = _pandas(X, folder)
    return _need("dask.dataframe", "dask").from_pandas(frame, npartitions=3)


Maker = Callable[[np.ndarray, Path], Any]
UNNAMED: dict[str, Maker] = {
    "C": lambda X, _: X,
    "F": lambda X, _: np.asfortranarray(X),
    "strided": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X, _: X[::-1].copy()[::-1],
    "big-endian": lambda X, _: X.astype(">f8"),
    "object": lambda X, _: X.astype(object),
    "list": lambda X, _: X.tolist(),
    "masked": lambda X, _: np.ma.masked_where(np.isnan(X), X),
    "csr": lambda X, _: sparse.csr_matrix(X),
    "coo": lambda X, _: sparse.coo_array(X),
    "npy": _npy,
    "memmap": _memmap,
    "dask array": _dask_array,
}
NAMED: dict[str, Maker] = {
    "arrow": lambda X, _: _table(X),
    "arrow chunks": lambda X, _: pa.concat_tables([_table(X[:777]), _table(X[777:])]),
    "pandas": _pandas,
    "pandas mixed": _pandas_mixed,
    "polars": _polars,
    "parquet": _parquet,
    "parquet folder": _parquet_folder,
    "csv": _csv,
    "csv list": _csv_list,
    "dask frame": _dask_frame,
}
KINDS = UNNAMED | NAMED


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    """A table with gaps in the first and last thousand rows, and none in between."""
    X = rng.normal(size=(N, D))
    holes = rng.random((N, D)) < 0.1
    holes[1000:1600] = False
    X[holes] = np.nan
    return X


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    """The name of a kind of source."""
    return str(request.param)


@pytest.fixture(params=list(NAMED))
def named(request: pytest.FixtureRequest) -> str:
    """A kind whose columns have names: a, b, c."""
    return str(request.param)


@pytest.fixture(params=list(UNNAMED))
def unnamed(request: pytest.FixtureRequest) -> str:
    """A kind whose columns have no names."""
    return str(request.param)


@pytest.fixture
def build(tmp_path: Path) -> Callable[[str, np.ndarray], Any]:
    """Give the table ``X`` the form of a kind."""
    return lambda kind, X: KINDS[kind](X, tmp_path)


@pytest.fixture
def names_of() -> Callable[[str], tuple[str, ...] | None]:
    """The column names that a kind has."""
    return lambda kind: NAMES if kind in NAMED else None
