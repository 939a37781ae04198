"""What the E step of factor components reads, made once per pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families.component import Trust
from mixfold.families.factor.records import FactorParams
from mixfold.families.gaussian import gaussian_trust
from mixfold.math.frame import Frame
from mixfold.math.low_rank import LowRank, low_rank
from mixfold.math.symmetric import LOG_2PI

# Mean over the columns of (size of an entry)^2 / noise up to which a quadratic form may be made of
# sums that cancel: eps times this is what a column loses.
AMPLIFICATION_LIMIT = 3e7
# and in float32
AMPLIFICATION_LIMIT_32 = 1e2


@dataclass(frozen=True, slots=True)
class Belief:
    """A posterior of loadings, means and noise as the E step reads it, in expectation.

    Expected ``means`` (K, D) and ``loadings`` (K, D, d); covariances ``doubt`` (K, 1 or D, d + 1,
    d + 1) of the rows (loadings, mean) in units of the noise; ``surplus`` (K, D), half of
    E ln tau - ln E tau of the precisions tau of the noise. The latents of a complete row are
    z = ``shift`` + ``root`` u with u those of the Gaussian that is read instead.
    """

    means: Array
    loadings: Array
    doubt: Array
    surplus: Array
    root: Array
    shift: Array

    def doubt_of_entries(self, k: int) -> Array:
        """Of component k, a matrix for each column."""
        size = (self.means.shape[1], *self.doubt.shape[2:])
        return np.broadcast_to(self.doubt[k], size)


@dataclass(frozen=True, slots=True)
class FactorReading:
    """``constant`` (K,) is the log density of a complete row without its quadratic form.

    ``isotropic``: the noise of a component is the same in all columns; ``has_missing``: statistics
    keep the entries of rows with missing ones apart; ``gap`` (K,) or 0 is what the log density of a
    complete row has beside that of the Gaussian, and ``belief`` the posterior that was read, if it
    is one; ``kept`` is what others made of it.
    """

    frame: Frame
    means: Array
    loadings: Array
    noise: Array
    parts: LowRank
    constant: Array
    amplification: float
    isotropic: bool
    has_missing: bool
    gap: Array | float = 0.0
    belief: Belief | None = None
    kept: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """K, D, d."""
        return self.loadings.shape

    def arithmetic(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """float32 data keep float32 unless it would cost too many digits."""
        single = dtype == np.float32 and self.amplification <= AMPLIFICATION_LIMIT_32
        return np.dtype(np.float32 if single else np.float64)


def read(
    params: FactorParams,
    isotropic: bool,
    has_missing: bool,
    gap: Array | float = 0.0,
    belief: Belief | None = None,
) -> FactorReading:
    parts = low_rank(params.loadings, params.noise)
    size = params.n_features
    constant = gap - 0.5 * (size * LOG_2PI + parts.log_det) - params.frame.log_scale.sum()
    variance = params.noise + (params.loadings**2).sum(axis=2)
    reach = (np.abs(params.means) + np.sqrt(variance)) ** 2 / params.noise
    worst = float(reach.mean(axis=1).max())
    return FactorReading(
        params.frame, params.means, params.loadings, params.noise, parts, constant, worst,
        isotropic, has_missing, gap, belief,
    )  # fmt: skip


def in_data_units(reading: FactorReading) -> FactorReading:
    """The same components about zero, in the units of the data: sparse rows stay as they are."""
    if "data" not in reading.kept:
        scale = reading.frame.scale
        frame = Frame(np.zeros_like(scale), np.ones_like(scale))
        means = reading.frame.leave(reading.means)
        loadings, noise = reading.loadings * scale[:, None], reading.noise * scale**2
        params = FactorParams(frame, means, loadings, noise)
        reading.kept["data"] = read(params, reading.isotropic, reading.has_missing, reading.gap)
    other: FactorReading = reading.kept["data"]
    return other


def factor_trust(reading: FactorReading, dtype: np.dtype[Any]) -> Trust:
    """How far from all components the scores of rows can be relied on."""
    K, size, _ = reading.shape
    terms = np.full(K, size * reading.amplification)
    single = reading.arithmetic(dtype) == np.float32
    return gaussian_trust(reading.constant, terms, size, single)
