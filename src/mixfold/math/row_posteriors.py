"""Posteriors of latents where each row has other missing entries: one factor per row.

M_n = I + sum_{j seen} w_j w_j' / psi_j comes packed, as ``symmetric.pack`` does it: all rows from
one product.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel


@kernel
def _invert_lower(L, d):
    """The lower factor L becomes its own inverse."""
    for i in range(d):
        for j in range(i):
            s = 0.0
            for k in range(j, i):
                s += L[i, k] * L[k, j]
            L[i, j] = -s / L[i, i]
        L[i, i] = 1.0 / L[i, i]


@kernel
def _place(i, j, d):
    """Where entry (i, j), i <= j, of a packed matrix stands."""
    return i * d - i * (i - 1) // 2 + j - i


@kernel
def _factor(packed, L, d):
    """Cholesky factor of I + packed into L; returns ln of the determinant."""
    log_det = 0.0
    for i in range(d):
        for j in range(i + 1):
            s = packed[_place(j, i, d)] + (1.0 if i == j else 0.0)
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(s)
                log_det += np.log(s)
            else:
                L[i, j] = s / L[j, j]
    return log_det


@kernel
def _posteriors(packed, b, z, covariance, log_det):
    n, d = b.shape
    L, a = np.empty((d, d)), np.empty(d)
    for row in range(n):
        log_det[row] = _factor(packed[row], L, d)
        # in place: row i of the inverse needs rows above it inverted, and its own row of L
        _invert_lower(L, d)
        for i in range(d):
            s = 0.0
            for j in range(i + 1):
                s += L[i, j] * b[row, j]
            a[i] = s
        for i in range(d):
            s = 0.0
            for k in range(i, d):
                s += L[k, i] * a[k]
            z[row, i] = s
        for i in range(d):
            for j in range(i + 1):
                s = 0.0
                for k in range(i, d):
                    s += L[k, i] * L[k, j]
                covariance[row, _place(j, i, d)] = s


def row_posteriors(packed: Array, b: Array) -> tuple[Array, Array, Array]:
    """M^-1 b (n, d), packed M^-1 (n, d (d + 1) / 2) and ln|M| (n,) of M = I + packed."""
    z, covariance, log_det = np.empty_like(b), np.empty_like(packed), np.empty(len(b))
    _posteriors(np.ascontiguousarray(packed), np.ascontiguousarray(b), z, covariance, log_det)
    return z, covariance, log_det


def add_outer(covariance: Array, z: Array) -> Array:
    """Packed E[zz'] = Cov + z z' of each row (..., d)."""
    row, column = np.triu_indices(z.shape[-1])
    return np.asarray(covariance + z[..., row] * z[..., column])
