"""Dirichlet mixing weights: alpha / K for each component, or unequal shares of alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, psi

from mixfold.contracts import Array, Positive, record
from mixfold.math.dirichlet import dirichlet_kl, expected_log, log_beta, log_draw
from mixfold.math.gamma_law import log_density
from mixfold.math.slice_sampling import slice_sample
from mixfold.mixing.concentration import (
    LEAST,
    MOST,
    check_alpha,
    check_hyper,
    clip_alpha,
    require_hyper,
)


@record
@dataclass(frozen=True, slots=True)
class DirichletWeights:
    """pi ~ Dirichlet(``concentration``), posterior to a prior of total ``alpha``."""

    concentration: Positive
    alpha: float


@dataclass(frozen=True)
class SymmetricDirichlet:
    """pi ~ Dirichlet(alpha / K, ..., alpha / K).

    As K grows with alpha fixed, the partition of the rows tends to that of a Dirichlet process.

    Parameters
    ----------
    alpha : float or sequence of K floats, default 1.0
        The total. A sequence gives each component its own concentration; alpha is then their
        sum, and the shares of it stay when alpha is learned.
    learn_alpha : bool, default False
        Learn alpha: a point estimate under EM and VB, drawn under Gibbs sampling.
    hyper : (float, float) or None, default (1.0, 1.0)
        Shape and rate of the gamma prior of alpha if it is learned; None is a flat one (no draws).
    """

    alpha: float | Sequence[float] = 1.0
    learn_alpha: bool = False
    hyper: tuple[float, float] | None = (1.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hyper", check_hyper(self.hyper))
        if isinstance(self.alpha, Real | str) or np.ndim(self.alpha) == 0:
            object.__setattr__(self, "alpha", check_alpha(self.alpha))
            return
        parts = tuple(check_alpha(value) for value in np.asarray(self.alpha).tolist())
        if not parts:
            raise ValueError("alpha must be a number or hold one per component, got none")
        object.__setattr__(self, "alpha", parts)

    def posterior(
        self, counts: Array, alpha: float | None = None, like: DirichletWeights | None = None
    ) -> DirichletWeights:
        alpha = self._total(alpha)
        return DirichletWeights(alpha * self._shares(len(counts)) + counts, alpha)

    def select(self, state: DirichletWeights, which: Array) -> DirichletWeights | None:
        """The components in another order; None if the prior tells them apart."""
        if not isinstance(self.alpha, float):
            return None
        return DirichletWeights(state.concentration[which], state.alpha)

    def mode(self, state: DirichletWeights) -> Array:
        """ln of (alpha / K + N_k) / (alpha + N): the maximum with respect to prod dpi_k / pi_k."""
        return np.log(self.mean(state))

    def expected_log_weights(self, state: DirichletWeights) -> Array:
        return expected_log(state.concentration)

    def draw(self, state: DirichletWeights, rng: np.random.Generator) -> Array:
        return log_draw(state.concentration, rng)

    def mean(self, state: DirichletWeights) -> Array:
        return np.asarray(state.concentration / state.concentration.sum())

    def kl(self, state: DirichletWeights) -> float:
        """To the prior, minus the log hyper-prior at a learned alpha."""
        divergence = dirichlet_kl(state.concentration, self._prior(state))
        return float(divergence) - self._log_hyper(state)

    def log_prior(self, state: DirichletWeights) -> float:
        """(alpha / K) sum ln pi_k; with all that depends on alpha if it is learned."""
        prior = self._prior(state)
        plain = float(prior @ self.mode(state))
        if not self.learn_alpha:
            return plain
        return plain - float(log_beta(prior)) + self._log_hyper(state)

    def log_prob(self, counts: Array, alpha: float | None = None) -> float:
        state = self.posterior(counts, alpha)
        return float(log_beta(state.concentration) - log_beta(self._prior(state)))

    def update_alpha(self, state: DirichletWeights, log_weights: Array | None = None) -> float:
        """The maximiser of E ln p(pi | alpha) + ln p(alpha), up to 1e-12 and 1e12."""
        shares = self._shares(len(state.concentration))
        if not self.learn_alpha or len(shares) == 1:
            return state.alpha
        mean_log = float(
            shares @ (self.expected_log_weights(state) if log_weights is None else log_weights)
        )
        shape, rate = self.hyper or (1.0, 0.0)

        def slope(log_alpha: float) -> float:
            alpha = math.exp(log_alpha)
            gain = psi(alpha) - float(shares @ psi(alpha * shares)) + mean_log
            return float(alpha * (gain - rate) + shape - 1)

        low, high = math.log(LEAST), math.log(MOST)
        if slope(low) <= 0:
            return LEAST
        if slope(high) >= 0:
            return MOST
        return math.exp(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))

    def draw_alpha(
        self, state: DirichletWeights, log_weights: Array, rng: np.random.Generator
    ) -> float:
        """One slice-sampling transition of ln alpha, from ``state.alpha``."""
        if not self.learn_alpha:
            return state.alpha
        shape, rate = require_hyper(self.hyper)
        shares = self._shares(len(log_weights))
        mean_log = float(shares @ log_weights)

        def target(log_alpha: float) -> float:
            if abs(log_alpha) > math.log(MOST):
                return -math.inf
            alpha = math.exp(log_alpha)
            norm = gammaln(alpha) - gammaln(alpha * shares).sum()
            return float(norm + alpha * (mean_log - rate) + shape * log_alpha)

        return clip_alpha(math.exp(slice_sample(target, math.log(clip_alpha(state.alpha)), rng)))

    def order(self, counts: Array, alpha: float | None = None) -> None:
        """None: equal shares do not care, unequal ones belong to their components."""

    def n_free(self, n_components: int) -> int:
        return n_components - 1

    def _total(self, alpha: float | None) -> float:
        if alpha is not None:
            return float(alpha)
        return self.alpha if isinstance(self.alpha, float) else float(sum(self.alpha))

    def _shares(self, n_components: int) -> Array:
        if isinstance(self.alpha, float):
            return np.full(n_components, 1 / n_components)
        if len(self.alpha) != n_components:
            raise ValueError(
                f"alpha must be a number or hold one per component, got {len(self.alpha)} values "
                f"for {n_components} components"
            )
        return np.asarray(self.alpha) / sum(self.alpha)

    def _prior(self, state: DirichletWeights) -> Array:
        return np.asarray(state.alpha * self._shares(len(state.concentration)))

    def _log_hyper(self, state: DirichletWeights) -> float:
        """ln p(alpha) if alpha is learned. A single component has no alpha to speak of."""
        if not self.learn_alpha or self.hyper is None or len(state.concentration) == 1:
            return 0.0
        return float(log_density(state.alpha, *self.hyper))
