"""Slice sampling of one real number, or of many that are independent (Neal, 2003)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixfold.contracts import Array

_MAX_STEPS = 1000


def slice_sample(
    log_density: Callable[[float], float],
    start: float,
    rng: np.random.Generator,
    width: float = 1.0,
) -> float:
    """One transition from ``start`` that leaves exp(log_density) unchanged.

    Stepping out from an interval of ``width`` placed at random, then shrinking towards
    ``start``. ``log_density`` need not be normalised and must fall off on both sides.

    Raises
    ------
    ValueError
        If the density at ``start`` is zero or not a number, or does not fall off.

    References
    ----------
    R. M. Neal (2003). Slice sampling. Annals of Statistics 31, 705-767.
    """
    level = log_density(start) - rng.standard_exponential()
    if not np.isfinite(level):
        raise ValueError(
            f"log_density must be finite at the start {start!r}, got {level}. Start inside the "
            "support."
        )
    low = start - width * rng.random()
    low, high = (
        _step_out(log_density, low, -width, level),
        _step_out(log_density, low + width, width, level),
    )
    while True:
        fresh = low + (high - low) * rng.random()
        # equality: the interval has shrunk to the start itself, by rounding
        if log_density(fresh) >= level or fresh == start:
            return float(fresh)
        low, high = (fresh, high) if fresh < start else (low, fresh)


def _step_out(
    log_density: Callable[[float], float], edge: float, step: float, level: float
) -> float:
    for _ in range(_MAX_STEPS):
        if not log_density(edge) >= level:
            return edge
        edge += step
    raise ValueError(
        f"log_density does not fall off within {_MAX_STEPS} steps of {abs(step)}, the last at "
        f"{edge}. It must, or the width must be larger."
    )


def slice_sample_each(
    log_density: Callable[[Array], Array],
    start: Array,
    rng: np.random.Generator,
    width: float = 1.0,
) -> Array:
    """``slice_sample`` of numbers that are independent of each other, all at the same time.

    Parameters
    ----------
    log_density : callable
        Of an array of the shape of ``start``, () too: the log density of each number.
    start : array
    rng : Generator
    width : float
    """
    start = np.asarray(start, dtype=float)
    level = log_density(start) - rng.standard_exponential(start.shape)
    if not np.isfinite(level).all():
        raise ValueError(
            f"log_density must be finite at the start, got {level}. Start inside the support."
        )
    low = start - width * rng.random(start.shape)
    high = low + width
    low = _step_out_each(log_density, low, -width, level)
    high = _step_out_each(log_density, high, width, level)
    found, open_ = start.copy(), np.ones(start.shape, dtype=bool)
    while open_.any():
        fresh = np.where(open_, low + (high - low) * rng.random(start.shape), found)
        # equality: the interval has shrunk to the start itself, by rounding
        done = open_ & ((log_density(fresh) >= level) | (fresh == start))
        found = np.where(done, fresh, found)
        open_ = open_ & ~done
        above = fresh > start
        high, low = np.where(above, fresh, high), np.where(above, low, fresh)
    return np.asarray(found)


def _step_out_each(
    log_density: Callable[[Array], Array], edge: Array, step: float, level: Array
) -> Array:
    for _ in range(_MAX_STEPS):
        inside = log_density(edge) >= level
        if not inside.any():
            return edge
        edge = np.where(inside, edge + step, edge)
    raise ValueError(
        f"log_density does not fall off within {_MAX_STEPS} steps of {abs(step)}. It must, or the "
        "width must be larger."
    )
