"""What the tests know of each family that is not Gaussian: a new one needs one entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaln, expit, gammaln, softmax

from mixfold.families.exponential import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    GammaShape,
    LinearFamily,
    Multinomial,
    NegativeBinomial,
    Poisson,
    VonMises,
)

N, D, K = 120, 4, 3
TRIALS, EXPOSURE = np.array([3, 5, 7, 2]), np.array([1.0, 2.0, 0.5, 1.0])
SHAPE, CATEGORIES = np.array([1.0, 2.5, 0.5, 3.0]), (2, 3, 4, 3)
DISPERSION = np.array([0.2, 0.5, 1.5, 0.8])
STARTS = np.concatenate([[0], np.cumsum(CATEGORIES)])


@dataclass(frozen=True)
class Example:
    """A family with settings that differ by column, and independent statements about it.

    Attributes
    ----------
    family : LinearFamily
        Of D columns.
    plain : LinearFamily
        The same for any number of columns.
    draw : callable (family, p, rng)
        Rows (n, D) that it can have produced, from chances p (n, D) in (0, 1).
    log_density : callable (X, theta)
        By scipy, under one component: of entries (n, D), or of rows (n,).
    means : callable (params)
        E[x | k] (K, D).
    log_predictive : callable (X, posterior, k)
        By scipy, of entries or rows; None if scipy has no such law.
    published : dict of callables (params)
        Attributes beside the means, but for those of categories.
    bad : tuple of (value, words)
        Entries that are refused, and what the message says.
    n_free : int
        Parameters of K components of D columns.
    usual : callable (mean)
        Fields of the default prior that are not all one, from the means of the columns.
    valid : float
        An entry that a row may have in all columns.
    period : array (D,), optional
        Means are directions on circles of these lengths.
    """

    family: LinearFamily
    plain: LinearFamily
    draw: Callable[..., Any]
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]
    means: Callable[[Any], np.ndarray]
    log_predictive: Callable[[np.ndarray, Any, int], np.ndarray] | None
    published: dict[str, Callable[[Any], np.ndarray]]
    bad: tuple[tuple[float, str], ...]
    n_free: int = K * D
    usual: Callable[[np.ndarray], dict[str, Any]] = field(default=lambda mean: {})
    valid: float = 1.0
    period: np.ndarray | None = None


def _shares(p: np.ndarray) -> np.ndarray:
    return p / p.sum(axis=1, keepdims=True)


def _codes(X: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Log probability of codes under one component, by lookup."""
    out = np.zeros(X.shape)
    for (n, d), code in np.ndenumerate(X):
        out[n, d] = np.log(p[STARTS[d] + int(code)])
    return out


def _mean_shares(q: Any, k: int) -> np.ndarray:
    return np.concatenate([q.a[k, i:j] / q.a[k, i:j].sum() for i, j in pairwise(STARTS)])


def _beta_negative_binomial(x: np.ndarray, q: Any, k: int) -> np.ndarray:
    """By its formula: scipy's takes whole numbers of successes only."""
    a, b, r = q.a[k], q.b[k] + q.count[k] * q.size, q.size
    ways = gammaln(x + r) - gammaln(r) - gammaln(x + 1)
    return np.asarray(ways + betaln(a + x, b + r) - betaln(a, b))


COUNTS = ((-1.0, "counts: whole numbers from 0 up"), (0.25, "counts"), (np.inf, "counts"))
AMOUNTS = ((0.0, "positive and finite"), (-1.0, "positive"), (np.inf, "positive and finite"))

SHARES = ((0.0, "shares between 0 and 1"), (1.0, "shares"), (-0.5, "shares"), (np.inf, "shares"))

PERIOD = np.array([24.0, 360.0, 7.0, 2 * np.pi])


def _angle(theta: np.ndarray) -> np.ndarray:
    """Directions of the means, in the units of the columns."""
    turned = np.mod(np.arctan2(theta[..., D:], theta[..., :D]), 2 * np.pi)
    return np.asarray(turned * PERIOD / (2 * np.pi))


def _von_mises(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    unit = 2 * np.pi / PERIOD
    kappa, centre = np.hypot(t[:D], t[D:]), np.arctan2(t[D:], t[:D])
    return np.asarray(stats.vonmises.logpdf(x * unit, kappa, loc=centre) + np.log(unit))


EXAMPLES: dict[str, Example] = {
    "von-mises": Example(
        VonMises(period=PERIOD, direction=[3.0, 90.0, 0.5, 4.0], concentration=1.5, rows=2.0),
        VonMises(period=5.0),
        lambda f, p, rng: (
            np.mod(rng.vonmises(8 * p, 3.0) / (2 * np.pi), 1)
            * (PERIOD[: p.shape[1]] if np.ndim(f.period) else f.period)
        ),
        _von_mises,
        lambda params: _angle(params.theta),
        None,
        {"concentrations": lambda params: np.hypot(params.theta[:, :D], params.theta[:, D:])},
        ((np.inf, "finite numbers, which begin again after 7"),),
        n_free=2 * K * D,
        period=PERIOD,
    ),
    "beta": Example(
        Beta(a=[2.0, 1.0, 0.7, 3.0], b=1.5, rows=2.0),
        Beta(),
        lambda f, p, rng: np.clip(rng.beta(6 * p, 6 * (1 - p)), 1e-12, 1 - 1e-12),
        lambda x, t: stats.beta.logpdf(x, np.exp(t[:D]), np.exp(t[D:])),
        lambda params: expit(params.theta[:, :D] - params.theta[:, D:]),
        None,
        {
            "a": lambda params: np.exp(params.theta[:, :D]),
            "b": lambda params: np.exp(params.theta[:, D:]),
        },
        SHARES,
        n_free=2 * K * D,
        valid=0.5,
    ),
    "dirichlet": Example(
        Dirichlet(concentration=[2.0, 1.0, 0.7, 3.0]),
        Dirichlet(),
        lambda f, p, rng: _shares(rng.standard_gamma(6 * p) + 1e-9),
        lambda x, t: stats.dirichlet.logpdf(x.T, np.exp(t)),
        lambda params: softmax(params.theta, axis=1),
        None,
        {"concentrations": lambda params: np.exp(params.theta)},
        ((0.0, "positive shares of a whole"), (-0.5, "shares"), (1.5, "positive shares")),
        n_free=K * D,
        valid=0.25,
    ),
    "gamma-shape": Example(
        GammaShape(shape=SHAPE, rate=[1.0, 2.0, 3.0, 4.0], rows=0.5),
        GammaShape(),
        lambda f, p, rng: rng.gamma(SHAPE[: p.shape[1]], 8 * p),
        lambda x, t: stats.gamma.logpdf(x, np.exp(t[D:]), scale=np.exp(t[:D] - t[D:])),
        lambda params: np.exp(params.theta[:, :D]),
        None,
        {
            "shapes": lambda params: np.exp(params.theta[:, D:]),
            "rates": lambda params: np.exp(params.theta[:, D:]) / params.means,
        },
        AMOUNTS,
        n_free=2 * K * D,
    ),
    "bernoulli": Example(
        Bernoulli(a=0.7, b=1.3),
        Bernoulli(),
        lambda f, p, rng: rng.random(p.shape) < p,
        lambda x, t: stats.bernoulli.logpmf(x, expit(t)),
        lambda params: expit(params.theta),
        lambda x, q, k: stats.bernoulli.logpmf(x, q.a[k] / (q.a[k] + q.b[k])),
        {"probabilities": lambda params: params.means},
        ((0.5, "must hold 0 and 1 only"), (2.0, "must hold 0 and 1 only")),
    ),
    "binomial": Example(
        Binomial(trials=TRIALS, a=[0.5, 1.0, 2.0, 0.9]),
        Binomial(trials=6),
        lambda f, p, rng: rng.binomial(f.trials, p),
        lambda x, t: stats.binom.logpmf(x, TRIALS, expit(t)),
        lambda params: TRIALS * expit(params.theta),
        lambda x, q, k: stats.betabinom.logpmf(x, TRIALS, q.a[k], q.b[k]),
        {"probabilities": lambda params: params.means / TRIALS},
        ((8.0, "whole numbers from 0 to trials = 7"), (1.5, "whole numbers from 0 to trials = 7")),
    ),
    "poisson": Example(
        Poisson(exposure=EXPOSURE, a=1.5),
        Poisson(),
        lambda f, p, rng: rng.poisson(8 * p),
        lambda x, t: stats.poisson.logpmf(x, EXPOSURE * np.exp(t)),
        lambda params: EXPOSURE * np.exp(params.theta),
        lambda x, q, k: stats.nbinom.logpmf(x, q.a[k], q.b[k] / (q.b[k] + EXPOSURE)),
        {"rates": lambda params: params.means / EXPOSURE},
        COUNTS,
        usual=lambda mean: {"b": EXPOSURE / mean},
    ),
    "exponential": Example(
        Exponential(),
        Exponential(),
        lambda f, p, rng: rng.exponential(8 * p),
        lambda x, t: stats.expon.logpdf(x, scale=np.exp(-t)),
        lambda params: np.exp(-params.theta),
        lambda x, q, k: stats.lomax.logpdf(x, q.a[k], scale=q.b[k]),
        {"rates": lambda params: 1 / params.means},
        AMOUNTS,
        usual=lambda mean: {"b": mean},
    ),
    "gamma": Example(
        Gamma(shape=SHAPE, a=0.8, b=[1.0, 2.0, 3.0, 4.0]),
        Gamma(shape=2.0),
        lambda f, p, rng: rng.gamma(f.shape, 8 * p),
        lambda x, t: stats.gamma.logpdf(x, SHAPE, scale=np.exp(-t)),
        lambda params: SHAPE * np.exp(-params.theta),
        lambda x, q, k: stats.betaprime.logpdf(x, SHAPE, q.a[k], scale=q.b[k]),
        {"rates": lambda params: SHAPE / params.means},
        AMOUNTS,
        usual=lambda mean: {"b": mean / SHAPE},
    ),
    "multinomial": Example(
        Multinomial(concentration=[0.5, 1.0, 2.0, 0.7]),
        Multinomial(),
        lambda f, p, rng: rng.multinomial(rng.integers(1, 20, len(p)), _shares(p)),
        lambda x, t: stats.multinomial.logpmf(x, x.sum(axis=1).astype(int), softmax(t)),
        lambda params: np.exp(params.theta) * params.means.sum(axis=1, keepdims=True),
        lambda x, q, k: stats.dirichlet_multinomial.logpmf(
            x.astype(int), q.a[k], x.sum(axis=1).astype(int)
        ),
        {"probabilities": lambda params: _shares(params.means)},
        ((-2.0, "counts"),),
        n_free=K * (D - 1),
    ),
    "categorical": Example(
        Categorical(n_categories=CATEGORIES, concentration=0.6),
        Categorical(n_categories=4),
        lambda f, p, rng: np.minimum(rng.binomial(3, p), np.array(f.n_categories) - 1),
        lambda x, t: _codes(x, np.exp(t)),
        lambda params: np.stack(
            [np.exp(params.theta[:, i:j]) @ np.arange(j - i) for i, j in pairwise(STARTS)], axis=1
        ),
        lambda x, q, k: _codes(x, _mean_shares(q, k)),
        {},
        ((4.0, "whole numbers from 0 to 3"), (0.5, "codes of its 4 categories")),
        n_free=K * (sum(CATEGORIES) - D),
    ),
    "negative-binomial": Example(
        NegativeBinomial(a=0.9, b=[1.5, 1.0, 2.0, 0.7], shape=1.2, rate=[0.1, 0.3, 0.2, 0.4]),
        NegativeBinomial(),
        lambda f, p, rng: rng.poisson(8 * p * rng.gamma(1.5, 1 / 1.5, p.shape)),
        lambda x, t: stats.nbinom.logpmf(x, np.exp(t[D:]), 1 / (1 + np.exp(t[:D] - t[D:]))),
        lambda params: np.exp(params.theta[:, :D]),
        None,
        {"dispersions": lambda params: np.exp(-params.theta[:, D:])},
        COUNTS,
        n_free=2 * K * D,
        usual=lambda mean: {"rate": np.full(D, 0.1)},
    ),
    "negative-binomial, known dispersion": Example(
        NegativeBinomial(dispersion=DISPERSION, a=0.9, b=[1.5, 1.0, 2.0, 0.7]),
        NegativeBinomial(dispersion=0.5),
        lambda f, p, rng: rng.poisson(8 * p * rng.gamma(1.5, 1 / 1.5, p.shape)),
        lambda x, t: stats.nbinom.logpmf(x, 1 / DISPERSION, 1 / (1 + np.exp(t[:D]) * DISPERSION)),
        lambda params: np.exp(params.theta[:, :D]),
        _beta_negative_binomial,
        {"dispersions": lambda params: np.tile(DISPERSION, (K, 1))},
        COUNTS,
        usual=lambda mean: {"rate": np.full(D, 0.1)},
    ),
}


def rows_of(example: Example, n: int, n_features: int, rng: np.random.Generator, K: int = K) -> Any:
    """Rows of K unequal clusters for the plain family."""
    p = rng.uniform(0.1, 0.9, (K, n_features))[rng.integers(K, size=n)]
    return np.asarray(example.draw(example.plain, p, rng), float)
