"""Collapsed Gibbs kernels for Gaussians with covariance matrices.

The scatter of a cluster is kept as a lower Cholesky factor, which a row that comes or goes changes
by a rotation of rank one. Where the covariance is known, a cluster keeps the precision of its mean.
"""

from __future__ import annotations

import math
from typing import Any

from mixfold.contracts import Array
from mixfold.math.compiled import kernel
from mixfold.math.urn_laws import LEAST_LEFT, log_rising

_HALF_LOG_PI = 0.5 * math.log(math.pi)


@kernel
def factor_update(L: Array, v: Array, sign: float) -> float:
    """L L' + sign v v' in place (v is used up); the least share of a squared pivot that is left.

    A share that is not positive says that the result is not positive definite: L is spoilt.
    """
    size, least = v.size, 1.0
    for j in range(size):
        old = L[j, j]
        square = old * old + sign * v[j] * v[j]
        least = min(least, float(square / (old * old)))
        if square <= 0:
            return least
        root = math.sqrt(square)
        cosine, sine = root / old, v[j] / old
        L[j, j] = root
        for i in range(j + 1, size):
            L[i, j] = (L[i, j] + sign * sine * v[i]) / cosine
            v[i] = cosine * v[i] - sine * L[i, j]
    return least


@kernel
def wishart_logs(slot: int, beta: float, degrees: float, clusters: Any) -> None:
    """What the log predictive of a cluster has in common for all rows."""
    _, seen, factor, head, _ = clusters
    size = factor.shape[1]
    rows, half = beta + seen[slot], 0.5 * (degrees + seen[slot] - size + 1)
    value = log_rising(half, 0.5 * size) - size * _HALF_LOG_PI
    value -= 0.5 * size * math.log1p(1 / rows)
    for d in range(size):
        value -= math.log(factor[slot, d, d])
    head[slot] = value


@kernel
def wishart_scores(
    row: int, counts: Array, U: Array, beta: float, degrees: float, clusters: Any, out: Array
) -> None:
    """Add the log density of Student's t; ``clusters`` is (mean, seen, factor, head, work)."""
    mean, seen, factor, head, work = clusters
    size = U.shape[1]
    for k in range(counts.size):
        if counts[k] > 0:
            square = 0.0
            for i in range(size):
                value = U[row, i] - mean[k, i]
                for j in range(i):
                    value -= factor[k, i, j] * work[j]
                work[i] = value / factor[k, i, i]
                square += work[i] * work[i]
            rows = beta + seen[k]
            power = 0.5 * (degrees + seen[k] + 1)
            out[k] += head[k] - power * math.log1p(square * rows / (1 + rows))


@kernel
def wishart_shift(
    row: int, slot: int, sign: float, U: Array, beta: float, degrees: float, clusters: Any
) -> bool:
    """Add a row to a cluster (sign 1) or take it away (-1); whether that cost digits."""
    mean, seen, factor, _, work = clusters
    rows = beta + seen[slot]
    stretch = math.sqrt(rows / (rows + sign))
    for d in range(U.shape[1]):
        away = U[row, d] - mean[slot, d]
        work[d] = stretch * away
        mean[slot, d] += sign * away / (rows + sign)
    seen[slot] += sign
    if not factor_update(factor[slot], work, sign) > LEAST_LEFT:
        return True
    wishart_logs(slot, beta, degrees, clusters)
    return False


@kernel
def log_norm_of_mean(P: Array, h: Array, work: Array, white: Array) -> float:
    """B of a Gaussian law of precision P and linear coordinate h: (h'P^-1 h - ln|P|) / 2."""
    value = 0.0
    for i in range(h.size):
        for j in range(i + 1):
            entry = P[i, j]
            for m in range(j):
                entry -= work[i, m] * work[j, m]
            work[i, j] = math.sqrt(entry) if i == j else entry / work[j, j]
        pull = h[i]
        for j in range(i):
            pull -= work[i, j] * white[j]
        white[i] = pull / work[i, i]
        value += 0.5 * white[i] * white[i] - math.log(work[i, i])
    return value


@kernel
def known_covariance_scores(
    row: int,
    counts: Array,
    pulls: Array,
    curvature: Array,
    pattern: Array,
    clusters: Any,
    work: Any,
    out: Array,
) -> None:
    """Add the log predictive of a row under means of Gaussian law.

    A row has a pull A (x - mean) (D,) and a curvature A (D, D), that of its ``pattern`` of gaps;
    ``clusters`` is (precision, linear, norm); ``work`` is (matrix, matrix, vector, vector).
    """
    precision, linear, norm = clusters
    sums, factor, vector, white = work
    A = curvature[pattern[row]]
    for k in range(counts.size):
        if counts[k] > 0:
            for i in range(vector.size):
                vector[i] = linear[k, i] + pulls[row, i]
                for j in range(i + 1):
                    sums[i, j] = precision[k, i, j] + A[i, j]
            out[k] += log_norm_of_mean(sums, vector, factor, white) - norm[k]


@kernel
def known_covariance_shift(
    row: int,
    slot: int,
    sign: float,
    pulls: Array,
    curvature: Array,
    pattern: Array,
    clusters: Any,
    work: Any,
) -> bool:
    """As ``wishart_shift``."""
    precision, linear, norm = clusters
    _, factor, _, white = work
    A = curvature[pattern[row]]
    lost = False
    for i in range(linear.shape[1]):
        linear[slot, i] += sign * pulls[row, i]
        before = precision[slot, i, i]
        for j in range(linear.shape[1]):
            precision[slot, i, j] += sign * A[i, j]
        lost |= precision[slot, i, i] < LEAST_LEFT * before
    if not lost:
        norm[slot] = log_norm_of_mean(precision[slot], linear[slot], factor, white)
    return lost
