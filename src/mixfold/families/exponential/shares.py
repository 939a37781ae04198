"""Segments of shares that add to one: sums, floors and Dirichlet laws of each segment."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from mixfold.contracts import Array
from mixfold.families.exponential.conjugate_priors import LEAST_SHARE
from mixfold.math.dirichlet import fit_dirichlet, log_draw
from mixfold.math.floored_shares import shares_above_floor


def segment_sums(values: Array, starts: Array) -> Array:
    """(..., V) summed over segments that begin at ``starts`` (S,)."""
    if len(starts) == 1:
        return np.asarray(values.sum(axis=-1, keepdims=True))
    return np.asarray(np.add.reduceat(values, starts, axis=-1))


def over_segments(values: Array, starts: Array, width: int) -> Array:
    """(..., S) repeated over the entries (V = ``width``) of each segment, or broadcast to them."""
    if len(starts) == 1:
        return values
    return np.repeat(values, np.diff(starts, append=width), axis=-1)


def log_shares(amounts: Array, starts: Array) -> Array:
    """ln p that maximises sum_v amount_v ln p_v with every p_v >= 1e-12, per segment.

    NaN in a segment without any amount.
    """
    shares = shares_above_floor(amounts, starts, LEAST_SHARE)
    return np.asarray(np.log(shares, out=shares))


def normalised_logs(theta: Array, starts: Array) -> Array:
    """Any logs (K, V) as logs of shares above the floor."""
    if len(starts) == 1:
        top = theta.max(axis=-1, keepdims=True)
    else:
        top = np.maximum.reduceat(theta, starts, axis=-1)
    top = over_segments(top, starts, theta.shape[-1])
    return log_shares(np.exp(theta - top), starts)


def log_norm(a: Array, starts: Array) -> Array:
    """B: the sum of the log normalisers of the segments."""
    total = gammaln(segment_sums(a, starts)).sum(axis=-1)
    return np.asarray(gammaln(a).sum(axis=-1) - total)


def expected_logs(a: Array, starts: Array) -> Array:
    """E ln p."""
    total = psi(segment_sums(a, starts))
    return np.asarray(psi(a) - over_segments(total, starts, a.shape[-1]))


def draw_logs(a: Array, starts: Array, rng: np.random.Generator) -> Array:
    """ln p of one draw per leading index."""
    return np.concatenate([log_draw(part, rng) for part in np.split(a, starts[1:], axis=-1)], -1)


def fit_segments(mean_log: Array, start: Array, starts: Array) -> Array:
    """The concentration (V,) whose E ln p is ``mean_log``."""
    parts = zip(np.split(mean_log, starts[1:]), np.split(start, starts[1:]), strict=True)
    return np.concatenate([fit_dirichlet(part, first) for part, first in parts])
