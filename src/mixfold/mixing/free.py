"""Free mixing weights, by maximum likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import xlogy

from mixfold.contracts import Array


@dataclass(frozen=True)
class FreeWeights:
    """pi_k = N_k / sum N. A component without rows gets weight zero.

    The state is the weights: a point, so that all readings are its logarithm.
    """

    learn_alpha: bool = field(default=False, init=False, repr=False)
    hyper: tuple[float, float] | None = field(default=None, init=False, repr=False)

    def posterior(
        self, counts: Array, alpha: float | None = None, like: Array | None = None
    ) -> Array:
        return np.asarray(counts / counts.sum())

    def select(self, weights: Array, which: Array) -> Array:
        """The components in another order."""
        return np.asarray(weights[which])

    def mode(self, weights: Array) -> Array:
        """Log weights for the E step."""
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def expected_log_weights(self, weights: Array) -> Array:
        return self.mode(weights)

    def draw(self, weights: Array, rng: np.random.Generator) -> Array:
        return self.mode(weights)

    def mean(self, weights: Array) -> Array:
        return weights

    def kl(self, weights: Array) -> float:
        return 0.0

    def log_prior(self, weights: Array) -> float:
        return 0.0

    def log_prob(self, counts: Array, alpha: float | None = None) -> float:
        """counts @ log weights at the best weights for these counts."""
        total = np.sum(counts)
        return float(xlogy(counts, counts).sum() - xlogy(total, total))

    def update_alpha(self, weights: Array, log_weights: Array | None = None) -> float:
        """NaN: there is no alpha."""
        return math.nan

    def draw_alpha(self, weights: Array, log_weights: Array, rng: np.random.Generator) -> float:
        """NaN: there is no alpha."""
        return math.nan

    def order(self, counts: Array, alpha: float | None = None) -> None:
        """None: all orders are alike."""

    def n_free(self, n_components: int) -> int:
        return n_components - 1
