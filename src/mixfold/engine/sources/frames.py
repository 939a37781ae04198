"""Blocks of pandas frames; pandas is imported only if a frame is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.sources.checks import FLOAT32, FLOAT64, check_shape, float_dtype
from mixfold.engine.sources.columns import Choice, choose
from mixfold.engine.sources.rows import RowSource
from mixfold.engine.sources.weights_and_labels import Sides, sides_of

# What pandas says of object columns that hold numbers (and None) only.
_OBJECT_NUMBERS = {"floating", "integer", "mixed-integer-float", "boolean", "decimal", "empty"}


class PandasSource(RowSource):
    """A pandas frame, converted block by block (a view where pandas can give one).

    Parameters
    ----------
    frame : pandas.DataFrame
    choice : Choice
        Positions of its columns, by use.
    sides : Sides
        Weights and labels, checked.
    first_row : int
        Global index of the first row, when the frame is a piece of something larger.
    """

    def __init__(self, frame: Any, choice: Choice, sides: Sides, first_row: int = 0) -> None:
        shape = check_shape((len(frame), len(choice.features)), "the DataFrame")
        dtype = pandas_dtype(frame, choice)
        super().__init__(shape, dtype, choice.names, sides, first_row=first_row)
        self._frame = frame.iloc[:, list(choice.features)]
        self._objects = any(_is_object(kind) for kind in self._frame.dtypes)

    def _take(self, first: int, last: int) -> Array:
        part = self._frame.iloc[first:last]
        if self._objects:
            part = part.astype(FLOAT64)
        X: Array = part.to_numpy(dtype=self.dtype, na_value=np.nan)
        return X if X.itemsize in X.strides else np.ascontiguousarray(X)


def open_pandas(frame: Any, columns: Any, weight: Any, y: Any) -> PandasSource:
    """A source over a pandas frame."""
    if len(frame.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X is one pandas Series of shape "
            f"{frame.shape}. Reshape your data with X.to_frame()."
        )
    choice = choose(list(frame.columns), columns, weight, y, "the DataFrame")
    check_pandas(frame, choice)
    sides = pandas_sides(frame, choice, sides_of(weight, y, len(frame)))
    return PandasSource(frame, choice, sides.check_values())


def check_pandas(frame: Any, choice: Choice, values: bool = True) -> None:
    """Every used column is a number. Without ``values`` the types alone are looked at."""
    from pandas.api.types import infer_dtype, is_numeric_dtype

    for i in choice.used:
        column = frame.iloc[:, i]
        kind = column.dtype
        if is_numeric_dtype(kind) and getattr(kind, "kind", "f") != "c":
            continue
        if _is_object(kind) and (not values or infer_dtype(column, skipna=True) in _OBJECT_NUMBERS):
            continue
        known = column.dropna() if values else column
        shown = repr(known.iloc[0]) if len(known) else ""
        from mixfold.engine.sources.arrow import not_a_number

        name = frame.columns[i]
        remedy = f"X.drop(columns={[name]!r})"
        raise not_a_number("the DataFrame", str(name), kind, shown, remedy=remedy)


def pandas_dtype(frame: Any, choice: Choice) -> np.dtype[Any]:
    """float32 if every feature is single precision, else float64."""
    kinds = [frame.dtypes.iloc[i] for i in choice.features]
    small = all(
        getattr(kind, "kind", "O") == "f" and float_dtype(_numpy_dtype(kind)) == FLOAT32
        for kind in kinds
    )
    return FLOAT32 if small else FLOAT64


def pandas_sides(frame: Any, choice: Choice, given: Sides) -> Sides:
    """Weights and labels out of the frame's own columns, where they were named."""
    weight, y = given.weight, given.y
    if choice.weight is not None:
        weight = frame.iloc[:, choice.weight].to_numpy(dtype=FLOAT64, na_value=np.nan)
    if choice.y is not None:
        y = _labels(frame.iloc[:, choice.y])
    return Sides(weight, y)


def _labels(column: Any) -> Array:
    """Integers with -1 for a missing label, real outputs with NaN."""
    if getattr(column.dtype, "kind", "O") in "iub":
        return np.asarray(column.to_numpy(dtype=np.int64, na_value=-1))
    return np.asarray(column.to_numpy(dtype=FLOAT64, na_value=np.nan))


def _numpy_dtype(kind: Any) -> np.dtype[Any]:
    """The numpy type under a pandas one (``Float32``, ``float[pyarrow]``, sparse)."""
    under = getattr(kind, "numpy_dtype", getattr(kind, "subtype", kind))
    dtype: np.dtype[Any] = np.dtype(under)
    return dtype


def _is_object(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind == "O"
