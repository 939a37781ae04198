"""Features of dense rows for densities that are linear in the entries."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.exponential.records import LinearReading
from mixfold.families.gaussian import tile_width
from mixfold.math.lifted import FeatureMap


@cache
def linear_features(n_features: int) -> FeatureMap:
    """(1, u_d): complete rows."""
    left = np.arange(n_features + 1)
    return FeatureMap(left, np.zeros_like(left))


@cache
def seen_linear_features(n_features: int) -> FeatureMap:
    """(1, seen_d, u_d) with u_d = 0 where missing: any rows."""
    linear = np.arange(1, n_features + 1)
    left = np.concatenate([[0], linear + n_features, linear])
    return FeatureMap(left, np.zeros_like(left))


def lift(block: Block, reading: LinearReading, log_weights: Array) -> tuple[FeatureMap, Array]:
    """The scores of a dense block as rows over its features."""
    size, offset = reading.slope.shape[1], reading.offset
    if block.complete:
        features = linear_features(size)
        head = offset.sum(axis=1, keepdims=True) + log_weights[:, None]
    else:
        features = seen_linear_features(size)
        head = np.column_stack([log_weights, np.broadcast_to(offset, reading.slope.shape)])
    theta = np.concatenate([head, reading.slope], axis=1)
    return features, np.ascontiguousarray(theta, _width(block, reading))


def _width(block: Block, reading: LinearReading) -> np.dtype[Any]:
    """The dtype of the arithmetic, by the size of the terms of a typical sum."""
    if block.X.dtype != np.float32:
        return np.dtype(np.float64)
    terms = 2 * np.abs(reading.slope) * reading.params.means + np.abs(reading.offset)
    return tile_width(block.X.dtype, float(terms.sum(axis=1).max()))
