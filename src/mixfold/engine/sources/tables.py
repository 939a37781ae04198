"""Blocks of Arrow tables (and of polars frames, which are Arrow tables without a copy)."""

from __future__ import annotations

from typing import Any

from mixfold.contracts import Array
from mixfold.engine.sources.arrow import (
    arrow_dtype,
    example,
    is_number,
    labels,
    matrix,
    not_a_number,
    weights,
)
from mixfold.engine.sources.checks import check_shape
from mixfold.engine.sources.columns import Choice, choose
from mixfold.engine.sources.rows import RowSource
from mixfold.engine.sources.weights_and_labels import Sides, sides_of


class ArrowSource(RowSource):
    """A ``pyarrow.Table``, converted block by block.

    Parameters
    ----------
    table : pyarrow.Table
    choice : Choice
        Positions of its columns, by use.
    sides : Sides
        Weights and labels, checked.
    """

    def __init__(self, table: Any, choice: Choice, sides: Sides) -> None:
        shape = check_shape((table.num_rows, len(choice.features)), "the table")
        dtype = arrow_dtype(table.schema.field(i).type for i in choice.features)
        super().__init__(shape, dtype, choice.names, sides)
        self._table = table.select(list(choice.features))

    def _take(self, first: int, last: int) -> Array:
        return matrix(self._table.slice(first, last - first).columns, self.dtype)


def open_arrow(table: Any, columns: Any, weight: Any, y: Any) -> ArrowSource:
    """A source over an Arrow table or record batch."""
    where = f"the {type(table).__name__}"
    choice = choose(table.schema.names, columns, weight, y, where)
    for i in choice.used:
        field = table.schema.field(i)
        if not is_number(field.type):
            shown, remedy = example(table.column(i)), f"X.drop([{field.name!r}])"
            raise not_a_number(where, field.name, field.type, shown, remedy=remedy)
    given = sides_of(weight, y, table.num_rows)
    sides = Sides(
        given.weight if choice.weight is None else weights(table.column(choice.weight)),
        given.y if choice.y is None else labels(table.column(choice.y)),
    )
    return ArrowSource(table, choice, sides.check_values())


def open_polars(frame: Any, columns: Any, weight: Any, y: Any) -> ArrowSource:
    """A source over a polars frame."""
    if not hasattr(frame, "to_arrow"):
        raise TypeError(
            f"X is a polars {type(frame).__name__}, whose rows are not there yet. Give "
            "X.collect(), or the path of the Parquet or CSV file it reads."
        )
    if len(frame.shape) != 2:
        raise ValueError(
            f"X is one polars Series; give a frame with X.to_frame(), got {frame.shape}"
        )
    return open_arrow(frame.to_arrow(), columns, weight, y)
