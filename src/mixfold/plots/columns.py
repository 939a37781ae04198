"""Columns of a fitted model by name or position, and rows as a matrix of these columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixfold.contracts import Array


def column_index(model: Any, column: int | str) -> int:
    """Position of a column that is given by position or, if the model knows names, by name."""
    names = list(getattr(model, "feature_names_in_", ()))
    if isinstance(column, str):
        if column not in names:
            known = ", ".join(map(str, names)) or "none: the model was fitted without names"
            raise ValueError(f"columns: there is no column {column!r}. Known columns: {known}.")
        return names.index(column)
    size = _size(model)
    if not 0 <= column < size:
        raise ValueError(f"columns: positions run from 0 to {size - 1}; got {column}.")
    return column


def choose_columns(model: Any, columns: Sequence[int | str] | None) -> list[int]:
    """Positions of the columns that are named, or of all of them."""
    chosen = range(_size(model)) if columns is None else columns
    if not len(chosen):
        raise ValueError("columns is empty; name at least one column, or leave it out.")
    return [column_index(model, column) for column in chosen]


def column_names(model: Any) -> list[str]:
    """The names that the model knows, or ``column 0`` and so on."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    return names or [f"column {j}" for j in range(_size(model))]


def matrix_of(model: Any, X: Any) -> Array:
    """The rows X as numbers, of a table the columns of the model in its order."""
    names = list(getattr(model, "feature_names_in_", ()))
    if names and hasattr(X, "columns") and hasattr(X, "__getitem__"):
        X = X[names]
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    elif hasattr(X, "toarray"):
        X = X.toarray()
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != _size(model):
        raise ValueError(
            f"X must be rows of {_size(model)} columns, as in the fit; got an array of shape "
            f"{rows.shape}."
        )
    return rows


def _size(model: Any) -> int:
    """Number of columns."""
    known = getattr(model, "n_features_in_", None)
    return int(np.shape(model.means_)[1] if known is None else known)
