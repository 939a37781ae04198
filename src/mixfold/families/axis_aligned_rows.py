"""What the E step of diagonal covariances reads, and its sums over sparse rows as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families.component import Trust
from mixfold.families.gaussian import AMPLIFICATION_LIMIT, Moments
from mixfold.math.frame import Frame


@dataclass(frozen=True, slots=True)
class AxisReading:
    """``constant[k, d]``: log density of column d at the mean; ``precision`` its curvature."""

    frame: Frame
    means: Array
    precision: Array
    constant: Array
    amplification: Array
    # how far scores can be relied on, by type of the rows: the same for every block of a pass
    trusts: dict[Any, Trust] = field(default_factory=dict, init=False, compare=False)


def safe_about_zero(reading: AxisReading) -> bool:
    """Whether sums about zero, which is where sparse rows are summed, keep enough digits."""
    deviation = reading.frame.scale / np.sqrt(reading.precision)
    reach = (np.abs(reading.frame.leave(reading.means)) + deviation) / deviation
    return bool(((reach**2).sum(axis=1) <= AMPLIFICATION_LIMIT).all())


def sparse_scores(X: Any, reading: AxisReading) -> Array:
    """Log densities of CSR rows from their stored entries alone."""
    means = reading.frame.leave(reading.means)
    precision = reading.precision / reading.frame.scale**2
    linear = precision * means
    offset = (reading.constant - 0.5 * linear * means).sum(axis=1)
    return np.asarray(X @ linear.T - 0.5 * (X.multiply(X) @ precision.T) + offset)


def sparse_moments(X: Any, resp: Array, origin: Array, reading: AxisReading) -> Moments:
    """Moments about ``origin`` (data coordinates) of CSR rows, centred after the sums."""
    first = np.asarray((X.T @ resp).T)
    second = np.asarray((X.multiply(X).T @ resp).T)
    count = np.repeat(resp.sum(axis=0)[:, None], first.shape[1], axis=1)
    second += origin * (count * origin - 2 * first)
    first -= count * origin
    scale = reading.frame.scale
    return Moments(count, first / scale, second / scale**2, reading.frame.enter(origin))
