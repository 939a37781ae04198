"""Validation scores without the partition function: labels, pseudo-likelihood, score matching."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.softmax import normalise
from mixfold.models.networks.boltzmann.energy import hidden_drive, label_scores
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.units import Bernoulli, Gaussian, Units, sigmoid, softplus

# columns of each row that a pseudo-likelihood looks at
COLUMNS = 20
# rows that are scored at once
TILE = 1024


def validation(units: Units, params: RBMParams, rows: Block) -> float:
    """Mean ln p(y | v) of the rows with labels; without any, how well columns tell each other.

    For bits that is the log pseudo-likelihood per column, of a few columns per row; for real
    columns the negative objective of score matching (Hyvarinen, 2005), per column.
    """
    if len(params.label_bias) and rows.y is not None and (rows.y >= 0).any():
        return _labels_told(params, rows)
    told = TOLD[type(units)]
    parts = [told(params, _tile(params, rows, i)) for i in range(0, rows.n_rows, TILE)]
    return _mean(np.concatenate(parts), rows.weight)


def _tile(params: RBMParams, rows: Block, first: int) -> Array:
    return np.asarray(rows.X[first : first + TILE], dtype=params.dtype)


def _mean(values: Array, weight: Array | None) -> float:
    return float(np.average(values, weights=weight))


def _labels_told(params: RBMParams, rows: Block) -> float:
    y = np.asarray(rows.y)
    known = np.flatnonzero(y >= 0)
    told = np.empty(len(known))
    for i in range(0, len(known), TILE):
        some = known[i : i + TILE]
        scores = label_scores(params, np.asarray(rows.X[some], dtype=params.dtype))
        told[i : i + TILE] = scores[np.arange(len(some)), y[some]] - normalise(scores)[0]
    return _mean(told, None if rows.weight is None else rows.weight[known])


def pseudo_likelihoods(params: RBMParams, v: Array, n_columns: int = COLUMNS) -> Array:
    """Mean over columns of ln p(v_i | the other columns), (n,); at most ``n_columns`` per row.

    Which ones depends on the row's place in the block alone, so that values compare.
    """
    n, size = v.shape
    drive = hidden_drive(params, v)
    total = np.zeros(n)
    columns = np.arange(min(n_columns, size))
    for k in columns:
        at = (np.arange(n) * len(columns) + k) % size if len(columns) < size else np.full(n, k)
        own = v[np.arange(n), at]
        weights = params.weights[at]
        without = drive - own[:, None] * weights
        gain = softplus(without + weights) - softplus(without)
        logit = params.visible[at] + gain.sum(axis=1, dtype=np.float64)
        total += own * logit - softplus(logit)
    return np.asarray(total / len(columns))


def score_matches(params: RBMParams, v: Array) -> Array:
    """Minus Hyvarinen's objective for the density of v, per column, (n,)."""
    means = sigmoid(hidden_drive(params, v))
    slope = params.visible - v + means @ params.weights.T
    curvature = (means * (1 - means)) @ (params.weights**2).sum(axis=0) - v.shape[1]
    squares = 0.5 * (slope**2).sum(axis=1, dtype=np.float64)
    return np.asarray(-(squares + curvature) / v.shape[1])


TOLD: dict[type, Callable[[RBMParams, Array], Array]] = {
    Bernoulli: pseudo_likelihoods,
    Gaussian: score_matches,
}
