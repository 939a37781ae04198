"""Columns named by a user: by position, or by name where the fit knew names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mixfold.contracts import Array


def column_positions(estimator: Any, columns: Any) -> Array:
    """Columns by name or position as distinct positions."""
    size = estimator.n_features_in_
    wanted = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
    names = list(getattr(estimator, "feature_names_in_", []))
    out = []
    for column in wanted:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"unknown column {column!r}; the columns are {names}")
            out.append(names.index(column))
        elif not isinstance(column, Integral) or isinstance(column, bool):
            raise ValueError(f"columns must be names or whole numbers, got {column!r}")
        elif not -size <= int(column) < size:
            raise ValueError(f"column {column} is out of range: there are {size} columns")
        else:
            out.append(int(column) % size)
    if not out or len(set(out)) < len(out):
        raise ValueError(f"columns must be distinct and at least one, got {wanted}")
    return np.array(out)
