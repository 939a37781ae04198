"""Checks of input tables: shape, type, finite values. Code behind them relies on these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# The largest entry and target: squares of more leave the range of floats.
LARGEST = 1e150
# Weights beyond these are no numbers of rows, and sums of squares would leave that range with them.
HEAVIEST, LIGHTEST = 1e100, 1e-100
_MISSING_HINT = "every entry must be finite, or NaN if it is missing"


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What blocks of data of this type hold: float32 stays, all other numbers become float64."""
    small = dtype.kind == "f" and dtype.itemsize <= 4
    return FLOAT32 if small else FLOAT64


def check_shape(shape: tuple[int, ...], kind: str = "X") -> tuple[int, int]:
    """Rows and columns of something that must be a non-empty table."""
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: {kind} must have shape "
            f"(n_samples, n_features), got {shape}. Reshape your data, with X.reshape(-1, 1) if "
            "it is one column or X.reshape(1, -1) if it is one row."
        )
    n, d = shape
    if n == 0:
        raise ValueError(
            f"{kind} has 0 sample(s) (shape={shape}) while a minimum of 1 is required. "
            "Check the filter or the file the rows came from."
        )
    if d == 0:
        raise ValueError(
            f"{kind} has 0 feature(s) (shape={shape}) while a minimum of 1 is required. "
            "Choose at least one column."
        )
    return n, d


def column_label(j: int, names: tuple[str, ...] | None) -> str:
    """How messages name column ``j``."""
    return f"column {j}" if names is None else f"column {names[j]!r}"


def infinite_at(X: Any) -> tuple[int, int, float] | None:
    """Row, column and value of the first infinity, or None. Called only when a sum is odd."""
    values = X.data if sparse.issparse(X) else X
    wrong = np.isinf(values)
    if not wrong.any():
        return None
    if sparse.issparse(X):
        at = int(np.flatnonzero(wrong)[0])
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        return row, int(X.indices[at]), float(values[at])
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    return row, column, float(values[row, column])


# How messages name a row, given its global index.
Place = Callable[[int], str]


def row_of_x(row: int) -> str:
    """The name of a row of a table in memory."""
    return f"row {row} of X"


def is_complete(X: Any, start: int, names: tuple[str, ...] | None, place: Place = row_of_x) -> bool:
    """Whether ``X`` (dense or CSR) holds no NaN; an infinity or a huge entry is an error.

    One sum of squares settles the usual case: a NaN, an infinity or a huge entry would show in it.
    """
    values = X.data if sparse.issparse(X) else X
    if _sum_of_squares(values) < LARGEST**2:
        return True
    found = infinite_at(X)
    if found is not None:
        row, column, value = found
        raise ValueError(
            f"{column_label(column, names)} {place(start + row)} is {value} (rows count from 0); "
            f"{_MISSING_HINT}. Replace it by NaN if it means missing."
        )
    _check_size(X, values, start, names, place)
    return not np.isnan(values).any()


def _sum_of_squares(values: Array) -> float:
    """NaN or infinity if the squares cannot be added; of an array that is not copied."""
    with np.errstate(over="ignore", invalid="ignore"):
        flat = values.ravel(order="K")
        return float(np.dot(flat, flat))


def _check_size(
    X: Any, values: Array, start: int, names: tuple[str, ...] | None, place: Place
) -> None:
    """Refuse entries whose squares leave the range of floats; those of float32 become float64."""
    if values.dtype.itemsize < FLOAT64.itemsize:
        return
    with np.errstate(invalid="ignore"):
        far = np.abs(values) > LARGEST
    if not far.any():
        return
    value = float(values[far][0])
    if sparse.issparse(X):
        at = int(np.flatnonzero(far)[0])
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    else:
        row, column = (int(i) for i in np.argwhere(far)[0])
    raise ValueError(
        f"{column_label(column, names)} {place(start + row)} is {value:g} (rows count "
        f"from 0), which is too large to be squared: entries must lie within {LARGEST:g} of zero. "
        "Divide the column by a constant, or replace the entry by NaN if it is a mistake."
    )


def check_weight(weight: Array, start: int = 0, place: Place = row_of_x) -> None:
    """Weights are finite and not negative."""
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the weight of {place(start + row)} is {weight[row]} (rows count from 0); a weight "
            "must be finite and >= 0. Give weight 0 to a row that should not count."
        )
    heaviest = float(weight.max(initial=0.0))
    if heaviest > HEAVIEST or 0 < heaviest < LIGHTEST:
        row = int(np.argmax(weight))
        raise ValueError(
            f"the weight of {place(start + row)} is {heaviest:g} (rows count from 0), the largest; "
            f"it must lie between {LIGHTEST:g} and {HEAVIEST:g}. Multiply or divide all weights by "
            "a constant."
        )


def nothing_weighs() -> ValueError:
    """The error for weights that are all zero."""
    return ValueError(
        "sample_weight is zero in every row: at least one row must have a positive weight."
    )


def check_labels(y: Array, start: int = 0, place: Place = row_of_x) -> None:
    """Real outputs are finite or NaN."""
    if y.dtype.kind == "f" and np.isinf(y).any():
        row = int(np.argwhere(np.isinf(y))[0][0])
        raise ValueError(
            f"y is infinite in {place(start + row)} (rows count from 0); {_MISSING_HINT}."
        )
    if y.dtype.kind == "f" and (largest := largest_entry(y)) > LARGEST:
        raise ValueError(describe_large_target(largest))


def largest_entry(y: Array) -> float:
    """The largest absolute value that is not NaN, 0 if there is none."""
    known = np.abs(y[~np.isnan(y)].astype(FLOAT64))
    return float(known.max(initial=0.0))


def describe_large_target(value: float) -> str:
    """The message for a target that is too large to be squared."""
    return (
        f"y holds a value of size {value:g}, which is too large to be squared: targets must lie "
        f"within {LARGEST:g} of zero. Divide y by a constant."
    )
