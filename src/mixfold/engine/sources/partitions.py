"""Partitions of Dask collections as executors see them, and how they are cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Block
from mixfold.engine.sources.array import ArraySource
from mixfold.engine.sources.columns import Choice
from mixfold.engine.sources.frames import PandasSource, check_pandas, pandas_sides
from mixfold.engine.sources.rows import RowSource
from mixfold.engine.sources.sparse import SparseSource
from mixfold.engine.sources.weights_and_labels import Sides

# What a partition's ``data`` becomes when computed: rows, weights, labels.
Values = tuple[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """Turns the computed values of one partition into blocks. Small and picklable.

    Attributes
    ----------
    start : int
        Global index of the partition's first row.
    n_rows : int
        Its number of rows.
    rows : int
        Rows of a block.
    choice : Choice or None
        Columns by use, for dataframes.
    """

    start: int
    n_rows: int
    rows: int
    choice: Choice | None = None

    def __call__(self, values: Values, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of the partition, checked, in row order."""
        data, weight, y = values
        given = Sides(
            None if weight is None else np.asarray(weight, dtype=np.float64),
            None if y is None else np.asarray(y),
        )
        return self._open(data, given).blocks(self.rows if max_rows is None else max_rows)

    def _open(self, data: Any, given: Sides) -> RowSource:
        if data.shape[0] != self.n_rows:
            raise ValueError(
                f"the partition of rows from {self.start} on has {data.shape[0]} rows when "
                f"computed, but {self.n_rows} were announced. Call X.compute_chunk_sizes(), or "
                "persist X if its source changes."
            )
        if self.choice is not None:
            check_pandas(data, self.choice)
            given = pandas_sides(data, self.choice, given)
        sides = given.check_values(self.start, whole=False)
        if self.choice is not None:
            return PandasSource(data, self.choice, sides, self.start)
        if sparse.issparse(data):
            return SparseSource(data, sides, first_row=self.start)
        return ArraySource(np.asarray(data), sides, first_row=self.start)


@dataclass(frozen=True, slots=True)
class Partition:
    """Some consecutive rows of a Dask collection.

    Attributes
    ----------
    data : dask Delayed
        The rows, their weights and their labels.
    cut : Cut
        Gives the blocks, once the data are computed.
    """

    data: Any
    cut: Cut

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.cut.n_rows

    @property
    def n_blocks(self) -> int:
        """Number of blocks that ``cut`` gives."""
        return -(-self.cut.n_rows // self.cut.rows)
