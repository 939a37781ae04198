"""Collapsed Gibbs kernels for Gaussians of unknown mean and variances.

A cluster keeps the mean of its posterior, the rows it has seen and its scatter; the logarithms that
its predictive density needs are kept with them, and made again where a row comes or goes. Columns
fall into groups of one ``width`` that share a precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel
from mixfold.math.urn_laws import LEAST_LEFT, log_rising

_HALF_LOG_PI = 0.5 * math.log(math.pi)


@kernel
def axis_scores(
    row: int, counts: Array, U: Array, width: int, prior: Any, clusters: Any, out: Array
) -> None:
    """Add the log density of Student's t, of one column or jointly of those that share a precision.

    ``prior`` is (mean, precision, degrees, scatter); ``clusters`` is (mean, seen, entries, scatter,
    widths, logs), the last two made by ``axis_logs``. NaN is missing.
    """
    _, beta, degrees, _ = prior
    mean, seen, entries, scatter, widths, logs = clusters
    for k in range(counts.size):
        if counts[k] == 0:
            continue
        total = 0.0
        for g in range(scatter.shape[1]):
            size, square, spread = 0, 0.0, 0.0
            for d in range(g * width, (g + 1) * width):
                x = U[row, d]
                if not np.isnan(x):
                    size += 1
                    rows = beta[d] + seen[k, d]
                    square += rows / (1 + rows) * (x - mean[k, d]) ** 2
                    spread += widths[k, d]
            if size == 0:
                continue
            half = 0.5 * (degrees[g] + entries[k, g])
            rise = logs[k, g, 0] if size == width else log_rising(half, 0.5 * size)
            total += rise - spread - size * (_HALF_LOG_PI + logs[k, g, 1])
            total -= (half + 0.5 * size) * math.log1p(square / scatter[k, g])
        out[k] += total


@kernel
def axis_logs(slot: int, width: int, prior: Any, clusters: Any) -> None:
    """The logarithms of a cluster: of its widths (D,), and rises and scatters (G, 2)."""
    _, beta, degrees, _ = prior
    _, seen, entries, scatter, widths, logs = clusters
    for d in range(beta.size):
        widths[slot, d] = 0.5 * math.log1p(1 / (beta[d] + seen[slot, d]))
    for g in range(degrees.size):
        logs[slot, g, 0] = log_rising(0.5 * (degrees[g] + entries[slot, g]), 0.5 * width)
        logs[slot, g, 1] = 0.5 * math.log(scatter[slot, g])


@kernel
def axis_put(row: int, slot: int, U: Array, width: int, prior: Any, clusters: Any) -> None:
    """A row sits down."""
    _, beta, _, _ = prior
    mean, seen, entries, scatter, _, _ = clusters
    for d in range(U.shape[1]):
        if not np.isnan(U[row, d]):
            rows, away, g = beta[d] + seen[slot, d], U[row, d] - mean[slot, d], d // width
            scatter[slot, g] += rows / (rows + 1) * away**2
            mean[slot, d] += away / (rows + 1)
            seen[slot, d] += 1
            entries[slot, g] += 1
    axis_logs(slot, width, prior, clusters)


@kernel
def axis_take(row: int, slot: int, U: Array, width: int, prior: Any, clusters: Any) -> bool:
    """A row leaves; whether that cost digits."""
    centre, beta, _, least = prior
    mean, seen, entries, scatter, _, _ = clusters
    lost = False
    for d in range(U.shape[1]):
        if np.isnan(U[row, d]):
            continue
        rows, away, g = beta[d] + seen[slot, d], U[row, d] - mean[slot, d], d // width
        before = scatter[slot, g]
        scatter[slot, g] -= rows / (rows - 1) * away**2
        mean[slot, d] -= away / (rows - 1)
        seen[slot, d] -= 1
        entries[slot, g] -= 1
        if seen[slot, d] == 0:
            mean[slot, d] = centre[d]
        if entries[slot, g] == 0:
            scatter[slot, g] = least[g]
        elif not scatter[slot, g] > LEAST_LEFT * before:
            lost, scatter[slot, g] = True, before
    axis_logs(slot, width, prior, clusters)
    return lost
