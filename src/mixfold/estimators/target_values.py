"""Arrays of targets, some entries unknown: read from whatever holds them, and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array


def as_target(y: Any) -> Array:
    """y as an array of one or two dimensions."""
    if sparse.issparse(y):
        y = y.toarray()
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(float), np.nan)
    if type(y).__module__.partition(".")[0] in ("pandas", "polars"):
        y = _of_frame(y)
    values = np.asarray(y)
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            f"y should be a 1d array, or have one column per output: it has shape {values.shape}"
        )
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers or labels")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Input y contains infinity or a value too large; every entry must be finite, or NaN if "
            "it is unknown"
        )
    return values


def _of_frame(y: Any) -> Array:
    """A series or frame as an array; its own marks of missing values become None or NaN."""
    values = np.asarray(y.to_numpy())
    if values.dtype == object:
        values = values.copy()
        values[unknown(values)] = None
    return values


def unknown(values: Array) -> Array:
    """Where nothing is known: -1 among whole numbers, NaN and None elsewhere."""
    if values.dtype.kind in "iu":
        return np.asarray(values == -1)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, bool)
    return np.array([_is_missing(v) for v in values.flat], dtype=bool).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    # only NaN is not itself
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def of_one_kind(values: Array) -> Array:
    """Objects of one kind as an array of that kind."""
    if values.dtype != object:
        return values
    if all(isinstance(v, str) for v in values.flat):
        return values.astype(str)
    try:
        return np.array(values.tolist())
    except ValueError:
        return values


def as_floats(values: Array) -> Array:
    if values.dtype.kind in "OUS":
        lacks = unknown(values)
        try:
            filled = np.where(lacks, np.nan, values).astype(float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y must hold numbers, NaN where unknown, but it holds {_first_text(values)!r}; "
                "for classes set task='classification'"
            ) from error
        if np.isinf(filled).any():
            raise ValueError("Input y contains infinity; every entry must be finite, or NaN")
        return filled
    return values.astype(float)


def _first_text(values: Array) -> Any:
    for value in values.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return value
    return values.flat[0]
