"""Roots of many decreasing functions of one number each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixfold.contracts import Array


def decreasing_root(
    function: Callable[[Array], tuple[Array, Array]], start: Array, low: float, high: float
) -> Array:
    """Where decreasing functions (value and slope) of one number each are zero, or the nearer end.

    Newton's steps inside a bracket, or half of it.

    Examples
    --------
    >>> decreasing_root(lambda t: (np.array([4.0, 90.0]) - t**2, -2 * t), np.ones(2), 0.0, 9.0)
    array([2., 9.])
    """
    below, above = np.full(start.shape, low), np.full(start.shape, high)
    t = np.clip(start, low, high)
    beyond = function(above)[0] >= 0
    for _ in range(200):
        value, slope = function(t)
        below, above = np.where(value >= 0, t, below), np.where(value >= 0, above, t)
        with np.errstate(divide="ignore", invalid="ignore"):
            fresh = t - value / slope
        inside = (fresh > below) & (fresh < above) & (slope < 0)
        fresh = np.where(inside, fresh, 0.5 * (below + above))
        moved, t = np.abs(fresh - t)[~beyond], fresh
        if not moved.size or moved.max() < 1e-13 * max(1.0, high):
            break
    return np.where(beyond, high, t)
