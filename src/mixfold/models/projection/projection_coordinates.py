"""A projection with clusters as one vector without constraints, for extrapolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families.bayes.records import NormalPosterior
from mixfold.families.gaussian import GaussianParams, flat
from mixfold.math.softmax import normalise
from mixfold.math.symmetric import (
    LOG_LIMIT,
    factorise,
    floored,
    from_log_cholesky,
    log_cholesky,
)
from mixfold.models.projection.projection_records import LatentClusters, ProjectionParams

# beyond this a coordinate is no parameter but the overflow of an extrapolation
LIMIT = 1e4
# rows are counted from here: the logarithm of a cluster that has none stays calm
_FEW = 0.1


def plane_vector(params: ProjectionParams) -> Array:
    """Axes, offset, log noise."""
    return flat(params.axes, params.offset, np.log([params.noise]))


def plane_from(params: ProjectionParams, vector: Array, floor: float) -> tuple[Array, Array, float]:
    """Loadings (D, d), not orthonormal; offset, and noise not below the floor."""
    split = params.axes.size
    noise = float(np.exp(np.clip(vector[-1], -LOG_LIMIT, LOG_LIMIT)))
    return vector[:split].reshape(params.axes.shape), vector[split:-1], max(noise, floor)


# ------------------------------------------------ clusters at points


def points_vector(clusters: LatentClusters, noise: float) -> Array:
    """Log weights, means, and covariances with noise: they may be singular without."""
    own = clusters.components
    factors, _ = factorise(own.scatter + noise * np.eye(own.n_features))
    weights = np.log(np.maximum(clusters.mixing, 1e-300))
    return flat(weights, own.means, log_cholesky(factors))


def points_from(clusters: LatentClusters, vector: Array, noise: float) -> LatentClusters:
    old = clusters.components
    weights, means, spread = _split(clusters, vector)
    shares = np.where(clusters.mixing > 0, normalise(weights[None])[1][0], 0.0)
    values, vectors = np.linalg.eigh(spread)
    scatter = (vectors * np.maximum(values - noise, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
    own = GaussianParams(old.frame, means, scatter)
    return LatentClusters(shares / shares.sum(), own, None, clusters.counts)


# ------------------------------------------------ clusters with posteriors


def posterior_vector(clusters: LatentClusters, noise: float) -> Array:
    """Log counts, which make all degrees of freedom; means and covariances."""
    own = clusters.components
    factors, _ = factorise(own.scatter)
    return flat(np.log(clusters.counts + _FEW), own.means, log_cholesky(factors))


def posterior_from(
    clusters: LatentClusters, vector: Array, mixing: Any, total: float
) -> LatentClusters:
    """``total`` is the weight of all rows, which the clusters share."""
    old, prior = clusters.components, clusters.prior
    logs, means, scatter = _split(clusters, vector)
    counts = np.maximum(np.exp(np.minimum(logs, LOG_LIMIT)) - _FEW, 0.0)
    counts = counts * (total / max(float(counts.sum()), np.finfo(float).tiny))
    scatter = np.stack([floored(one, 0.0)[0] for one in scatter])
    own = NormalPosterior(
        old.frame, means, prior.precision + counts, prior.degrees + counts, scatter
    )
    return LatentClusters(mixing.posterior(counts), own, prior, counts)


def _split(clusters: LatentClusters, vector: Array) -> tuple[Array, Array, Array]:
    """(K,) numbers, means (K, d), positive definite matrices (K, d, d)."""
    K, size = clusters.components.means.shape
    first, means, factors = np.split(vector, [K, K + K * size])
    return first, means.reshape(K, size), from_log_cholesky(factors.reshape(K, -1), size)
