"""A skeleton for a family without a conjugate prior, which is fitted by maximum likelihood alone.

It is the zero-truncated Poisson law: counts of what is only recorded if it happened at all.

    x_d | k ~ Poisson(rate_kd) given x > 0:    ln p(x) = x theta - ln(exp(rate) - 1) - ln x!

with theta = ln rate. The likelihood is linear in the entries, so the sums of x and of 1 are all
that an M step needs; but the normaliser has no conjugate law that anybody has named.
``LinearFamily`` asks for no prior. EM, missing entries, weights, streams, samples, conditionals and
files work; priors, variational Bayes and chains are refused with a message that says so.

A family whose density is not linear in the entries derives from ``ComponentFamily``
(``families/component.py``) and says everything itself, as ``families/factor/`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import poisson

from mixfold.contracts import Array, Block, record
from mixfold.families.exponential.family import LinearFamily
from mixfold.families.exponential.records import LinearMoments, LinearParams
from mixfold.math.log_factorials import log_factorial_sums

# of theta: rates from 1e-12 to 1e13
_LIMIT = 30.0


@record
@dataclass(frozen=True)
class TruncatedPoisson(LinearFamily):
    """x_d | k ~ Poisson(rate_kd) given that it is not zero. NaN is missing."""

    # 1. Facts: rows that are full of zeros are none of this family's.
    name: ClassVar[str] = "truncated-poisson"
    takes_sparse: ClassVar[bool] = False

    # 2. The support.
    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 1) | (x != np.round(x)) | np.isinf(x))

    def rule(self, size: float) -> str:
        return "must hold counts of what happened: whole numbers from 1 up"

    # 3. The density: slope and offset from theta, and the term that no parameter changes.
    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        rate = np.exp(theta)
        return theta, -rate - np.log(-np.expm1(-rate))

    def log_base(self, block: Block, size: Array) -> Array:
        return -log_factorial_sums(block.X)

    # 4. The mean of an entry, bounds of theta, and the M step: the theta whose mean is that of the
    #    rows. Columns without rows are NaN: they keep what they had.
    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        rate = np.exp(theta)
        return np.asarray(rate / -np.expm1(-rate))

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        return np.asarray(np.clip(theta, -_LIMIT, _LIMIT))

    def point_of(self, first: Array, count: Array, size: Array) -> Array:
        count = np.broadcast_to(count, first.shape)
        mean = np.maximum(np.divide(first, count, out=np.ones(first.shape), where=count > 0), 1.0)
        theta = np.log(np.maximum(mean - 1, 1e-12))
        for _ in range(100):
            value = self.of_theta(theta, size, theta)
            step = (mean - value) / np.maximum(_variance(theta), 1e-300)
            theta = self.clip_coordinates(theta + np.clip(step, -1.0, 1.0), size)
            if np.abs(step).max(initial=0.0) < 1e-14:
                break
        return np.where(count > 0, theta, np.nan)

    # 5. Published by name, counted by BIC.
    def describe(self, params: LinearParams) -> dict[str, Any]:
        return {"means": params.means, "rates": np.exp(params.theta)}

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features

    # 6. Gradient in theta and information of the complete data: acceleration uses both.
    def gradient_and_information(
        self, params: LinearParams, moments: LinearMoments
    ) -> tuple[Array, Array]:
        information = moments.count * _variance(params.theta)
        return moments.first - moments.count * params.means, information

    # 7. Starts and samples.
    def points(self, X: Array) -> Array:
        return 2 * np.sqrt(np.asarray(X, float))

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        rate = np.exp(theta)
        zero = np.exp(-rate)
        return np.maximum(poisson.ppf(zero + uniforms * (1 - zero), rate), 1.0)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        """The first event comes before 1 for sure; the others are Poisson in what is left."""
        rate = np.exp(theta)
        first = gammaincinv(1.0, rng.random(theta.shape) * -np.expm1(-rate))
        return 1.0 + rng.poisson(np.maximum(rate - first, 0.0))


# 8. What is not a method of the contract is a function, so that it can be tested alone.
def _variance(theta: Array) -> Array:
    """Of an entry: the slope of its mean in theta."""
    rate = np.exp(theta)
    mean = rate / -np.expm1(-rate)
    return np.asarray(mean * (1 - mean * np.exp(-rate)))
