"""The Dirichlet law over the last axis: normaliser, expectations, draws, fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, polygamma, psi

from mixfold.contracts import Array
from mixfold.math.gamma_law import log_gamma_draw

_MAX_STEPS = 500
_MAX_HALVINGS = 60


def log_beta(a: ArrayLike, axis: int = -1) -> Array:
    """sum lnG(a_v) - lnG(sum a_v), the log normaliser."""
    a = np.asarray(a, float)
    return np.asarray(gammaln(a).sum(axis=axis) - gammaln(a.sum(axis=axis)))


def expected_log(a: ArrayLike) -> Array:
    """E ln p_v = psi(a_v) - psi(sum a)."""
    a = np.asarray(a, float)
    return np.asarray(psi(a) - psi(a.sum(axis=-1, keepdims=True)))


def dirichlet_kl(a: ArrayLike, b: ArrayLike) -> Array:
    """Divergence of Dirichlet(a) from Dirichlet(b), of the shape of the leading axes."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return np.asarray(log_beta(b) - log_beta(a) + ((a - b) * expected_log(a)).sum(axis=-1))


def log_draw(a: ArrayLike, rng: np.random.Generator) -> Array:
    """ln of one Dirichlet draw per leading index, finite however small ``a`` is."""
    logs = log_gamma_draw(a, rng)
    logs -= logs.max(axis=-1, keepdims=True)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=-1, keepdims=True)))


def log_beta_draw(a: ArrayLike, b: ArrayLike, rng: np.random.Generator) -> tuple[Array, Array]:
    """ln V and ln(1 - V) of one draw V of Beta(a, b) per entry, each to full precision."""
    odds = log_gamma_draw(a, rng) - log_gamma_draw(b, rng)
    return -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)


def fit_dirichlet(mean_log: ArrayLike, start: ArrayLike) -> Array:
    """The concentration ``a`` whose E ln p is ``mean_log``: the update of a Dirichlet prior.

    It maximises the concave sum_v a_v mean_log_v - log_beta(a), by Newton's method (the Hessian
    is diagonal plus rank one) with the step halved until it stays positive and climbs.

    Parameters
    ----------
    mean_log : array-like of shape (..., V)
        Mean over components of E ln p_v. exp(mean_log) must sum to less than one.
    start : array-like, broadcast to the shape of ``mean_log``
        Positive.

    Returns
    -------
    ndarray of shape (..., V)

    Raises
    ------
    ValueError
        If the maximum does not exist, or ``start`` is not positive.

    Examples
    --------
    >>> fit_dirichlet(expected_log([0.5, 2.0, 4.0]), np.ones(3)).round(10)
    array([0.5, 2. , 4. ])
    """
    mean_log = np.asarray(mean_log, float)
    a = np.array(np.broadcast_to(np.asarray(start, float), mean_log.shape))
    _check_fit(mean_log, a)
    for _ in range(_MAX_STEPS):
        step, rise = _newton(a, mean_log)
        fresh = _halve_until_higher(a, step, rise, mean_log)
        settled = np.abs(fresh - a) <= 1e-12 * a
        a = fresh
        if settled.all():
            break
    return a


def _check_fit(mean_log: Array, start: Array) -> None:
    if not np.all(start > 0):
        raise ValueError(f"start must be positive, got {start.min()}. Start at ones.")
    total = np.exp(mean_log).sum(axis=-1)
    if not np.all(total < 1):
        raise ValueError(
            "mean_log is not that of a Dirichlet law: exp(mean_log) must sum to less than one, "
            f"got {np.max(total)}. Proportions that do not vary have no such law: keep the prior "
            "fixed."
        )


def _newton(a: Array, mean_log: Array) -> tuple[Array, Array]:
    """The Newton step, and the slope of the objective along it."""
    total = a.sum(axis=-1, keepdims=True)
    gradient = psi(total) - psi(a) + mean_log
    curve = -polygamma(1, a)
    shift = (gradient / curve).sum(axis=-1, keepdims=True) / (
        1 / polygamma(1, total) + (1 / curve).sum(axis=-1, keepdims=True)
    )
    step = (shift - gradient) / curve
    return step, (gradient * step).sum(axis=-1, keepdims=True)


def _halve_until_higher(a: Array, step: Array, rise: Array, mean_log: Array) -> Array:
    """``a`` moved along ``step``, halved row by row until positive and no lower."""

    def objective(at: Array) -> Array:
        return np.asarray(((at * mean_log).sum(axis=-1) - log_beta(at))[..., None])

    before = objective(a)
    size = np.ones_like(before)
    for _ in range(_MAX_HALVINGS):
        trial = a + size * step
        positive = (trial > 0).all(axis=-1, keepdims=True)
        after = objective(np.where(positive, trial, a))
        # a Newton step predicts a rise of rise / 2; ask for a little of it, up to rounding
        good = positive & (after >= before + 1e-4 * size * rise - 1e-13 * (1 + np.abs(before)))
        if good.all():
            return np.asarray(trial)
        size = np.where(good, size, size / 2)
    return np.where(good, trial, a)
