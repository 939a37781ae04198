"""Draws of the settings of a prior, given the parameters that were drawn from it.

A setting h that is positive is log-normal about the value g that was given,

    ln h ~ N(ln g, SPREAD^2)

so that two in three lie within a factor of 3 of it, and 95 % within a factor of 7.4; a positive
definite matrix is Wishart about the one that was given, with as few degrees of freedom as leave it
a mean and inverse moments. Without such priors of their own, settings of a prior of a few
components run away: the likelihood of one component has no maximum in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import gammaln, multigammaln

from mixfold.contracts import Array
from mixfold.math.dirichlet import log_beta
from mixfold.math.gamma_law import log_gamma_draw
from mixfold.math.slice_sampling import slice_sample, slice_sample_each
from mixfold.math.wishart import draw_factor

# of the logarithm of a setting
SPREAD = 1.0
# degrees of freedom of a matrix beyond its size
MORE_DEGREES = 2.0

LogDensity = Callable[..., Array]


def log_hyper(value: Array, given: Array) -> Array:
    """ln of the density of the logarithms of settings, but for a constant."""
    return np.asarray(-0.5 * (np.log(value / given) / SPREAD) ** 2)


def stretch(
    log_likelihood: LogDensity,
    settings: Sequence[Array],
    given: Sequence[Array],
    moved: Sequence[bool],
    rng: np.random.Generator,
) -> tuple[Array, ...]:
    """One transition: some of the ``settings`` are multiplied by a common factor, drawn.

    Settings are positive, of the shape () or (D,) each; ``log_likelihood(*settings)`` has the shape
    of the factor: (D,), one for each column, if all that are moved are (D,), else (). It speaks of
    columns that are independent given the rest.
    """
    shapes = {np.shape(value) for value, move in zip(settings, moved, strict=True) if move}
    shape = shapes.pop() if len(shapes) == 1 else ()

    def moved_by(log_factor: Array) -> tuple[Array, ...]:
        factor = np.exp(log_factor)
        return tuple(
            np.asarray(value * factor) if move else value
            for value, move in zip(settings, moved, strict=True)
        )

    def log_density(log_factor: Array) -> Array:
        found = moved_by(log_factor)
        total = sum_to(log_likelihood(*found), shape)
        for value, base, move in zip(found, given, moved, strict=True):
            if move:
                total = total + sum_to(log_hyper(value, base), shape)
        return total

    return moved_by(slice_sample_each(log_density, np.zeros(shape), rng))


def sum_to(values: Array, shape: tuple[int, ...]) -> Array:
    """Summed over columns where ``shape`` has none."""
    values = np.asarray(values)
    return values if values.shape == shape else np.asarray(values.sum())


def draw_pair(
    log_norm: Callable[[Array, Array], Array],
    one: Array,
    two: Array,
    now: tuple[Array, Array],
    given: tuple[Array, Array],
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """a and b (D,) of laws exp(a omega_1 + b omega_2 - B(a, b)), from omega_1 and omega_2 (K, D).

    Both at once first: what such laws tell well is their ratio.
    """
    n, sums = len(one), (one.sum(axis=0), two.sum(axis=0))

    def log_likelihood(a: Array, b: Array) -> Array:
        return np.asarray(a * sums[0] + b * sums[1] - n * log_norm(a, b))

    for moved in ((True, True), (True, False), (False, True)):
        now = stretch(log_likelihood, now, given, moved, rng)  # type: ignore[assignment]
    return now


def draw_concentration(logs: Array, now: Array, given: Array, rng: np.random.Generator) -> Array:
    """a (V,) of Dirichlet laws of which ln p (K, V) were drawn.

    The total A couples the entries by K ln Gamma(A). With t_k ~ gamma(A) beside the shares the
    factors t_k^A part them: each a_v is then by itself.
    """
    n, sums = len(logs), logs.sum(axis=0)

    def together(a: Array) -> Array:
        return np.asarray(a @ sums - n * log_beta(a) + log_hyper(a, given).sum())

    factor = slice_sample_each(lambda c: together(now * np.exp(c)), np.zeros(()), rng)
    now = now * np.exp(factor)
    apart = sums + log_gamma_draw(np.full(n, now.sum()), rng).sum()
    (drawn,) = stretch(lambda a: a * apart - n * gammaln(a), (now,), (given,), (True,), rng)
    return drawn


def draw_precision(
    squares: Array, count: Array, now: Array, given: Array, rng: np.random.Generator
) -> Array:
    """beta of ``count`` normals N(0, 1 / (beta lambda)), from their ``squares`` times lambda, each
    summed to the shape of beta."""

    def log_likelihood(precision: Array) -> Array:
        return np.asarray(0.5 * (count * np.log(precision) - precision * squares))

    (drawn,) = stretch(log_likelihood, (now,), (given,), (True,), rng)
    return drawn


def draw_gammas(
    rates: Array,
    now: tuple[Array, Array],
    given: tuple[Array, Array],
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """degrees and scatter of lambda ~ gamma(degrees / 2, scatter / 2), from draws (n, D) of it."""
    n, sums, logs = len(rates), rates.sum(axis=0), np.log(rates).sum(axis=0)

    def log_likelihood(degrees: Array, scatter: Array) -> Array:
        half, rate = degrees / 2, scatter / 2
        return np.asarray(n * (half * np.log(rate) - gammaln(half)) + half * logs - rate * sums)

    for moved in ((True, True), (True, False), (False, True)):
        now = stretch(log_likelihood, now, given, moved, rng)  # type: ignore[assignment]
    return now


def draw_wisharts(
    precisions: Array,
    now: tuple[Array, Array],
    given: tuple[Array, Array],
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """degrees nu and scatter W^-1 of precisions ~ Wishart(W, nu), from draws (n, D, D) of them.

    ``now`` and ``given`` are (nu, W^-1). nu is drawn with the scatter integrated out, then the
    scatter, whose law is a Wishart as well.
    """
    n, size = precisions.shape[:2]
    first = size + MORE_DEGREES
    inverse = first * np.linalg.inv(given[1]) + precisions.sum(axis=0)
    log_dets = float(np.linalg.slogdet(precisions)[1].sum())
    log_det = float(np.linalg.slogdet(inverse)[1])
    least = size - 1
    base = np.log(given[0] - least)

    def log_density(t: float) -> float:
        nu = least + np.exp(t)
        half = (first + n * nu) / 2
        # |V|^-half 2^(half D) G(half) for all, 2^(nu D / 2) G(nu / 2) for each
        own = nu / 2 * (log_dets - n * size * np.log(2.0)) - n * multigammaln(nu / 2, size)
        whole = half * (size * np.log(2.0) - log_det) + multigammaln(half, size)
        return float(own + whole - 0.5 * ((t - base) / SPREAD) ** 2)

    start = float(np.log(now[0] - least))
    nu = least + np.exp(slice_sample(log_density, start, rng))
    return np.asarray(nu), draw_wishart(inverse, first + n * nu, rng)


def draw_wishart(inverse_scale: Array, degrees: float, rng: np.random.Generator) -> Array:
    """A matrix (D, D) ~ Wishart(V, degrees), from V^-1."""
    root = np.linalg.inv(np.linalg.cholesky(inverse_scale))  # V = root' root
    factor = draw_factor(np.swapaxes(root, 0, 1)[None], degrees, rng)[0]
    return np.asarray(factor @ factor.T)


def draw_normal(precision: Array, weighted: Array, rng: np.random.Generator) -> Array:
    """x ~ N(P^-1 w, P^-1), from P (D, D) and w (D,)."""
    root = np.linalg.cholesky(precision)
    noise = rng.standard_normal(len(weighted))
    return np.asarray(np.linalg.solve(precision, weighted) + np.linalg.solve(root.T, noise))
