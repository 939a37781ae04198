"""Yes or no in each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from mixfold.contracts import Array, Block, record
from mixfold.families.exponential.conjugate_priors import BETA, ODDS_LIMIT, Law
from mixfold.families.exponential.pair import PairFamily
from mixfold.families.exponential.records import PairPosterior


@record
@dataclass(frozen=True)
class Bernoulli(PairFamily):
    """x_d | k ~ Bernoulli(p_kd), p_kd ~ beta(a, b). NaN is missing.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior; uniform by default.
    """

    name: ClassVar[str] = "bernoulli"
    record_name: ClassVar[str] = "BernoulliFamily"  # in files Bernoulli is a unit of a network
    law: ClassVar[Law] = BETA

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x != 0) & (x != 1))

    def rule(self, size: float) -> str:
        return "must hold 0 and 1 only"

    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        return first, count - first

    def terms(self, one: Array, two: Array, size: Array) -> tuple[Array, Array]:
        return one - two, two

    def ends(self, size: Array) -> tuple[float, ...]:
        return (0.0, 1.0)

    def limits(self, size: Array) -> tuple[float, float]:
        return -ODDS_LIMIT, ODDS_LIMIT

    def information(self, theta: Array, size: Array) -> Array:
        return np.asarray(expit(theta) * expit(-theta))

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(expit(theta))

    def usual(self, a: Array, mean: Array, size: Array) -> Array:
        return np.ones_like(a)

    def log_base(self, block: Block, size: Array) -> None:
        return None

    def log_predictive(self, posterior: PairPosterior, block: Block) -> Array:
        # of one trial: the mean of p is all there is to know
        return self.log_density(block, self.mode(self.point(posterior)))

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        return np.asarray(uniforms > expit(-theta), float)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        return np.asarray(rng.random(theta.shape) < expit(theta), float)
