"""Scores and sums of rows of either kind: the lifted kernel for dense ones, the stored entries of
sparse ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array
from mixfold.families.exponential.features import lift
from mixfold.families.exponential.records import (
    LinearMoments,
    LinearReading,
    LinearWork,
    weighted_base,
    zero_filled,
)
from mixfold.math.frame import Frame, plain_frame
from mixfold.math.lifted import Sums, lifted_pass, lifted_scores
from mixfold.math.sparse_linear import SparseSums, linear_pass, linear_scores, linear_sums


def scores_of(work: LinearWork, reading: LinearReading) -> Array:
    """Log densities (n, K)."""
    if issparse(work.rows.X):
        out = linear_scores(work.rows, reading.slope, reading.offset)
    else:
        features, theta = lift(work.rows, reading, np.zeros(len(reading.slope)))
        out = lifted_scores(work.rows, _frame(work, reading), features, theta)
    return out if work.base is None else out + work.base[:, None]


def plain_scores(work: LinearWork, reading: LinearReading) -> Array:
    """The same in float64 whatever the rows are in."""
    if issparse(work.rows.X):
        return scores_of(work, reading)
    X, seen = zero_filled(work.rows.X)
    head = reading.offset.sum(axis=1)
    if not work.rows.complete:
        head = seen.astype(float) @ np.broadcast_to(reading.offset, reading.slope.shape).T
    out = X @ reading.slope.T + head
    return np.asarray(out if work.base is None else out + work.base[:, None])


def sums_of(work: LinearWork, resp: Array) -> LinearMoments:
    """Moments for weighted responsibilities (n, K)."""
    base = weighted_base(work.base, resp.sum(axis=1))
    if issparse(work.rows.X):
        return _of_sparse(linear_sums(work.rows, resp), base)
    X, seen = zero_filled(work.rows.X)
    whole = work.rows.complete
    count = resp.sum(axis=0)[:, None] if whole else resp.T @ seen.astype(float)
    return LinearMoments(count, resp.T @ X, base)


def whole_pass(
    work: LinearWork, reading: LinearReading, log_weights: Array
) -> tuple[LinearMoments, Sums]:
    """Responsibilities of the rows, summed into moments, and the parts of the objective."""
    base = weighted_base(work.base, work.rows.weight)
    if issparse(work.rows.X):
        found = linear_pass(work.rows, reading.slope, reading.offset, log_weights)
        sums = Sums(found.mass[:, None], found.log_likelihood, found.entropy, found.weight)
        moments = _of_sparse(found, base)
    else:
        features, theta = lift(work.rows, reading, log_weights)
        sums = lifted_pass(work.rows, _frame(work, reading), features, theta)
        D = reading.slope.shape[1]
        count = sums.moments[:, :-D][:, -D:]  # per column, or one for all of them
        moments = LinearMoments(count, sums.moments[:, -D:], base)
    return moments, replace(sums, log_likelihood=sums.log_likelihood + base)


def _frame(work: LinearWork, reading: LinearReading) -> Frame:
    """Of the rows as the sums take them, which may have other columns than the table."""
    width = work.rows.X.shape[1]
    return reading.frame if reading.frame.origin.size == width else plain_frame(width)


def _of_sparse(sums: SparseSums, base: float) -> LinearMoments:
    count = sums.mass[:, None] if sums.absent is None else sums.mass[:, None] - sums.absent
    return LinearMoments(count, sums.first, base)
