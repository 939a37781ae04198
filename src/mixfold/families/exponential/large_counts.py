"""Draws of counts of any size: beyond what integers hold they are normal to all digits."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array

# more has neither integers nor, in floats, a last digit that Poisson and normal draws differ in
_LARGE = 1e15


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
