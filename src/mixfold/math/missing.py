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
from mixfold.math.compiled import kernel


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
def _factor(precision, where, L):
    """Lower Cholesky factor of precision[where, where] into L; returns ln of its determinant."""
    m = where.size
    log_det = 0.0
    for a in range(m):
        for b in range(a + 1):
            s = precision[where[a], where[b]]
            for c in range(b):
                s -= L[a, c] * L[b, c]
            L[a, b] = np.sqrt(s) if a == b else s / L[b, b]
        log_det += 2 * np.log(L[a, a])
    return log_det


@kernel
def _solve(L, m, b):
    """b <- (L L')^-1 b."""
    for a in range(m):
        for c in range(a):
            b[a] -= L[a, c] * b[c]
        b[a] /= L[a, a]
    for a in range(m - 1, -1, -1):
        for c in range(a + 1, m):
            b[a] -= L[c, a] * b[c]
        b[a] /= L[a, a]


@kernel
def _complete(U, order, start, missing, mean, precision, filled, log_det):
    D = U.shape[1]
    L, b = np.empty((D, D)), np.empty(D)
    for p in range(missing.shape[0]):
        where = np.nonzero(missing[p])[0]
        seen = np.nonzero(~missing[p])[0]
        m = where.size
        log_det[p] = _factor(precision, where, L)
        for row in order[start[p] : start[p + 1]]:
            for a in range(m):
                s = 0.0
                for o in seen:
                    s += precision[where[a], o] * (U[row, o] - mean[o])
                b[a] = s
            _solve(L, m, b)
            for o in seen:
                filled[row, o] = U[row, o] - mean[o]
            for a in range(m):
                filled[row, where[a]] = -b[a]


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
    L, b = np.empty((D, D)), np.empty(D)
    for p in range(missing.shape[0]):
        where = np.nonzero(missing[p])[0]
        m = where.size
        if m == 0:
            continue
        total = 0.0
        for row in order[start[p] : start[p + 1]]:
            total += resp[row]
        _factor(precision, where, L)
        for c in range(m):
            b[:m] = 0.0
            b[c] = total
            _solve(L, m, b)
            for a in range(m):
                second[where[a], where[c]] += b[a]


def conditional_scatter(patterns: Patterns, precision: Array, resp: Array) -> Array:
    """sum_n resp_n Cov[x_m | x_o], embedded in (D, D)."""
    second = np.zeros(precision.shape)
    _add_conditional(patterns.order, patterns.start, patterns.missing, precision, resp, second)
    return second


@kernel
def _draw(order, start, missing, precision, normals, filled):
    D = filled.shape[1]
    L, b = np.empty((D, D)), np.empty(D)
    for p in range(missing.shape[0]):
        where = np.nonzero(missing[p])[0]
        m = where.size
        if m == 0:
            continue
        _factor(precision, where, L)
        for row in order[start[p] : start[p + 1]]:
            # L'^-1 e has covariance (L L')^-1
            for a in range(m - 1, -1, -1):
                s = normals[row, where[a]]
                for c in range(a + 1, m):
                    s -= L[c, a] * b[c]
                b[a] = s / L[a, a]
                filled[row, where[a]] += b[a]


def add_conditional_draws(
    patterns: Patterns, precision: Array, normals: Array, filled: Array
) -> None:
    """Turn the conditional means in ``filled`` into conditional draws, in place."""
    _draw(patterns.order, patterns.start, patterns.missing, precision, normals, filled)
