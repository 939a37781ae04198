"""The gamma law in shape ``a`` and rate ``b``: density a power times exp(-b x), mean a / b."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, polygamma, psi, xlogy

from mixfold.contracts import Array

# ln(mean) - mean(ln) below this is rounding: ln a - psi(a) has no digits left for such shapes
LEAST_GAP = 1e-12
_MAX_STEPS = 100


def log_density(x: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """ln of the density at x > 0."""
    x, a, b = np.asarray(x, float), np.asarray(a, float), np.asarray(b, float)
    return np.asarray(xlogy(a, b) - gammaln(a) + xlogy(a - 1, x) - b * x)


def expected_log(a: ArrayLike, b: ArrayLike) -> Array:
    """E ln x."""
    return np.asarray(psi(a) - np.log(b))


def gamma_kl(a: ArrayLike, b: ArrayLike, a_0: ArrayLike, b_0: ArrayLike) -> Array:
    """Divergence of gamma(a, b) from gamma(a_0, b_0), of the shape of the arguments."""
    a, b, a_0, b_0 = (np.asarray(v, float) for v in (a, b, a_0, b_0))
    ratio = b_0 / b
    return np.asarray(
        (a - a_0) * psi(a) - gammaln(a) + gammaln(a_0) - a_0 * np.log(ratio) + a * (ratio - 1)
    )


def log_gamma_draw(a: ArrayLike, rng: np.random.Generator) -> Array:
    """ln of one draw of gamma(a, 1) per entry of ``a``, exact however small ``a`` is.

    A draw of a tiny shape is mostly below the least positive float; its logarithm is not:
    ln G_a = ln G_{a+1} + ln U / a.
    """
    a = np.asarray(a, float)
    return np.asarray(
        np.log(rng.standard_gamma(a + 1, size=a.shape)) - rng.standard_exponential(a.shape) / a
    )


def fit_gamma(mean: ArrayLike, mean_log: ArrayLike) -> tuple[Array, Array]:
    """Shape and rate of the gamma law with the given E x and E ln x.

    They maximise a * mean_log - b * mean - lnG(a) + a ln b: the update of a gamma prior from the
    mean over components of E x and E ln x. Newton's method in 1 / a.

    Parameters
    ----------
    mean, mean_log : array-like
        Of one shape. ln(mean) must exceed mean_log, as it does for anything that varies; a
        difference of less than 1e-12 counts as 1e-12.

    Returns
    -------
    a, b : ndarray

    Raises
    ------
    ValueError
        If a mean is not positive, or ln(mean) < mean_log.

    Examples
    --------
    >>> from scipy.special import psi
    >>> a, b = fit_gamma(3 / 2, psi(3) - np.log(2))
    >>> round(float(a), 10), round(float(b), 10)
    (3.0, 2.0)
    """
    mean, mean_log = np.asarray(mean, float), np.asarray(mean_log, float)
    gap = _gap(mean, mean_log)
    a = 0.5 / gap
    for _ in range(_MAX_STEPS):
        slope = a * a * (1 / a - polygamma(1, a))
        change = (np.log(a) - psi(a) - gap) / slope
        fresh = 1 / (1 / a + change)
        settled = np.abs(fresh - a) <= 1e-13 * a
        a = fresh
        if np.all(settled):
            break
    return np.asarray(a), np.asarray(a / mean)


def _gap(mean: Array, mean_log: Array) -> Any:
    if not np.all(mean > 0):
        raise ValueError(
            f"mean must be positive: no gamma law has the mean {mean.min()}. Check the statistics."
        )
    gap = np.log(mean) - mean_log
    # what rounding can do to a difference of logarithms
    slack = 1e-10 * (1 + np.abs(mean_log))
    if not np.all(gap >= -slack):
        raise ValueError(
            "mean_log must not exceed ln(mean): no law has such moments, got ln(mean) - mean_log "
            f"= {gap.min()}. Check the statistics."
        )
    return np.maximum(gap, LEAST_GAP)
