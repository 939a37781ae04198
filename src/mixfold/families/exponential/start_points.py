"""Rows as points whose distances mean something, for starts."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array

# points of more columns than this are turned and cut to the directions in which they vary most
_WIDE, _KEPT, _SPARE, _ROUNDS = 256, 64, 16, 2


def unit_spread(U: Array) -> Array:
    """Columns of variance one; a constant column stays as it is."""
    seen = ~np.isnan(U)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = U - np.where(seen, U, 0.0).sum(axis=0) / count
    deviation = np.sqrt((np.where(seen, centred, 0.0) ** 2).sum(axis=0) / count)
    return np.asarray(U / np.where(deviation > 0, deviation, 1.0))


def column_means(X: Array) -> Array:
    """Means of the observed entries, 1 where there are none or they are 0."""
    seen = ~np.isnan(X)
    mean = np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(mean > 0, mean, 1.0)


def compact(U: Array) -> Array:
    """The same points, or if they have very many columns their leading principal directions.

    Starts whiten points, which costs the cube of their columns, and between rows of thousands of
    columns the noise decides what is near. A missing entry of wide rows counts as the mean of its
    column.
    """
    if U.shape[1] <= _WIDE or len(U) < 2:
        return U
    missing = np.isnan(U)
    centred = np.where(missing, 0.0, U)
    centred -= centred.sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    centred[missing] = 0.0
    del missing
    size = min(_KEPT + _SPARE, *U.shape)
    # a random range that two power steps turn towards the leading directions: the same each time
    basis = np.random.default_rng(0).standard_normal((U.shape[1], size))
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    scores = centred @ basis
    left, values, _ = np.linalg.svd(scores, full_matrices=False)
    return np.asarray(left[:, :_KEPT] * values[:_KEPT])
