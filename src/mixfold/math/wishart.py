"""The Wishart law of precisions: scale W, degrees of freedom nu > D - 1, mean nu W."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import multigammaln, psi

from mixfold.contracts import Array
from mixfold.math.gamma_law import log_gamma_draw

# the degrees of freedom are looked for in D - 1 + [LEAST, MOST]
LEAST, MOST = 1e-10, 1e12
_BISECTIONS = 64


def log_norm(inverse_scale_logdet: ArrayLike, nu: ArrayLike, n_features: int) -> Array:
    """ln of the integral of |L|^((nu - D - 1) / 2) exp(-tr(W^-1 L) / 2) over precisions L.

    ``inverse_scale_logdet`` is ln|W^-1|.
    """
    half = np.asarray(nu, float) / 2
    return np.asarray(
        -half * np.asarray(inverse_scale_logdet)
        + half * n_features * np.log(2.0)
        + multigammaln(half, n_features)
    )


def expected_log_det(scale_logdet: ArrayLike, nu: ArrayLike, n_features: int) -> Array:
    """E ln|L|, of the shape of ln|W| and nu."""
    return np.asarray(_psi_sum(nu, n_features) + n_features * np.log(2.0) + scale_logdet)


def wishart_kl(
    scale_logdet: ArrayLike,
    nu: ArrayLike,
    scale_logdet_0: ArrayLike,
    nu_0: ArrayLike,
    trace: ArrayLike,
    n_features: int,
) -> Array:
    """Divergence of Wishart(W, nu) from Wishart(W_0, nu_0).

    ``scale_logdet`` is ln|W|, ``scale_logdet_0`` ln|W_0| and ``trace`` tr(W_0^-1 W).
    """
    scale_logdet, scale_logdet_0 = np.asarray(scale_logdet), np.asarray(scale_logdet_0)
    nu, nu_0 = np.asarray(nu, float), np.asarray(nu_0, float)
    return np.asarray(
        0.5 * (nu - nu_0) * expected_log_det(scale_logdet, nu, n_features)
        + 0.5 * nu * (np.asarray(trace) - n_features)
        - log_norm(-scale_logdet, nu, n_features)
        + log_norm(-scale_logdet_0, nu_0, n_features)
    )


def draw_factor(factors: Array, nu: ArrayLike, rng: np.random.Generator) -> Array:
    """Factors U with U U' ~ Wishart(F F', nu), one for each F of (..., D, D), by Bartlett.

    An upper triangular F (``inverse_factor`` of the lower factor of W^-1) gives an upper
    triangular U: U' (x - m) is white under the precision drawn. ``nu`` is a number or has the
    shape of the leading axes.
    """
    size = factors.shape[-1]
    diagonal = np.arange(size)
    degrees = np.broadcast_to(np.asarray(nu, float), factors.shape[:-2])[..., None]
    # Bartlett's lower triangle with rows and columns reversed: as good, and upper
    bartlett = np.triu(rng.standard_normal(factors.shape), 1)
    logs = log_gamma_draw((degrees - (size - 1 - diagonal)) / 2, rng)
    bartlett[..., diagonal, diagonal] = np.sqrt(2.0) * np.exp(logs / 2)
    return np.asarray(factors @ bartlett)


def fit_degrees(mean_logdet: ArrayLike, logdet_mean: ArrayLike, n_features: int) -> Array:
    """The degrees of freedom nu of the Wishart law with the given E ln|L| and ln|E L|.

    With P = E L the scale of that law is P / nu: the update of a Wishart prior from means over
    components.

    Parameters
    ----------
    mean_logdet : array-like
        Mean over components of E ln|L|.
    logdet_mean : array-like
        ln|P| for the mean P over components of E L; must exceed ``mean_logdet``. If they differ
        by rounding only, the answer is D - 1 + 1e12: precisions that do not vary.

    Returns
    -------
    ndarray of the shape of the arguments

    Raises
    ------
    ValueError
        If ``mean_logdet`` exceeds ``logdet_mean`` by more than rounding.

    Examples
    --------
    >>> log_det = expected_log_det(0.0, 7.5, 3)
    >>> round(float(fit_degrees(log_det, 3 * np.log(7.5), 3)), 8)
    7.5
    """
    mean_logdet, logdet_mean = np.asarray(mean_logdet, float), np.asarray(logdet_mean, float)
    target = mean_logdet - logdet_mean
    if not np.all(target <= 1e-10 * (1 + np.abs(logdet_mean))):
        raise ValueError(
            "mean_logdet must not exceed logdet_mean: no law of precisions has such moments, got "
            f"a difference of {target.max()}. Check the statistics."
        )
    # ln(nu - D + 1) by bisection: the function rises from -inf to 0
    low = np.full(target.shape, np.log(LEAST))
    high = np.full(target.shape, np.log(MOST))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        nu = n_features - 1 + np.exp(middle)
        value = _psi_sum(nu, n_features) - n_features * np.log(nu / 2)
        low, high = np.where(value < target, middle, low), np.where(value < target, high, middle)
    return np.asarray(n_features - 1 + np.exp((low + high) / 2))


def _psi_sum(nu: ArrayLike, n_features: int) -> Array:
    halves = (np.asarray(nu, float)[..., None] - np.arange(n_features)) / 2
    return np.asarray(psi(halves).sum(axis=-1))
