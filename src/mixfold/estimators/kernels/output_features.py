"""Coded outputs in the coordinates of their kernel, centred; nothing where they are unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.sources import open_source
from mixfold.models.kernels.views import Thin


def output_features(estimator: Any, tables: list[Array], weights: Array, seed: int) -> list[Array]:
    """Coordinates (n, r) of each set, from coded outputs (n, L) that are NaN where unknown."""
    if estimator.output_kernel == "linear":
        return [_about_mean(table, weights) for table in tables]
    return [_by_kernel(estimator, table, weights, seed) for table in tables]


def _about_mean(table: Array, weights: Array) -> Array:
    """Each column about the mean of what is known; 0 elsewhere."""
    known = ~np.isnan(table)
    count = weights @ known
    mean = weights @ np.where(known, table, 0.0) / np.where(count > 0, count, 1.0)
    return np.where(known, table - mean, 0.0)


def _by_kernel(estimator: Any, table: Array, weights: Array, seed: int) -> Array:
    known = ~np.isnan(table).any(axis=1)
    thin = output_thin(estimator, table, weights * known, seed)
    out = np.zeros((len(table), len(thin.values)))
    out[known] = thin.reader(np.eye(len(thin.values)))(table[known])
    return out


def output_thin(estimator: Any, table: Array, weights: Array, seed: int) -> Thin:
    """The decomposition of coded outputs, known wherever weights are positive.

    Of equal rows one stands for all.
    """
    if not (weights > 0).any():
        raise ValueError(
            "no row (of positive weight) has all its outputs, which is needed here; fill them "
            "first, or, with MORP, use output_kernel='linear'"
        )
    rows, weights = table[weights > 0], weights[weights > 0]
    distinct, where = np.unique(rows, axis=0, return_inverse=True)
    if len(distinct) == 1:
        raise ValueError(
            f"y is the same in all of the {len(rows)} sample(s) of positive weight: nothing goes "
            "with it; give rows that differ in y"
        )
    source = open_source(distinct, weight=np.bincount(where.ravel(), weights))
    return estimator._output_choice(seed).thin(source, estimator._executor(source))[0]
