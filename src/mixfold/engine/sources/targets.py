"""Targets of the rows: a column of a table or file by name, and outputs beside any source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixfold.contracts import Array, Block, Source
from mixfold.engine.sources.array import is_path
from mixfold.engine.sources.columns import choose
from mixfold.engine.sources.dask import is_dask_frame
from mixfold.engine.sources.delimited import open_delimited
from mixfold.engine.sources.files import list_files
from mixfold.engine.sources.weights_and_labels import Sides


class OutputSource:
    """The rows of a source, with outputs of one entry per row in place of its own."""

    def __init__(self, source: Source, outputs: Array) -> None:
        self._source = source
        self._outputs = outputs

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self._outputs)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._source.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, None where there are none."""
        return self._source.feature_names

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self._source.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of the source, with their outputs."""
        end = 0
        for block in self._source.blocks(max_rows):
            end = block.rows.stop
            y = self._outputs[block.rows]
            if len(y) < block.n_rows:
                break
            yield replace(block, y=y)
        if end != len(self._outputs):
            raise ValueError(
                f"y has {len(self._outputs)} entries, the data have {end} rows or more; give one "
                "entry per row, in the same order."
            )


def sides_beside(source: Source) -> Sides:
    """Weights and outputs that the blocks of a source bring along, each None if they do not."""
    parts = [(block.weight, block.y) for block in source.blocks()]
    weight, y = zip(*parts, strict=True)
    return Sides(
        None if weight[0] is None else np.concatenate(weight),
        None if y[0] is None else np.concatenate(y),
    )


def split_target(X: Any, name: str, weight: Any = None) -> tuple[Array, list[str]]:
    """The values of a column of a table or file, and the names of the features beside it.

    Parameters
    ----------
    X : table, path, list of paths or Dask dataframe
    name : str
        The column of the targets, of numbers or text. Missing ones become None or NaN. Whole
        numbers in a file of which some are missing are integers, however they are written.
    weight : str or array, optional
        A string names the column of the weights, which is no feature either.

    Returns
    -------
    values : ndarray of shape (n_samples,)
    features : list of str
    """
    names, read = _columns(X, name)
    choice = choose(names, None, weight, name, _describe_table(X))
    return read(name), list(choice.names)


def _whole_of_file(values: Array) -> Array:
    """Whole numbers of which some lack, as integers and None; anything else as it is.

    Programs that have no missing integers write 1.0 and -1.0 for them. Integers keep the meaning of
    -1, which is no class, as in a column that was written as integers.
    """
    if values.dtype.kind != "f":
        return values
    lacks = np.isnan(values)
    known = values[~lacks]
    # (from 2^53 on every float is whole)
    if not lacks.any() or (known != np.round(known)).any() or (np.abs(known) >= 2**53).any():
        return values
    return _objects(lacks, np.where(lacks, 0, values).astype(np.int64).tolist())


def _describe_table(X: Any) -> str:
    return str(X) if is_path(X) else f"the {type(X).__name__}"


def _columns(X: Any, wanted: str) -> tuple[list[str], Any]:
    """Names of the columns, and what reads one of them."""
    if is_path(X) or (isinstance(X, list | tuple) and X and all(is_path(item) for item in X)):
        return _file_columns(X)
    if isinstance(X, pa.Table | pa.RecordBatch):
        return list(X.schema.names), lambda name: read_arrow_column(X.column(name))
    if is_dask_frame(X):
        return [str(c) for c in X.columns], lambda name: _pandas(X[name].compute())
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        names = [str(c) for c in X.columns]
        return names, lambda name: _pandas(X.iloc[:, names.index(name)])
    if package == "polars":
        return list(X.columns), lambda name: read_arrow_column(X[name].to_arrow())
    raise ValueError(
        f"{wanted!r} names a column, but X, a {type(X).__name__}, has no column names; give an "
        "array instead, or X as a table or a Parquet or CSV file"
    )


def _pandas(column: Any) -> Array:
    if getattr(column.dtype, "kind", "O") in "iubf" and isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy())
    return _objects(column.isna().to_numpy(), column.astype(object).to_list())


def read_arrow_column(column: Any) -> Array:
    """An array of arrow; of integers, text or truth values of which some lack, objects and None."""
    if column.null_count == 0 and not pa.types.is_dictionary(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array)
                          else column.to_numpy())  # fmt: skip
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_pandas())
    values = column.to_pylist()
    return _objects(np.array([v is None for v in values]), values)


def _objects(missing: Array, values: list[Any]) -> Array:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    out[missing] = None
    return out


def _file_columns(path: Any) -> tuple[list[str], Any]:
    kind, files = list_files(path)
    if kind == "npy":
        raise ValueError(
            f"y names a column, but {files[0]} has no column names; give y as an array, or X as a "
            "Parquet or CSV file"
        )
    names = _parquet_names(files[0]) if kind == "parquet" else _csv_names(files[0])
    one = _parquet_column if kind == "parquet" else _csv_column
    return names, lambda name: _whole_of_file(read_arrow_column(pa.chunked_array(
        [chunk for file in files for chunk in one(file, name).chunks])))  # fmt: skip


def _parquet_names(file: Path) -> list[str]:
    return list(pq.read_schema(file).names)


def _parquet_column(file: Path, name: str) -> Any:
    return pq.read_table(file, columns=[name]).column(0)


def _csv_names(file: Path) -> list[str]:
    with open_delimited(file) as reader:
        return list(reader.schema.names)


def _csv_column(file: Path, name: str) -> Any:
    options = import_module("pyarrow.csv").ConvertOptions(
        include_columns=[name],
        strings_can_be_null=True,
        null_values=["", "NA", "NaN", "nan", "null"],
    )
    with open_delimited(file, options) as reader:
        return reader.read_all().column(0)
