"""Likelihoods of one output y given a score a: real, yes or no, ordered categories, counts.

The score is linear in latents, a = v'z + b, and normal given what is known besides. All that a
model asks of an output are integrals over that normal law, of

- ln p(y | a) (``expect``), the term of a variational bound, with its slopes in mean and variance;
- p(y | a) (``tilt``), which gives the law of a given y, and the probability of y.

Every likelihood here is log-concave in a, so that the law of a given y has one peak: integrals are
Gauss-Hermite sums about it. ``shape`` (p,) holds what a likelihood has besides the score: a noise,
thresholds, an excess of variance. Arrays y and a broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import digamma, gammaln, log_ndtr, logsumexp, ndtr

from mixfold.contracts import Array
from mixfold.math.symmetric import LOG_2PI

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_LOG_WEIGHTS = np.log(_WEIGHTS) - 0.5 * LOG_2PI
# Newton steps to a peak, the longest of them in units of the score, and when to stop
_STEPS, _LONGEST, _NEAR = 100, 4.0, 1e-9
# scores beyond this have rates that a double cannot hold
_LARGEST_SCORE = 600.0


class Slopes(NamedTuple):
    """Derivatives of ln p(y | a, shape): first ones, and second ones with the other sign.

    ``score`` (...) and ``score_curvature`` (...) of a; ``shape`` (p, ...), ``cross`` (p, ...) of
    both, ``shape_curvature`` (p, p, ...). What is given for second derivatives of the shape may be
    their expected size instead: it has to be positive semidefinite with the others.
    """

    score: Array
    score_curvature: Array
    shape: Array
    cross: Array
    shape_curvature: Array


class Likelihood(Protocol):
    """p(y | a, shape)."""

    @property
    def n_shape(self) -> int:
        """Number p of entries of ``shape``."""
        ...

    def log_density(self, y: Array, a: Array, shape: Array) -> Array: ...

    def slopes(self, y: Array, a: Array, shape: Array) -> Slopes: ...

    def is_valid(self, shape: Array) -> bool:
        """Whether there is a law of this shape."""
        ...

    def coordinates(self, shape: Array) -> Array:
        """The shape as numbers without constraints."""
        ...

    def from_coordinates(self, vector: Array) -> Array: ...

    def jacobian(self, shape: Array) -> Array:
        """Derivatives (p, p) of the shape, by row, in its coordinates, by column."""
        ...


def _nothing(a: Array) -> tuple[Array, Array]:
    return np.zeros((0, *a.shape)), np.zeros((0, 0, *a.shape))


@dataclass(frozen=True, slots=True)
class Real:
    """y ~ N(a, v), and v is the shape."""

    n_shape: int = 1

    def log_density(self, y: Array, a: Array, shape: Array) -> Array:
        return np.asarray(-0.5 * (LOG_2PI + np.log(shape[0]) + (y - a) ** 2 / shape[0]))

    def slopes(self, y: Array, a: Array, shape: Array) -> Slopes:
        v, left = shape[0], np.asarray(y - a)
        own = 0.5 * (left**2 / v - 1) / v
        expected = np.full(left.shape, 0.5 / v**2)
        zero = np.zeros((1, *left.shape))
        return Slopes(left / v, np.full(left.shape, 1 / v), own[None], zero, expected[None, None])

    def is_valid(self, shape: Array) -> bool:
        return bool(shape[0] > 0)

    def coordinates(self, shape: Array) -> Array:
        return np.log(shape)

    def from_coordinates(self, vector: Array) -> Array:
        return np.exp(vector)

    def jacobian(self, shape: Array) -> Array:
        return np.diag(shape)


@dataclass(frozen=True, slots=True)
class OrderedProbit:
    """y = 0, .., C - 1 by how many thresholds a normal utility of mean a and variance 1 exceeds.

    P(y <= c | a) = Phi(t_c - a) with t_0 = 0 < t_1 < .. < t_{C-2}; ``shape`` holds t_1 and the
    following. Two categories are the probit, P(y = 1 | a) = Phi(a).
    """

    n_categories: int = 2

    @property
    def n_shape(self) -> int:
        return self.n_categories - 2

    def bounds(self, shape: Array) -> Array:
        """All thresholds (C + 1,), those at both ends infinite."""
        return np.concatenate([[-np.inf, 0.0], shape, [np.inf]])

    def _ends(self, y: Array, a: Array, shape: Array) -> tuple[Array, Array]:
        bounds, which = self.bounds(shape), np.asarray(y).astype(np.int64)
        return bounds[which] - a, bounds[which + 1] - a

    def log_density(self, y: Array, a: Array, shape: Array) -> Array:
        return log_interval(*self._ends(y, a, shape))

    def slopes(self, y: Array, a: Array, shape: Array) -> Slopes:
        low, high = self._ends(y, a, shape)
        log_p = log_interval(low, high)
        # slopes in the upper and lower end
        up, down = _log_normal_ratio(high, log_p), -_log_normal_ratio(low, log_p)
        upper = np.where(np.isfinite(high), high, 0.0) * up + up**2
        lower = np.where(np.isfinite(low), low, 0.0) * down + down**2
        both = up * down
        score, curvature = -(up + down), np.maximum(upper + 2 * both + lower, 0.0)
        shape_slopes, squares = _nothing(score) if not len(shape) else (
            np.zeros((len(shape), *score.shape)),
            np.zeros((len(shape), len(shape), *score.shape)),
        )  # fmt: skip
        cross = shape_slopes.copy()
        which = np.broadcast_to(np.asarray(y).astype(np.int64), score.shape)
        for j in range(len(shape)):  # threshold t_{j+1} is above category j + 1
            is_upper, is_lower = which == j + 1, which == j + 2
            shape_slopes[j] = up * is_upper + down * is_lower
            cross[j] = -(upper + both) * is_upper - (lower + both) * is_lower
            squares[j, j] = upper * is_upper + lower * is_lower
            if j:
                squares[j, j - 1] = squares[j - 1, j] = both * is_upper
        return Slopes(score, curvature, shape_slopes, cross, squares)

    def is_valid(self, shape: Array) -> bool:
        return bool((np.diff(np.append(0.0, shape)) > 0).all())

    def coordinates(self, shape: Array) -> Array:
        return np.log(np.diff(np.append(0.0, shape)))

    def from_coordinates(self, vector: Array) -> Array:
        return np.cumsum(np.exp(vector))

    def jacobian(self, shape: Array) -> Array:
        gaps = np.diff(np.append(0.0, shape))
        return np.tril(np.ones((len(gaps), len(gaps)))) * gaps

    def chances(self, mean: Array, variance: Array, shape: Array) -> Array:
        """P(y = c) (..., C) for a score of this mean and variance."""
        deviation = np.sqrt(1.0 + variance)[..., None]
        ends = (self.bounds(shape) - np.asarray(mean)[..., None]) / deviation
        return np.exp(log_interval(ends[..., :-1], ends[..., 1:]))


@dataclass(frozen=True, slots=True)
class Counts:
    """y = 0, 1, 2, ..: of mean exp(a) and variance exp(a) + excess exp(2 a), negative binomial.

    Its logarithm is the ``shape`` unless it is ``fixed``; zero is Poisson's law.
    """

    fixed: float | None = None

    @property
    def n_shape(self) -> int:
        return 0 if self.fixed is not None else 1

    def excess(self, shape: Array) -> float:
        return float(np.exp(shape[0])) if self.fixed is None else self.fixed

    def log_density(self, y: Array, a: Array, shape: Array) -> Array:
        a = np.minimum(a, _LARGEST_SCORE)
        excess = self.excess(shape)
        if excess <= _POISSON:
            return np.asarray(y * a - np.exp(a) - gammaln(y + 1.0))
        r = 1.0 / excess
        rising = gammaln(y + r) - gammaln(r) + y * np.log(excess)
        return np.asarray(
            rising - gammaln(y + 1.0) + y * a - (y + r) * np.logaddexp(0.0, a + np.log(excess))
        )

    def slopes(self, y: Array, a: Array, shape: Array) -> Slopes:
        a = np.minimum(a, _LARGEST_SCORE)
        excess = self.excess(shape)
        mean = np.exp(a)
        grown = 1.0 + excess * mean
        score = np.asarray((y - mean) / grown)
        curvature = np.asarray(mean * (1.0 + excess * y) / grown**2)
        none, nothing = _nothing(score)
        if self.fixed is not None:
            return Slopes(score, curvature, none, none, nothing)
        r = 1.0 / max(excess, _POISSON)
        by_r = digamma(y + r) - digamma(r) - np.log1p(mean / r) + (mean - y) / (mean + r)
        own = np.broadcast_to(-r * by_r, score.shape)
        # mean and excess are orthogonal: the expected product of their slopes is zero
        return Slopes(score, curvature, own[None], 0 * own[None], (own**2)[None, None])

    def is_valid(self, shape: Array) -> bool:
        return self.fixed is not None or bool(abs(shape[0]) < -_LOG_POISSON)

    def coordinates(self, shape: Array) -> Array:
        return shape

    def from_coordinates(self, vector: Array) -> Array:
        return np.clip(vector, _LOG_POISSON, -_LOG_POISSON)

    def jacobian(self, shape: Array) -> Array:
        return np.eye(len(shape))


# an excess of variance that is none
_POISSON = 1e-7
_LOG_POISSON = float(np.log(_POISSON))


def log_interval(low: Array, high: Array) -> Array:
    """ln P(low < e < high) of a standard normal e, exact where both ends are far out."""
    flipped = low > 0
    a, b = np.where(flipped, -high, low), np.where(flipped, -low, high)
    top, bottom = log_ndtr(b), log_ndtr(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = top + np.log1p(-np.exp(bottom - top))
        # ends that no logarithm tells apart: the density there times the width
        middle = 0.5 * (a + b)
        thin = -0.5 * (middle**2 + LOG_2PI) + np.log(b - a)
    return np.asarray(np.where(np.isneginf(found) & (b > a), thin, found))


def _log_normal_ratio(x: Array, log_p: Array) -> Array:
    """phi(x) / exp(log_p), zero at infinity."""
    finite = np.where(np.isfinite(x), x, 0.0)
    log_ratio = np.minimum(-0.5 * (finite**2 + LOG_2PI) - log_p, _LARGEST_SCORE)
    return np.where(np.isfinite(x), np.exp(log_ratio), 0.0)


# ------------------------------------------------ integrals


class Expected(NamedTuple):
    """E[ln p(y | a)] for a normal a, and its slopes in the mean and the variance of a."""

    value: Array
    by_mean: Array
    by_variance: Array


def expect(
    likelihood: Likelihood, y: Array, mean: Array, variance: Array, shape: Array
) -> Expected:
    """The term of a variational bound: by a formula, or else a Gauss-Hermite sum."""
    y, mean, variance = np.broadcast_arrays(*(np.asarray(v, float) for v in (y, mean, variance)))
    if isinstance(likelihood, Real):
        v = shape[0]
        value = likelihood.log_density(y, mean, shape) - 0.5 * variance / v
        return Expected(value, (y - mean) / v, np.full(y.shape, -0.5 / v))
    if isinstance(likelihood, Counts) and likelihood.excess(shape) <= _POISSON:
        rate = np.exp(np.minimum(mean + 0.5 * variance, _LARGEST_SCORE))
        return Expected(y * mean - rate - gammaln(y + 1.0), y - rate, -0.5 * rate)
    a = mean[..., None] + np.sqrt(variance)[..., None] * _NODES
    share = np.exp(_LOG_WEIGHTS)
    slopes = likelihood.slopes(y[..., None], a, shape)
    return Expected(
        likelihood.log_density(y[..., None], a, shape) @ share,
        slopes.score @ share,
        -0.5 * slopes.score_curvature @ share,
    )


@dataclass(frozen=True, slots=True)
class Tilted:
    """Of a ~ N(q, tau2) given y: points in units u = (a - q) / tau (..., Q), their shares, and
    ln p(y) (...)."""

    points: Array
    shares: Array
    log_probability: Array

    def mean(self, values: Array | None = None) -> Array:
        """E[values] (...), for values at the points; of u itself by default."""
        return np.asarray((self.shares * (self.points if values is None else values)).sum(axis=-1))


def tilt(likelihood: Likelihood, y: Array, q: Array, tau2: Array, shape: Array) -> Tilted:
    """The law of a score a ~ N(q, tau2) given y."""
    y, q, tau = np.broadcast_arrays(
        np.asarray(y, float), np.asarray(q, float), np.sqrt(np.asarray(tau2, float))
    )
    u, curvature = _find_peak(likelihood, y, q, tau, shape)
    width = 1.0 / np.sqrt(curvature)
    points = u[..., None] + width[..., None] * _NODES
    a = q[..., None] + tau[..., None] * points
    log_parts = (
        likelihood.log_density(y[..., None], a, shape)
        + 0.5 * (_NODES**2 - points**2)
        + _LOG_WEIGHTS
        + np.log(width)[..., None]
    )
    total = logsumexp(log_parts, axis=-1)
    return Tilted(points, np.exp(log_parts - total[..., None]), np.asarray(total))


def _find_peak(
    likelihood: Likelihood, y: Array, q: Array, tau: Array, shape: Array
) -> tuple[Array, Array]:
    """Where ln p(y | q + tau u) - u^2 / 2 is largest, and minus its second derivative there."""
    u = np.zeros(q.shape)
    longest = _LONGEST / np.maximum(tau, 1e-300)
    curvature: Any = np.ones(q.shape)
    for _ in range(_STEPS):
        slopes = likelihood.slopes(y, q + tau * u, shape)
        curvature = 1.0 + tau**2 * slopes.score_curvature
        step = (tau * slopes.score - u) / curvature
        u = u + np.clip(step, -longest, longest)
        if not step.size or np.abs(step).max() < _NEAR:
            break
    slopes = likelihood.slopes(y, q + tau * u, shape)
    return u, 1.0 + tau**2 * slopes.score_curvature


def draw(likelihood: Likelihood, a: Array, shape: Array, rng: np.random.Generator) -> Array:
    """One y for each score."""
    if isinstance(likelihood, Real):
        return np.asarray(a + np.sqrt(shape[0]) * rng.normal(size=a.shape))
    if isinstance(likelihood, OrderedProbit):
        utility = a + rng.normal(size=a.shape)
        return np.searchsorted(likelihood.bounds(shape)[1:-1], utility).astype(float)
    assert isinstance(likelihood, Counts)
    rate, excess = np.exp(a), likelihood.excess(shape)
    if excess > _POISSON:
        rate = rng.gamma(1.0 / excess, excess * rate)
    return rng.poisson(rate).astype(float)


def phi_below(level: Array, mean: Array, variance: Array) -> Array:
    """P(a + e <= level) for a score of this mean and variance and a standard normal e."""
    return np.asarray(ndtr((level - mean) / np.sqrt(1.0 + variance)))
