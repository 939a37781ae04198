"""Draws and quantiles of counts of any size: large ones are normal to all digits."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import poisson

from mixfold.contracts import Array

# more has neither integers nor, in floats, a last digit that Poisson and normal draws differ in
_LARGE = 1e15


# of larger means scipy searches long for a quantile; from 1e12 on it ends in NaN or not at all
_SEARCHED = 1e6


def poisson_quantile(uniforms: Array, means: Array) -> Array:
    """Quantiles of Poisson counts as floats; of large means by the expansion in their roots."""
    means = np.asarray(means, float)
    large = means > _SEARCHED
    counts = np.asarray(poisson.ppf(uniforms, np.where(large, 1.0, means)))
    if not large.any():
        return counts
    z = ndtri(uniforms)
    # the next term is of order 1 / sqrt(mean), less than a thousandth of a count
    wide = np.round(means + np.sqrt(means) * z + (z**2 - 1) / 6)
    return np.where(large, wide, counts)


def draw_poisson(rates: Array, rng: np.random.Generator) -> Array:
    """Poisson counts as floats."""
    rates = np.asarray(rates, float)
    counts = rng.poisson(np.minimum(rates, _LARGE)).astype(float)
    large = rates > _LARGE
    if large.any():
        m = rates[large]
        counts[large] = np.round(m + np.sqrt(m) * rng.standard_normal(m.shape))
    return counts


def draw_multinomial(totals: Array, p: Array, rng: np.random.Generator) -> Array:
    """Multinomial counts (n, D) as floats, of ``totals`` (n,) with shares ``p`` (n, D)."""
    totals = np.asarray(totals, float)
    counts = rng.multinomial(np.minimum(totals, _LARGE).astype(np.int64), p).astype(float)
    large = totals > _LARGE
    if large.any():
        n, q = totals[large, None], p[large]
        # covariance n (diag(q) - q q')
        z = np.sqrt(q) * rng.standard_normal(q.shape)
        z -= q * z.sum(axis=1, keepdims=True)
        counts[large] = np.maximum(np.round(n * q + np.sqrt(n) * z), 0.0)
    return counts
