"""Parameters, statistics, priors and posteriors of families that are linear in the entries.

They are in data coordinates (a frame of origin 0 and scale 1): counts have an origin and a unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block, Positive, Stats, record
from mixfold.math.frame import Frame


@record
@dataclass(frozen=True, slots=True)
class LinearParams:
    """K components by their unconstrained coordinates ``theta`` (log odds, log rates, log shares).

    ``means`` (K, D) is E[x | k]. ``size`` (D,) is what the family is told of each column: trials,
    exposure, shape, or number of categories; it goes with the columns when some are dropped.
    """

    frame: Frame
    means: Array
    theta: Array
    size: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])


@record
@dataclass(frozen=True)
class LinearMoments(Stats):
    """Responsibility-weighted sums over observed entries.

    ``count`` is (K, D), or (K, 1) when every column was observed in every row. ``first`` is R'X,
    and ``base`` the sum of log h(x), which no component can change.
    """

    count: Array
    first: Array
    base: float


@record
@dataclass(frozen=True, slots=True)
class PairPrior:
    """Beta(a, b), or gamma of shape a and rate b, of each column (D,)."""

    a: Array
    b: Array
    size: Array


@record
@dataclass(frozen=True, slots=True)
class PairPosterior:
    """Beta or gamma laws (K, D); ``means`` are those of the point estimate."""

    frame: Frame
    means: Array
    a: Positive
    b: Positive
    size: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])


@record
@dataclass(frozen=True, slots=True)
class SharesPrior:
    """Dirichlet(a) of the shares (V,) of a component; ``total`` is the usual sum of a row."""

    a: Array
    size: Array
    total: float


@record
@dataclass(frozen=True, slots=True)
class SharesPosterior:
    """Dirichlet laws (K, V); ``means`` (K, D) are those of the point estimate."""

    frame: Frame
    means: Array
    a: Array
    size: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])


@dataclass(frozen=True, slots=True)
class LinearReading:
    """log p(x | k) = log h(x) + sum over observed d of x_d slope_kd + offset_kd.

    ``slope`` is in Fortran order; ``params`` are the point estimate that goes with the reading.
    """

    frame: Frame
    slope: Array
    offset: Array
    params: LinearParams


@dataclass(frozen=True, slots=True)
class LinearWork:
    """The rows of a tile as they are and as the sums take them, and log h (None: zero)."""

    tile: Block
    rows: Block
    base: Array | None


def weighted_base(base: Array | None, weight: Array | None) -> float:
    """sum_n w_n log h(x_n); a row without weight may hold anything."""
    if base is None:
        return 0.0
    if weight is None:
        return float(base.sum())
    used = weight > 0
    return float(weight[used] @ base[used])


def zero_filled(X: Array) -> tuple[Array, Array]:
    """Rows in float64 with zeros for missing entries, and where they were observed."""
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0).astype(np.float64, copy=False), seen
