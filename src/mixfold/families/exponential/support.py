"""Entries that no component can produce, named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block

Fault = Callable[[Array, Array], Array]


def refuse(
    block: Block, names: Array | None, size: Array, fault: Fault, rule: Callable[[float], str]
) -> None:
    """Raise a ValueError for the first entry (of a row of positive weight) that is at fault.

    NaN is missing and is no fault.
    """
    X: Any = block.X
    with np.errstate(invalid="ignore"):
        if issparse(X):
            bad = np.flatnonzero(fault(X.data, size[X.indices]) & ~np.isnan(X.data))
            rows = np.searchsorted(X.indptr, bad, side="right") - 1
            columns, values = X.indices[bad], X.data[bad]
        else:
            rows, columns = np.nonzero(fault(X, size) & ~np.isnan(X))
            values = X[rows, columns]
    weight = block.weights()
    for row, column, value in zip(rows, columns, values, strict=True):
        if weight[row] > 0:
            raise ValueError(
                f"column {column_name(names, int(column))} {rule(float(size[column]))}; row "
                f"{block.start + int(row)} has {_exact(value)}. Correct the entry, make it NaN if "
                "it is not known, or choose another family for the column."
            )


def refuse_sparse(block: Block, name: str, what: str) -> None:
    """Raise for sparse rows of a family whose entries are never zero."""
    if issparse(block.X):
        raise ValueError(
            f"the family {name!r} takes {what} only, and the entries that a sparse matrix does not "
            "store are zeros. Pass a dense array, or choose the family 'poisson' for counts."
        )


def _exact(value: Any) -> str:
    """A number as short as it can be told from its neighbours: 3.0000001 is no 3."""
    short = f"{value:g}"
    return short if float(short) == value else str(value)


def column_name(names: Array | None, column: int) -> str:
    """A column as users know it."""
    return str(column) if names is None else repr(str(names[column]))


def per_column(value: Any, n_features: int, what: str) -> Array:
    """A setting that is one number or one per column, as (D,)."""
    values = np.asarray(value, float)
    if values.shape not in ((), (1,), (n_features,)):
        raise ValueError(
            f"{what} must be one number or one for each of the {n_features} columns, got an array "
            f"of shape {values.shape}"
        )
    return np.array(np.broadcast_to(values, (n_features,)))


def require_positive(value: Any, what: str, *, whole: bool = False) -> None:
    """Raise unless a setting (None: open) is made of positive (whole) numbers."""
    if value is None:
        return
    try:
        values = np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be a number or an array of numbers, got {value!r}") from error
    good = np.isfinite(values) & (values > 0)
    if whole:
        good &= values == np.round(values)
    if values.ndim > 1 or not values.size or not good.all():
        kind = "positive whole numbers" if whole else "positive and finite"
        raise ValueError(
            f"{what} must be {kind}, one or one per column; got {value!r}. Leave it out for the "
            "usual one"
        )
