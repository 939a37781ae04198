"""Rows of one Gaussian with outputs, replaced by fewer that have the same first two moments.

One component with Gaussian outputs learns from count, mean and covariance of the rows alone. So
complete rows that show all outputs, or none, can stand for as many as there have ever been.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows (m, D), outputs (m, L) and weights (m,)."""

    X: Array
    y: Array
    weight: Array


def compress_rows(rows: WeightedRows) -> WeightedRows:
    """The same moments by fewer rows: of those that show all outputs, and of those with none."""
    D = rows.X.shape[1]
    complete = ~np.isnan(rows.X).any(axis=1)
    seen = ~np.isnan(rows.y)
    labelled, bare = complete & seen.all(axis=1), complete & ~seen.any(axis=1)
    rest = ~(labelled | bare)
    parts = [WeightedRows(rows.X[rest], rows.y[rest], rows.weight[rest])]
    for group, size in ((labelled, D + rows.y.shape[1]), (bare, D)):
        X, y, weight = rows.X[group], rows.y[group], rows.weight[group]
        table = np.hstack([X, y])[:, :size]
        if len(table) > 2 * size:
            table, weight = _both_sides(table.astype(float), weight)
            X, y = table[:, :D].astype(X.dtype), np.full((len(table), y.shape[1]), np.nan)
            y[:, : size - D] = table[:, D:]
        parts.append(WeightedRows(X, y, weight))
    return WeightedRows(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )


def _both_sides(table: Array, weight: Array) -> tuple[Array, Array]:
    """Rows on both sides of the mean with the moments of a table (m, p) of more than p rows."""
    total = float(weight.sum())
    mean = weight @ table / total
    root = np.asarray(np.linalg.qr(np.sqrt(weight)[:, None] * (table - mean), mode="r"))
    away = np.sqrt(len(root) / total) * root
    each = np.full(2 * len(root), total / (2 * len(root)))
    return np.concatenate([mean + away, mean - away]), each
