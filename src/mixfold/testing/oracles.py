"""Slow, independent answers to what the library computes fast. Only for small cases."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from mixfold.contracts import Array
from mixfold.families.gaussian import GaussianFamily, GaussianParams


def in_data_coordinates(family: GaussianFamily, params: GaussianParams) -> tuple[Array, Array]:
    """Means (K, D) and dense covariances (K, D, D) of Gaussian components."""
    scale = params.frame.scale
    return params.frame.leave(params.means), family.dense(params) * np.multiply.outer(scale, scale)


def gaussian_log_density(X: Array, means: Array, covariances: Array) -> Array:
    """ln N(x_o; mu_o, Sigma_oo) of the observed entries of each row, (n, K), by scipy."""
    X = np.asarray(X, float)
    out = np.zeros((len(X), len(means)))
    for n, x in enumerate(X):
        seen = np.flatnonzero(~np.isnan(x))
        for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            if seen.size:
                part = covariance[np.ix_(seen, seen)]
                out[n, k] = multivariate_normal(mean[seen], part).logpdf(x[seen])
    return out


def conditional_moments(x: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """The row with E[x_m | x_o] in its gaps, and Cov[x_m | x_o] among zeros (D, D)."""
    gaps, seen = np.flatnonzero(np.isnan(x)), np.flatnonzero(~np.isnan(x))
    between = covariance[np.ix_(gaps, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    filled, left = x.copy(), np.zeros_like(covariance)
    filled[gaps] = mean[gaps] + between @ (x[seen] - mean[seen])
    rest = covariance[np.ix_(gaps, gaps)] - between @ covariance[np.ix_(seen, gaps)]
    left[np.ix_(gaps, gaps)] = rest
    return filled, left


def over_assignments(log_joint: Array, labels: Array | None = None) -> tuple[float, Array]:
    """All K^n ways to assign the rows: log of the sum of the joint, and the marginals (n, K).

    ``log_joint`` (n, K) is ln pi_k p(x_n | k); labels >= 0 rule out other assignments.
    """
    n, K = log_joint.shape
    values, ways = [], []
    for way in product(range(K), repeat=n):
        if labels is None or all(y in (-1, k) for y, k in zip(labels, way, strict=True)):
            values.append(sum(log_joint[i, k] for i, k in enumerate(way)))
            ways.append(np.eye(K)[list(way)])
    total = float(logsumexp(values))
    shares = np.exp(np.array(values) - total)
    return total, np.tensordot(shares, np.array(ways), axes=1)


def gradient_by_differences(
    function: Callable[[Array], float], x: Array, step: float = 1e-3
) -> Array:
    """Central differences of fourth order, coordinate by coordinate."""
    out = np.empty(x.shape)
    for i in range(x.size):
        unit = np.zeros(x.shape)
        unit[i] = step
        near = function(x + unit) - function(x - unit)
        far = function(x + 2 * unit) - function(x - 2 * unit)
        out[i] = (8 * near - far) / (12 * step)
    return out
