"""ln x! of counts: a table for the small ones, which are nearly all, and lnG(x + 1) beyond.

A base measure is summed again in every pass over the rows, so it has to cost less than the scores.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammaln

from mixfold.contracts import Array
from mixfold.math.compiled import kernel

_LIMIT = 512.0
TABLE: Array = gammaln(np.arange(1.0, _LIMIT + 1))


@kernel
def _log_factorial(x, table):
    """lnG(x + 1); counts are whole numbers, but anything above -1 has an answer."""
    if x >= 0 and x < _LIMIT:
        n = np.int64(x)
        if n == x:
            return table[n]
    return math.lgamma(x + 1.0)


@kernel
def _entries(values, table, out):
    for i in range(values.size):
        out[i] = _log_factorial(np.float64(values[i]), table)


@kernel
def _dense_rows(X, table, out):
    for i in range(X.shape[0]):
        total = 0.0
        for d in range(X.shape[1]):
            x = np.float64(X[i, d])
            if x == x:  # NaN is missing
                total += _log_factorial(x, table)
        out[i] = total


@kernel
def _sparse_rows(data, indptr, table, out):
    for i in range(indptr.size - 1):
        total = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x == x:
                total += _log_factorial(x, table)
        out[i] = total


def log_factorials(x: Array) -> Array:
    """ln x! of each entry, NaN where x is."""
    x = np.asarray(x)
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty(flat.size)
    _entries(flat, TABLE, out)
    return out.reshape(x.shape)


def log_factorial_sums(X: Any) -> Array:
    """sum_d ln x_d! over the observed entries of each row of an array or a CSR matrix.

    Examples
    --------
    >>> log_factorial_sums(np.array([[3.0, 1.0, np.nan], [0.0, 2.0, 2.0]])).round(4)
    array([1.7918, 1.3863])
    """
    out = np.empty(X.shape[0])
    if issparse(X):
        _sparse_rows(X.data, X.indptr, TABLE, out)
    else:
        _dense_rows(np.array(X, order="C", copy=None), TABLE, out)
    return out
