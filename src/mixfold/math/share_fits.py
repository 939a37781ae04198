"""Dirichlet laws by their mean logarithms, with a largest total of the concentration.

The log likelihood per row, sum_v a_v t_v - ln B(a), is concave in a. For a fixed total s its
maximum is a_v = psi^-1(t_v + l) with l such that they add to s, and as a function of s that
maximum is concave, too: it still rises at s as long as sum_v psi^-1(t_v + psi(s)) > s. So a root
of one number gives the best law, and where it would be beyond the bound the best one under it.

References
----------
T. P. Minka (2000). Estimating a Dirichlet distribution. Technical report, MIT.
"""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma, psi

from mixfold.contracts import Array
from mixfold.math.roots import decreasing_root

# totals of a concentration: a mean logarithm of a float is above -750, and a_v above 1 / 750
LEAST_TOTAL = 1e-8
_STEPS = 6


def inverse_psi(y: Array) -> Array:
    """x > 0 with psi(x) = y, by Newton's method from Minka's start, which never overshoots twice.

    Examples
    --------
    >>> inverse_psi(psi(np.array([1e-3, 0.7, 40.0]))).round(10)
    array([1.e-03, 7.e-01, 4.e+01])
    """
    y = np.asarray(y, float)
    with np.errstate(divide="ignore", over="ignore"):
        x = np.where(y >= -2.22, np.exp(y) + 0.5, -1 / (y - psi(1.0)))
    for _ in range(_STEPS):
        x = x - (psi(x) - y) / polygamma(1, x)
    return np.asarray(x)


def best_concentration(mean_log: Array, most: float) -> tuple[Array, Array]:
    """The Dirichlet law of the greatest likelihood with a total of at most ``most``.

    Parameters
    ----------
    mean_log : ndarray of shape (..., V)
        Mean ln of each share. Shares that never vary have no law without the bound.
    most : float

    Returns
    -------
    a : ndarray of shape (..., V)
    bounded : bool ndarray of the leading shape
        Where the total is ``most``.

    Examples
    --------
    >>> from mixfold.math.dirichlet import expected_log
    >>> a, bounded = best_concentration(expected_log([0.5, 2.0, 4.0]), 1e6)
    >>> a.round(8), bool(bounded)
    (array([0.5, 2. , 4. ]), False)
    """

    def excess(log_total: Array) -> tuple[Array, Array]:
        total = np.exp(log_total)
        a = inverse_psi(mean_log + psi(total)[..., None])
        added = a.sum(axis=-1)
        slope = polygamma(1, total) * total * (1 / polygamma(1, a)).sum(axis=-1) / added - 1
        return np.log(added) - log_total, slope

    lead = mean_log.shape[:-1]
    high = float(np.log(most))
    log_total = decreasing_root(excess, np.zeros(lead), float(np.log(LEAST_TOTAL)), high)
    bounded = log_total >= high
    a = inverse_psi(mean_log + psi(np.exp(log_total))[..., None])
    if bounded.any():
        a[bounded] = _with_total(mean_log[bounded], most)
    return a, bounded


def _with_total(mean_log: Array, total: float) -> Array:
    """a_v = psi^-1(t_v + l) that add to ``total``."""
    size = mean_log.shape[-1]
    # one share has it all, or all have the same part of it
    top = mean_log.max(axis=-1)
    low, high = psi(total / size) - top, psi(total) - top

    def lacking(part: Array) -> tuple[Array, Array]:
        a = inverse_psi(mean_log + (low + part * (high - low))[..., None])
        slope = -(high - low) * (1 / polygamma(1, a)).sum(axis=-1) / total
        return 1 - a.sum(axis=-1) / total, slope

    part = decreasing_root(lacking, np.full(top.shape, 0.5), 0.0, 1.0)
    a = inverse_psi(mean_log + (low + part * (high - low))[..., None])
    return np.asarray(a * (total / a.sum(axis=-1, keepdims=True)))
