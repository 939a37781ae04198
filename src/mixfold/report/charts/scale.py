"""Scales of charts: values to positions, with ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mixfold.contracts import Array

_SMALLEST_GAP = 1e-300  # the steps below it are no powers of ten any more


@dataclass(frozen=True, slots=True)
class Scale:
    """Values ``low`` to ``high`` at ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 2)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers within the values."""
        return ticks(self.low, self.high, most)


def scale_of(values: Array, start: float, end: float, room: float = 0.04) -> Scale:
    """A scale that shows all finite values, with some room beside them."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # the same, but for rounding
        beside = abs(low) * 0.05 or 0.5
        low, high = low - beside, high + beside
    margin = room * (high - low)
    return Scale(low - margin, high + margin, start, end)


def inner_scale(values: Array, start: float, end: float) -> Scale:
    """A scale that single values far out do not stretch: they lie beyond its ends."""
    values = np.asarray(values, float)
    known = values[np.isfinite(values)]
    if not known.size:
        return scale_of(known, start, end)
    low, high = np.quantile(known, [0.005, 0.995])
    room = 1.5 * (high - low) or np.inf
    return scale_of(known[(known >= low - room) & (known <= high + room)], start, end)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most so many round numbers between two values; none if 12 digits do not tell them apart.

    Examples
    --------
    >>> ticks(0, 10, 6), ticks(-0.13, 0.31, 5)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [-0.1, 0.0, 0.1, 0.2, 0.3])
    """
    gap = (high - low) / most
    if gap <= max(1e-11 * max(abs(low), abs(high)), _SMALLEST_GAP):
        return []
    power = 10.0 ** math.floor(math.log10(gap))
    for step in (power * s for s in (1, 2, 5, 10, 20)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def tick_texts(values: list[float]) -> list[str]:
    """Ticks as texts that tell them apart, with no more digits than that takes."""
    if not values:
        return []
    size = max(abs(v) for v in values)
    if size and (size >= 1e7 or size < 1e-4):
        return [f"{v:.3g}".replace("-", "\u2212") for v in values]
    gap = min((abs(b - a) for a, b in pairwise(values)), default=size or 1.0)
    places = max(0, -math.floor(math.log10(gap) + 1e-9))
    return [f"{v:,.{places}f}".replace("-", "\u2212") for v in values]
