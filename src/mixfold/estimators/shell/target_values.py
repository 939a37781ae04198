"""Arrays of targets, some entries unknown: read from whatever holds them, and as numbers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array


def as_target(y: Any) -> Array:
    """y as an array of one or two dimensions."""
    if sparse.issparse(y):
        y = y.toarray()
    if isinstance(y, np.ma.MaskedArray):
        y = _of_masked(y)
    if type(y).__module__.partition(".")[0] in ("pandas", "polars"):
        y = _of_frame(y)
    values = _of_list(y)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"y should be a 1d array, or have one column per output: it has shape {values.shape}"
        )
    if 0 in values.shape:
        raise ValueError(
            f"y is empty: it has shape {values.shape}, 0 sample(s) or outputs, while a minimum of "
            "1 is required. Give one entry per row"
        )
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers or labels")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Input y contains infinity or a value too large; every entry must be finite, or NaN if "
            "it is unknown"
        )
    return values


def _of_masked(y: np.ma.MaskedArray[Any, Any]) -> Array:
    values = np.array(y.data, dtype=object)
    values[np.ma.getmaskarray(y)] = None
    return values


def _of_list(y: Any) -> Array:
    values = np.asarray(y)
    if values.dtype.kind == "U" and not isinstance(y, np.ndarray):
        # numpy makes text of all that is beside text, NaN becomes 'nan'
        return np.array(y, dtype=object)
    return values


def _of_frame(y: Any) -> Array:
    """A series or frame as an array; its own marks of missing values become None or NaN."""
    if str(getattr(y, "dtype", "")).startswith(("Int", "UInt")) and hasattr(y, "array"):
        values = np.array(y.to_numpy(dtype=object))  # which may lack some; as floats -1 is a class
    else:
        values = np.asarray(y.to_numpy())
    if values.dtype == object:
        values = values.copy()
        values[missing(values)] = None
    return values


def unknown(values: Array) -> Array:
    """Where nothing is known of classes or labels: -1 among integers, NaN and None elsewhere."""
    lacks = missing(values)
    if values.dtype.kind in "iu" or (values.dtype.kind == "O" and _whole(values[~lacks])):
        lacks[~lacks] = values[~lacks] == -1
    return lacks


def missing(values: Array) -> Array:
    """Where there is no value: NaN and None."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, bool)
    return np.array([_is_missing(v) for v in values.flat], dtype=bool).reshape(values.shape)


def _whole(values: Array) -> bool:
    return all(isinstance(v, Integral) and not isinstance(v, bool) for v in values.flat)


def _is_missing(value: Any) -> bool:
    # only NaN is not itself
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def of_one_kind(values: Array) -> Array:
    """Objects of one kind as an array of that kind."""
    if values.dtype != object:
        return values
    text = [isinstance(v, str) for v in values.flat]
    if all(text):
        return values.astype(str)
    if any(text):
        other = values.ravel()[text.index(False)]
        raise ValueError(
            f"y mixes text, such as {values.ravel()[text.index(True)]!r}, and other values, such "
            f"as {other!r}; write them all as text, y.astype(str) say, with None where unknown"
        )
    try:
        return np.array(values.tolist())
    except ValueError:
        return values


def as_floats(values: Array) -> Array:
    if values.dtype.kind in "OUS":
        lacks = missing(values)
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
