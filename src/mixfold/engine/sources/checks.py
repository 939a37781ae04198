"""Shape, type and finiteness of what comes in. Nothing further inside checks them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
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
    """Whether ``X`` (dense or CSR) holds no NaN; an infinity is an error.

    One sum settles the usual case, since a NaN or an infinity would show in it.
    """
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if np.isfinite(total):
        return True
    found = infinite_at(X)
    if found is not None:
        row, column, value = found
        raise ValueError(
            f"{column_label(column, names)} {place(start + row)} is {value} (rows count from 0); "
            f"{_MISSING_HINT}. Replace it by NaN if it means missing."
        )
    return not np.isnan(values).any()


def check_weight(weight: Array, start: int = 0, place: Place = row_of_x) -> None:
    """Weights are finite and not negative."""
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the weight of {place(start + row)} is {weight[row]} (rows count from 0); a weight "
            "must be finite and >= 0. Give weight 0 to a row that should not count."
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
