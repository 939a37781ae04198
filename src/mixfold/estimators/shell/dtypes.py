"""Results in the type of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array


def in_dtype(values: Any, dtype: Any) -> Array:
    """``values`` as ``dtype``, that of the data; float64 if finite values do not fit into it.

    Rows of float32 may be of size 1e25: their variances are 1e50. Values all of which are smaller
    than float32 can tell from zero do not fit, either.
    """
    values = np.asarray(values)
    if values.dtype == dtype or values.dtype.kind != "f" or np.dtype(dtype).kind != "f":
        return values.astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        found = values.astype(dtype)
    size = float(np.abs(found).max(initial=0.0))
    if not np.finfo(dtype).tiny <= size < np.inf:  # also where it is NaN
        lost = np.isinf(found) & np.isfinite(values)
        if lost.any() or (size < np.finfo(dtype).tiny and values.any()):
            return values.copy()
    return found
