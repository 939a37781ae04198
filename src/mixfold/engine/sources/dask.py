"""Dask arrays and dataframes: rows that live in partitions, perhaps on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from mixfold.contracts import Block
from mixfold.engine.sources.array import check_type
from mixfold.engine.sources.checks import check_shape, float_dtype, nothing_weighs
from mixfold.engine.sources.columns import Choice, choose
from mixfold.engine.sources.frames import check_pandas, pandas_dtype
from mixfold.engine.sources.partitions import Cut, Partition
from mixfold.engine.sources.sizes import block_rows
from mixfold.engine.sources.weights_and_labels import sides_of


class DaskSource:
    """A Dask array or dataframe, cut along its rows.

    Use :func:`open_dask`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        names: tuple[str, ...] | None,
        partitions: list[Partition],
    ) -> None:
        self._shape = check_shape(shape)
        self._dtype = dtype
        self._names = names
        self._partitions = partitions

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._shape[1]

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of a dataframe."""
        return self._names

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self._dtype

    def partitions(self) -> list[Partition]:
        """The pieces in row order, none of them empty, for an executor on a cluster."""
        return list(self._partitions)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks in row order; one partition after the other is computed and held."""
        if max_rows is not None:
            block_rows(None, 1.0, max_rows)  # refuses what is no size
        return self._blocks(max_rows)

    def _blocks(self, max_rows: int | None) -> Iterator[Block]:
        compute = import_module("dask").compute
        weighs = False
        for part in self._partitions:
            (values,) = compute(part.data)
            for block in part.cut(values, max_rows):
                weighs = weighs or block.weight is None or bool(block.weight.any())
                yield block
        if not weighs:
            raise nothing_weighs()


def is_dask(X: Any) -> bool:
    """Whether ``X`` is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def is_dask_frame(X: Any) -> bool:
    """Whether ``X`` is a Dask dataframe or series: something with names."""
    return is_dask(X) and hasattr(type(X), "to_dask_array")


def open_dask(X: Any, columns: Any, weight: Any, y: Any) -> DaskSource:
    """A source over a Dask array or dataframe. Unknown lengths are computed, once."""
    if not hasattr(type(X), "ndim"):  # of the class: a Delayed pretends to have any attribute
        raise TypeError(
            f"X is a Dask {type(X).__name__}; only arrays and dataframes have rows and columns."
        )
    return _dataframe(X, columns, weight, y) if is_dask_frame(X) else _array(X, weight, y)


def _array(X: Any, weight: Any, y: Any) -> DaskSource:
    if X.ndim != 2:
        check_shape(tuple(X.shape))
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    shape = check_shape(tuple(int(size) for size in X.shape))
    check_type(X._meta)
    lengths = [int(size) for size in X.chunks[0]]
    pieces = list(X.to_delayed().ravel())
    sides = _cut_sides(weight, y, lengths)
    dtype = float_dtype(X.dtype)
    return DaskSource(shape, dtype, None, _partitions(pieces, lengths, sides, shape, None))


def _dataframe(X: Any, columns: Any, weight: Any, y: Any) -> DaskSource:
    if X.ndim != 2:
        raise ValueError("X is one Dask Series; give a dataframe with X.to_frame().")
    choice = choose(list(X.columns), columns, weight, y, "the Dask DataFrame")
    check_pandas(X._meta, choice, values=False)
    lengths = [int(size) for size in X.map_partitions(len).compute()]
    shape = check_shape((sum(lengths), len(choice.features)), "the Dask DataFrame")
    sides = _cut_sides(weight, y, lengths)
    parts = _partitions(list(X.to_delayed()), lengths, sides, shape, choice)
    return DaskSource(shape, pandas_dtype(X._meta, choice), choice.names, parts)


def _partitions(
    pieces: list[Any],
    lengths: list[int],
    sides: list[tuple[Any, Any]],
    shape: tuple[int, int],
    choice: Choice | None,
) -> list[Partition]:
    delayed = import_module("dask").delayed
    rows = block_rows(shape[0], shape[1])
    starts = (np.cumsum(lengths) - lengths).tolist()
    return [
        Partition(delayed((piece, *side)), Cut(start, length, rows, choice))
        for piece, side, start, length in zip(pieces, sides, starts, lengths, strict=True)
        if length > 0
    ]


def _cut_sides(weight: Any, y: Any, lengths: list[int]) -> list[tuple[Any, Any]]:
    """Weights and labels per partition: slices of arrays, chunks of Dask arrays."""
    n = sum(lengths)
    local = sides_of(None if is_dask(weight) else weight, None if is_dask(y) else y, n)
    ends = np.cumsum(lengths).tolist()
    parts = [local.part(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    weights = _chunks("weight", weight, lengths) or [part.weight for part in parts]
    labels = _chunks("y", y, lengths) or [part.y for part in parts]
    return list(zip(weights, labels, strict=True))


def _chunks(name: str, values: Any, lengths: list[int]) -> list[Any] | None:
    """The pieces of a Dask array or series, cut where the rows are cut."""
    if not is_dask(values):
        return None
    if is_dask_frame(values):
        values = values.to_dask_array(lengths=True)
    if np.isnan(values.shape[0]):
        values = values.compute_chunk_sizes()
    if name == "weight" and values.ndim != 1:
        raise ValueError(f"weight must have one dimension, got shape {values.shape}.")
    if values.shape[0] != sum(lengths):
        raise ValueError(
            f"{name} has {values.shape[0]} entries, the data have {sum(lengths)} rows; give one "
            "entry per row, in the same order."
        )
    whole = {axis: -1 for axis in range(1, values.ndim)}
    return list(values.rechunk({0: tuple(lengths), **whole}).to_delayed().ravel())
