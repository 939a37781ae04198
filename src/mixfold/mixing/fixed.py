"""Mixing weights that are given and stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import xlogy

from mixfold.contracts import Array


@dataclass(frozen=True)
class FixedWeights:
    """pi is known. The state is the weights themselves.

    Parameters
    ----------
    weights : sequence of K floats
        Not negative, with sum one (to 1e-6; they are divided by their sum).

    Raises
    ------
    ValueError
        If they are not such weights.
    """

    weights: Sequence[float]
    learn_alpha: bool = field(default=False, init=False, repr=False)
    hyper: tuple[float, float] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, float)
        if weights.ndim != 1 or not len(weights):
            raise ValueError(
                "weights must be a list of one number per component, got an array of shape "
                f"{weights.shape}"
            )
        # not (weights >= 0): NaN must not slip through
        bad = np.flatnonzero(~(weights >= 0))
        if len(bad):
            raise ValueError(
                f"weights must not be negative or NaN, got {weights[bad[0]]} for component {bad[0]}"
            )
        if not abs(weights.sum() - 1) <= 1e-6:
            raise ValueError(
                f"weights must sum to one, got the sum {weights.sum()}. Divide them by it."
            )
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))

    def posterior(
        self, counts: Array, alpha: float | None = None, like: Array | None = None
    ) -> Array:
        """The weights, whatever the counts."""
        if np.shape(counts) != (len(self.weights),):
            raise ValueError(
                f"weights are fixed for {len(self.weights)} components, got counts of shape "
                f"{np.shape(counts)}. Give one weight per component."
            )
        return np.asarray(self.weights)

    def select(self, weights: Array, which: Array) -> None:
        """None: each component has its own weight."""

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
        """counts @ log weights; -inf if a component of weight zero has rows."""
        return float(xlogy(counts, self.posterior(counts)).sum())

    def update_alpha(self, weights: Array, log_weights: Array | None = None) -> float:
        """NaN: there is no alpha."""
        return math.nan

    def draw_alpha(self, weights: Array, log_weights: Array, rng: np.random.Generator) -> float:
        """NaN: there is no alpha."""
        return math.nan

    def order(self, counts: Array, alpha: float | None = None) -> None:
        """None: weight k belongs to component k."""

    def n_free(self, n_components: int) -> int:
        return 0
