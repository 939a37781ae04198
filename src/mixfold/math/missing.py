"""Gaussians with missing entries: conditional moments, row by row, grouped by pattern.

In terms of the precision Lambda, with m the missing and o the observed entries of a row,

    E[x_m | x_o]   = mu_m - Lambda_mm^-1 Lambda_mo (x_o - mu_o)
    Cov[x_m | x_o] = Lambda_mm^-1
    ln |Sigma_oo|  = ln |Sigma| + ln |Lambda_mm|

and the quadratic form of the row completed with its conditional mean equals that of the observed
part under Sigma_oo. So a pattern costs a factor of size |m|, not |o|.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel, summing_kernel


@dataclass(frozen=True, slots=True)
class Patterns:
    """Rows by the entries they lack: ``order[start[p]:start[p+1]]`` share ``missing[p]``."""

    order: Array
    start: Array
    missing: Array


def patterns_of(U: Array) -> Patterns:
    """Group the rows of (n, D) by their missing entries."""
    missing = np.isnan(U)
    keys = np.packbits(missing, axis=1)
    words = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1])))[:, 0]
    _, first, inverse, counts = np.unique(
        words, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(inverse, kind="stable")
    start = np.concatenate([[0], np.cumsum(counts)])
    return Patterns(order, start, missing[first])


@kernel
def _factor(precision, where, A, column):
    """Lower Cholesky factor of precision[where, where] into A; returns ln of its determinant."""
    m = where.size
    log_det = 0.0
    for a in range(m):
        for b in range(a + 1):
            A[a, b] = precision[where[a], where[b]]
    for k in range(m):
        pivot = np.sqrt(A[k, k])
        log_det += 2 * np.log(pivot)
        A[k, k] = pivot
        for i in range(k + 1, m):
            A[i, k] /= pivot
            column[i] = A[i, k]
        for i in range(k + 1, m):
            factor = column[i]
            for j in range(k + 1, i + 1):
                A[i, j] -= factor * column[j]
    return log_det


@kernel
def _invert(A, m, M, inverse):
    """inverse = (A A')^-1 for the lower factor A of size m, by way of M = A^-1."""
    for i in range(m):
        M[i, : i + 1] = 0
        M[i, i] = 1
        for k in range(i):
            factor = A[i, k]
            for j in range(k + 1):
                M[i, j] -= factor * M[k, j]
        for j in range(i + 1):
            M[i, j] /= A[i, i]
    inverse[:m, :m] = 0
    for i in range(m):
        for a in range(i + 1):
            factor = M[i, a]
            for b in range(a + 1):
                inverse[a, b] += factor * M[i, b]
    for a in range(m):
        for b in range(a):
            inverse[b, a] = inverse[a, b]


@summing_kernel
def _fill_row(deviation, cross, inverse, where, g, filled):
    """The missing entries of one row: -inverse cross deviation."""
    m, n_seen = cross.shape
    for a in range(m):
        s = 0.0
        for o in range(n_seen):
            s += cross[a, o] * deviation[o]
        g[a] = s
    for a in range(m):
        s = 0.0
        for b in range(m):
            s += inverse[a, b] * g[b]
        filled[where[a]] = -s


@kernel
def _complete(U, order, start, missing, mean, precision, filled, log_det):
    D = U.shape[1]
    A, M, inverse, column = np.empty((D, D)), np.empty((D, D)), np.empty((D, D)), np.empty(D)
    deviation, g = np.empty(D), np.empty(D)
    for p in range(missing.shape[0]):
        where = np.nonzero(missing[p])[0]
        seen = np.nonzero(~missing[p])[0]
        log_det[p] = _factor(precision, where, A, column)
        _invert(A, where.size, M, inverse)
        cross = np.empty((where.size, seen.size))
        for a in range(where.size):
            for o in range(seen.size):
                cross[a, o] = precision[where[a], seen[o]]
        for row in order[start[p] : start[p + 1]]:
            for o in range(seen.size):
                deviation[o] = U[row, seen[o]] - mean[seen[o]]
                filled[row, seen[o]] = deviation[o]
            _fill_row(deviation, cross, inverse, where, g, filled[row])


def complete(U: Array, patterns: Patterns, mean: Array, precision: Array) -> tuple[Array, Array]:
    """Deviations from the mean, completed with conditional means, and ln|Lambda_mm| per row."""
    filled = np.empty(U.shape)
    log_det = np.empty(len(patterns.missing))
    _complete(U, patterns.order, patterns.start, patterns.missing, mean, precision, filled, log_det)
    per_row = np.empty(len(U))
    per_row[patterns.order] = np.repeat(log_det, np.diff(patterns.start))
    return filled, per_row


@kernel
def _add_conditional(order, start, missing, precision, resp, second):
    D = second.shape[0]
    A, M, inverse, column = np.empty((D, D)), np.empty((D, D)), np.empty((D, D)), np.empty(D)
    for p in range(missing.shape[0]):
        where = np.nonzero(missing[p])[0]
        total = 0.0
        for row in order[start[p] : start[p + 1]]:
            total += resp[row]
        if where.size == 0 or total == 0:
            continue
        _factor(precision, where, A, column)
        _invert(A, where.size, M, inverse)
        for a in range(where.size):
            for b in range(where.size):
                second[where[a], where[b]] += total * inverse[a, b]


def conditional_scatter(patterns: Patterns, precision: Array, resp: Array) -> Array:
    """sum_n resp_n Cov[x_m | x_o], embedded in (D, D)."""
    second = np.zeros(precision.shape)
    _add_conditional(patterns.order, patterns.start, patterns.missing, precision, resp, second)
    return second


@kernel
def _draw(order, start, missing, precision, normals, filled):
    D = filled.shape[1]
    A, column, b = np.empty((D, D)), np.empty(D), np.empty(D)
    for p in range(missing.shape[0]):
        where = np.nonzero(missing[p])[0]
        m = where.size
        _factor(precision, where, A, column)
        for row in order[start[p] : start[p + 1]]:
            # A'^-1 e has covariance (A A')^-1
            for a in range(m - 1, -1, -1):
                s = normals[row, where[a]]
                for c in range(a + 1, m):
                    s -= A[c, a] * b[c]
                b[a] = s / A[a, a]
                filled[row, where[a]] += b[a]


def add_conditional_draws(
    patterns: Patterns, precision: Array, normals: Array, filled: Array
) -> None:
    """Turn the conditional means in ``filled`` into conditional draws, in place."""
    _draw(patterns.order, patterns.start, patterns.missing, precision, normals, filled)
