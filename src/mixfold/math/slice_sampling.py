"""Slice sampling of one real number (Neal, 2003)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
