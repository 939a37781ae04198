"""The conjugate laws with two coordinates: beta for odds, gamma for rates.

Parameters are given by theta: the log odds ln p - ln(1 - p), or the log of a rate.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import betaln, expit, gammaln, log_expit, psi

from mixfold.contracts import Array
from mixfold.math.dirichlet import fit_dirichlet, log_beta_draw
from mixfold.math.gamma_law import fit_gamma, gamma_kl, log_gamma_draw


class Law(Protocol):
    """log p(theta | a, b) = log g(theta) + <(a, b), omega(theta)> - B(a, b)."""

    @property
    def name(self) -> str: ...

    @property
    def published(self) -> str:
        """How users call the parameter."""
        ...

    def value(self, theta: Array) -> Array:
        """The parameter as users know it."""
        ...

    def omega(self, theta: Array) -> tuple[Array, Array]: ...

    def gradient(self, theta: Array, a: Array, b: Array) -> Array:
        """Slope of <(a, b), omega(theta)>."""
        ...

    def log_norm(self, a: Array, b: Array) -> Array:
        """B."""
        ...

    def expected(self, a: Array, b: Array) -> tuple[Array, Array]:
        """E[omega], the gradient of B."""
        ...

    def draw(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """theta."""
        ...

    def kl(self, a: Array, b: Array, a_0: Array, b_0: Array) -> Array:
        """Divergence of (a, b) from (a_0, b_0)."""
        ...

    def fit(self, one: Array, two: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """The law with the expectation (one, two) of omega; the search starts at (a, b)."""
        ...


class BetaLaw:
    """p ~ beta(a, b), omega = (ln p, ln(1 - p))."""

    name, published = "beta", "probabilities"

    def value(self, theta: Array) -> Array:
        return np.asarray(expit(theta))

    def omega(self, theta: Array) -> tuple[Array, Array]:
        return log_expit(theta), log_expit(-theta)

    def gradient(self, theta: Array, a: Array, b: Array) -> Array:
        return np.asarray(a * expit(-theta) - b * expit(theta))

    def log_norm(self, a: Array, b: Array) -> Array:
        return np.asarray(betaln(a, b))

    def expected(self, a: Array, b: Array) -> tuple[Array, Array]:
        total = psi(a + b)
        return psi(a) - total, psi(b) - total

    def draw(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        yes, no = log_beta_draw(a, b, rng)
        return np.asarray(yes - no)

    def kl(self, a: Array, b: Array, a_0: Array, b_0: Array) -> Array:
        one, two = self.expected(a, b)
        gain = self.log_norm(a_0, b_0) - self.log_norm(a, b)
        return np.asarray((a - a_0) * one + (b - b_0) * two + gain)

    def fit(self, one: Array, two: Array, a: Array, b: Array) -> tuple[Array, Array]:
        both = fit_dirichlet(np.stack([one, two], axis=-1), np.stack([a, b], axis=-1))
        return both[..., 0].copy(), both[..., 1].copy()


class GammaLaw:
    """rate ~ gamma(a, rate b), omega = (ln rate, -rate)."""

    name, published = "gamma", "rates"

    def value(self, theta: Array) -> Array:
        return np.asarray(np.exp(theta))

    def omega(self, theta: Array) -> tuple[Array, Array]:
        return theta, -np.exp(theta)

    def gradient(self, theta: Array, a: Array, b: Array) -> Array:
        return np.asarray(a - b * np.exp(theta))

    def log_norm(self, a: Array, b: Array) -> Array:
        return np.asarray(gammaln(a) - a * np.log(b))

    def expected(self, a: Array, b: Array) -> tuple[Array, Array]:
        return psi(a) - np.log(b), -a / b

    def draw(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        return np.asarray(log_gamma_draw(a, rng) - np.log(b))

    def kl(self, a: Array, b: Array, a_0: Array, b_0: Array) -> Array:
        return gamma_kl(a, b, a_0, b_0)

    def fit(self, one: Array, two: Array, a: Array, b: Array) -> tuple[Array, Array]:
        return fit_gamma(-two, one)


BETA, GAMMA = BetaLaw(), GammaLaw()
# shares of one are kept inside [1e-12, 1 - 1e-12]: one row cannot be impossible everywhere
LEAST_SHARE = 1e-12
ODDS_LIMIT = float(np.log1p(-LEAST_SHARE) - np.log(LEAST_SHARE))
