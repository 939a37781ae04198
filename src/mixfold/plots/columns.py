"""Columns of a fitted model by name or position."""

from __future__ import annotations

from typing import Any


def column_index(model: Any, column: int | str) -> int:
    """Position of a column that is given by position or, if the model knows names, by name."""
    names = list(getattr(model, "feature_names_in_", ()))
    if isinstance(column, str):
        if column not in names:
            known = ", ".join(map(str, names)) or "none: the model was fitted without names"
            raise ValueError(f"columns: there is no column {column!r}. Known columns: {known}.")
        return names.index(column)
    if not 0 <= column < model.means_.shape[1]:
        raise ValueError(
            f"columns: positions run from 0 to {model.means_.shape[1] - 1}; got {column}."
        )
    return column
