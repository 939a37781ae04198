"""A skeleton for a new Gaussian family: copy it to ``src/mixfold/families/yours.py``.

It is a whole family rather than one with gaps, so that every line shows where a formula goes. The
laws and oracles in ``tests/docs/test_skeleton.py`` are those that yours should pass as well.

    z ~ weights,    x | z = k ~ prod_d N(x_d; mu_kd, a_k b_d)

Components differ in their volume a_k and share the shape b: between 'diag' and 'tied-diag'. It is
the diagonal model of equal shape of Celeux and Govaert, Gaussian parsimonious clustering models,
Pattern Recognition 28, 1995.

Which base to take
------------------
``AxisGaussian`` or one of its subclasses for diagonal covariances, ``DenseGaussian`` for others:
densities, missing entries, sparse rows, the fast kernel, samples and conditionals then come with
it. Counts, times and yes or no have a skeleton of their own, ``count_family.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Metric
from mixfold.families.diagonal import DiagonalGaussian
from mixfold.families.gaussian import DiagonalMetric, GaussianParams, Moments, flat, share
from mixfold.math.symmetric import LOG_LIMIT

# Rounds of the M step. One is enough for the likelihood to rise; the rest save passes.
_ROUNDS = 5


# 1. A frozen dataclass: hyper-parameters only (here the floor), nothing that a fit has found.
@dataclass(frozen=True)
class EqualShapeGaussian(DiagonalGaussian):
    """p(x | k) = prod_d N(x_d; mu_kd, a_k b_d)."""

    # 2. The name by which users will ask for it.
    name: ClassVar[str] = "equal-shape"

    # 3. The M step. ``moments`` are sums about ``moments.origin``, in frame coordinates; count is
    #    (K, D), because with missing entries each column has its own. A component or a column
    #    without rows keeps what it had.
    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        deviation, seen = share(moments)
        squares = np.maximum(moments.second - moments.count * deviation**2, 0.0)
        volume, shape = split(previous.scatter)
        for _ in range(_ROUNDS):
            # Given the other factor each bound is on one number, so clipping is the constrained
            # maximiser, and a floored step does not lower the likelihood either.
            shape = _ratio((squares.T / volume).sum(axis=1), moments.count.sum(axis=0), shape)
            shape = np.maximum(shape, self.floor / volume.min())
            shape /= np.exp(np.log(shape).mean())
            volume = _ratio((squares / shape).sum(axis=1), moments.count.sum(axis=1), volume)
            volume = np.maximum(volume, self.floor / shape.min())
        means = np.where(seen, moments.origin + deviation, previous.means)
        scatter = np.outer(volume, shape)
        # 4. Say which components touched the floor (to rounding): users read it in ``events_``.
        touched = scatter.min(axis=1) <= self.floor * (1 + 1e-9)
        return GaussianParams(previous.frame, means, scatter), touched

    # 5. What BIC counts: means, volumes, and a shape whose size is already in the volumes.
    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features + n_components + n_features - 1

    # 6. Coordinates without constraints, for acceleration: logarithms of what is positive.
    def coordinates(self, params: GaussianParams) -> Array:
        volume, shape = split(params.scatter)
        return flat(params.means, np.log(volume), np.log(shape))

    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams:
        size, K = params.means.size, params.n_components
        means, log_volume, log_shape = np.split(vector, [size, size + K])
        shape = np.exp(np.clip(log_shape, -LOG_LIMIT, LOG_LIMIT))
        volume = np.exp(np.clip(log_volume, -LOG_LIMIT, LOG_LIMIT))
        volume = np.maximum(volume, self.floor / shape.min())
        scatter = np.outer(volume, shape)
        return GaussianParams(params.frame, means.reshape(params.means.shape), scatter)

    # 7. The gradient by Fisher's identity: that of the complete data, at the statistics that the
    #    E step has summed anyway. The metric should be the curvature of the complete data or a
    #    bound of it; volumes and shape have a mixed curvature, and twice the diagonal bounds it.
    def derivatives(self, params: GaussianParams, moments: Moments) -> tuple[Array, Metric]:
        gradient, _ = super().derivatives(params, moments)
        by_mean, by_log_variance = gradient.reshape(2, *params.means.shape)
        count = moments.count
        curvature = flat(count / params.scatter, count.sum(axis=1), count.sum(axis=0))
        by_volume, by_shape = by_log_variance.sum(axis=1), by_log_variance.sum(axis=0)
        return flat(by_mean, by_volume, by_shape), DiagonalMetric(curvature)


# 8. What is not a method of the contract is a function, so that it can be tested alone.
def split(scatter: Array) -> tuple[Array, Array]:
    """Volumes (K,) and shape (D,) of variances (K, D); the logarithms of the shape sum to zero."""
    logs = np.log(scatter)
    volume = logs.mean(axis=1)
    shape = (logs - volume[:, None]).mean(axis=0)
    return np.exp(volume), np.exp(shape)


def _ratio(total: Array, count: Array, otherwise: Array) -> Array:
    """total / count, and ``otherwise`` where nothing was counted."""
    return np.divide(total, count, out=otherwise.copy(), where=count > 0)
