"""Moments and draws of a normal score of which only the sign is known (probit).

A score a ~ N(q, tau2) is seen as its sign s = +1 or -1 only. With t = s q / tau all answers are
functions of one number. A latent z, jointly normal with the score and with covariance R w to it,
moves and shrinks along R w: the linearly truncated normal (a = w'z + b, tau2 = w'Rw) and the
Phi-squashed one (a = w'z + b + N(0, 1), tau2 = 1 + w'Rw) are both this. All functions broadcast
and hold their digits for t from -1e8 to 1e8.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtri_exp

from mixfold.contracts import Array

# below this the continued fraction is exact to rounding with so many terms, and t + mills(t),
# a difference of large numbers, has begun to lose digits
TAIL = -5.0
_TERMS = 30
# the start is within 4 % there; after so many steps only rounding is left
_NEWTON_STEPS = 3
_ROOT_2 = float(np.sqrt(2.0))
_ROOT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))


def mills(t: ArrayLike) -> Array:
    """phi(t) / Phi(t), the slope of ln Phi: about -t far to the left, 0 far to the right."""
    return np.asarray(_ROOT_2_OVER_PI / erfcx(np.asarray(t, float) / -_ROOT_2))


def overshoot(t: ArrayLike) -> Array:
    """t + mills(t) > 0: the mean of a score N(t, 1) that is known to be positive."""
    return _ratios(np.asarray(t, float))[1]


def shrinkage(t: ArrayLike) -> Array:
    """mills(t) (t + mills(t)) in [0, 1]: the share of a score's variance that its sign takes."""
    return _shrinkage(*_ratios(np.asarray(t, float)))


def spread(t: ArrayLike) -> Array:
    """1 - shrinkage(t), with all its digits: the variance of a score N(t, 1) known positive."""
    return _ratios(np.asarray(t, float))[2]


def log_probability(q: ArrayLike, tau2: ArrayLike, s: ArrayLike) -> Array:
    """ln P(sign of a = s) for a ~ N(q, tau2)."""
    return np.asarray(log_ndtr(_standard(q, tau2, s)[0]))


def moments_given_sign(
    m: Array, Rw: Array, q: ArrayLike, tau2: ArrayLike, s: ArrayLike
) -> tuple[Array, Array]:
    """Mean of z ~ N(m, R) given the sign of a score, and by how much its covariance shrinks.

    Parameters
    ----------
    m, Rw : ndarray of shape (..., d)
        Mean of z, and its covariance with the score.
    q, tau2, s : array-like of shape (...)
        Mean and variance of the score, and its sign, 1 or -1.

    Returns
    -------
    mean : ndarray of shape (..., d)
        E[z | s].
    coefficient : ndarray of shape (...)
        Cov[z | s] = R - coefficient * Rw Rw'.

    Examples
    --------
    >>> mean, coefficient = moments_given_sign(np.zeros(2), np.array([1.0, 0.0]), 0.0, 2.0, 1)
    >>> mean.round(4), round(float(coefficient), 4)
    (array([0.5642, 0.    ]), 0.3183)
    """
    t, tau = _standard(q, tau2, s)
    slope, over, left = _ratios(t)
    shift = np.asarray(np.asarray(s) * slope / tau)
    coefficient = _shrinkage(slope, over, left) / np.asarray(tau2, float)
    return np.asarray(m + shift[..., None] * Rw), np.asarray(coefficient)


def utility_moments(q: ArrayLike, tau2: ArrayLike, s: ArrayLike) -> tuple[Array, Array, Array]:
    """Mean and variance of a score a ~ N(q, tau2) given its sign, and what is left of covariances.

    Parameters
    ----------
    q, tau2, s : array-like
        Mean and variance of the score, and its sign, 1 or -1; they broadcast.

    Returns
    -------
    mean, variance : ndarray
        E[a | s], which has the sign s, and Var[a | s].
    factor : ndarray
        Cov[a, z | s] = factor * Cov[a, z] for all z that are jointly normal with a.

    Examples
    --------
    >>> mean, variance, factor = utility_moments(np.array([0.0, -1e6]), 1.0, 1)
    >>> mean, variance
    (array([7.97884561e-01, 1.00000000e-06]), array([3.63380228e-01, 1.00000000e-12]))
    """
    t, tau = _standard(q, tau2, s)
    _, over, left = _ratios(t)
    return np.asarray(np.asarray(s) * tau * over), np.asarray(np.asarray(tau2) * left), left


def draw_given_sign(q: ArrayLike, tau2: ArrayLike, s: ArrayLike, uniforms: ArrayLike) -> Array:
    """Draws of a score a ~ N(q, tau2) given its sign, by inversion: nothing is rejected.

    Parameters
    ----------
    q, tau2, s : array-like
        Mean and variance of the score, and its sign, 1 or -1; they broadcast.
    uniforms : array-like
        Numbers in (0, 1): the probability that a score of sign ``s`` is nearer to zero than the
        draw.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> draw_given_sign([2.0, -40.0, 40.0], 1.0, [1, 1, -1], 0.5).round(6)
    array([ 2.028517,  0.017314, -0.017314])
    """
    t, tau = _standard(q, tau2, s)
    t, log_beyond = np.broadcast_arrays(t, np.log1p(-np.asarray(uniforms, float)))
    over = np.asarray(t - ndtri_exp(log_ndtr(t) + log_beyond))
    tail = t < TAIL
    over[tail] = _tail_quantile(-t[tail], -log_beyond[tail])
    # rounding can end just beyond zero
    return np.asarray(np.asarray(s) * tau * np.maximum(over, 0.0))


def _standard(q: ArrayLike, tau2: ArrayLike, s: ArrayLike) -> tuple[Array, Array]:
    """t = s q / tau, and tau."""
    tau = np.sqrt(np.asarray(tau2, float))
    return np.asarray(np.asarray(s) * np.asarray(q, float) / tau), np.asarray(tau)


def _ratios(t: Array) -> tuple[Array, Array, Array]:
    """mills, overshoot and spread, which cost about as much as one of them."""
    slope = mills(t)
    over = np.asarray(t + slope)
    left = np.asarray(1.0 - slope * over)
    tail = t < TAIL
    over[tail], left[tail] = _tail(-t[tail])
    return slope, over, left


def _shrinkage(slope: Array, over: Array, left: Array) -> Array:
    """Shrinkage, from the form that keeps it below one where it is nearly one."""
    return np.asarray(np.where(left < 0.5, 1.0 - left, slope * over))


def _tail(u: Array) -> tuple[Array, Array]:
    """Overshoot and spread at t = -u by Laplace's continued fraction.

    mills(-u) = u + 1 / (u + h) with h = 2 / (u + 3 / (u + ...)): nothing cancels.
    """
    h = np.zeros_like(u)
    for n in range(_TERMS, 1, -1):
        h = n / (u + h)
    over = 1.0 / (u + h)
    return over, over * (h - over)


def _tail_quantile(u: Array, exponential: Array) -> Array:
    """x with Phi(-u - x) / Phi(-u) = exp(-exponential), by Newton's method.

    ln Phi(-u - x) is -(u + x)^2 / 2 and a term that hardly varies: without it x would be the
    start. The function is convex and the start too large, so steps never pass the solution.
    """
    x = 2.0 * exponential / (u + np.sqrt(u * u + 2.0 * exponential))
    reference = erfcx(u / _ROOT_2)
    for _ in range(_NEWTON_STEPS):
        slow = np.log(erfcx((u + x) / _ROOT_2) / reference)
        x = x - (x * (u + 0.5 * x) - slow - exponential) / mills(-(u + x))
    return np.asarray(x)
