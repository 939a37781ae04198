"""Minimum, maximum and number of observed entries of every column of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array

# Numbers in a folded row: numpy reduces long rows several times faster than short ones.
_FOLD = 2048


def column_summary(X: Any, complete: bool) -> tuple[Array, Array, Array]:
    """Observed entries, minimum and maximum per column.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, D)
    complete : bool
        True when there is no NaN.

    Returns
    -------
    observed : int64 ndarray of shape (D,)
    minimum, maximum : float64 ndarrays of shape (D,)
        NaN where nothing was observed.
    """
    if sparse.issparse(X):
        return _sparse_summary(X)
    n, width = X.shape
    minimum = reduce_columns(np.fmin, X).astype(np.float64)
    maximum = reduce_columns(np.fmax, X).astype(np.float64)
    missing = 0 if complete else np.isnan(X).sum(axis=0, dtype=np.int64)
    return np.full(width, n, dtype=np.int64) - missing, minimum, maximum


def reduce_columns(ufunc: np.ufunc, X: Array) -> Array:
    """``ufunc.reduce(X, axis=0)``, fast also for tables of few columns; NaN if X has no row."""
    n, width = X.shape
    if n == 0:
        return np.full(width, np.nan, dtype=X.dtype)
    fold = max(1, _FOLD // width)
    if fold == 1 or n < 2 * fold or not X.flags.c_contiguous:
        return np.asarray(ufunc.reduce(X, axis=0))
    whole = n // fold * fold
    folded = ufunc.reduce(X[:whole].reshape(-1, fold * width), axis=0)
    rest = np.concatenate([folded.reshape(fold, width), X[whole:]])
    return np.asarray(ufunc.reduce(rest, axis=0))


def _sparse_summary(X: Any) -> tuple[Array, Array, Array]:
    """As above; an entry that is not stored is an observed zero."""
    n, width = X.shape
    minimum, maximum = np.full(width, np.nan), np.full(width, np.nan)
    data = X.data.astype(np.float64, copy=False)
    np.fmin.at(minimum, X.indices, data)
    np.fmax.at(maximum, X.indices, data)
    implicit = np.bincount(X.indices, minlength=width) < n
    minimum[implicit] = np.fmin(minimum[implicit], 0.0)
    maximum[implicit] = np.fmax(maximum[implicit], 0.0)
    missing = np.bincount(X.indices[np.isnan(data)], minlength=width)
    return n - missing, minimum, maximum
