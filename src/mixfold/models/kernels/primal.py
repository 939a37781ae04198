"""Principal axes in coordinates of the space of features: a covariance instead of a kernel matrix.

Coordinates are the rows themselves (linear kernel) or products with landmarks. What a row has
beyond the span of the landmarks is seen by k(x, x) alone: it belongs to the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Stats, record
from mixfold.models.factors.spectral import Spectrum
from mixfold.models.factors.spectral_sums import SecondMoments, complete_rows
from mixfold.models.kernels.feature_gaussian import FeatureGaussian, noise_variance

# variances below this share of the whole are rounding
NEGLIGIBLE = 1e-12


@record
@dataclass(frozen=True, slots=True)
class PrimalAxes(FeatureGaussian):
    """Eigenvalues (d,) of the kernel matrix, axes (size, d) and mean (size,) of coordinates.

    The other fields are those of :class:`mixfold.models.kernels.axes.KernelAxes`.
    """

    values: Array
    vectors: Array
    mean: Array
    trace: float
    n_rows: float
    dimension: int
    noise: float

    def scores(self, F: Any) -> Array:
        """Of coordinates F (n, size)."""
        if sparse.issparse(F):
            return np.asarray(F @ self.vectors - self.mean @ self.vectors)
        return np.asarray((F - self.mean) @ self.vectors)

    def squares(self, F: Any, diagonal: Array) -> Array:
        """|phi(x) - mean|^2, of coordinates F and k(x, x)."""
        if sparse.issparse(F):
            return np.asarray(np.maximum(diagonal - 2 * (F @ self.mean) + self.mean @ self.mean, 0))
        beyond = np.maximum(diagonal - np.einsum("ij,ij->i", F, F), 0.0)
        about = F - self.mean
        return np.asarray(np.einsum("ij,ij->i", about, about) + beyond)


@record
@dataclass(frozen=True)
class FeatureMoments(Stats):
    """Squares and products of coordinates, and the sum of k(x, x) (weighted)."""

    moments: SecondMoments
    diagonal: float

    @property
    def weight(self) -> float:
        return self.moments.weight


@dataclass(frozen=True)
class DiagonalSum(Stats):
    """The sum of k(x, x), weighted."""

    total: float


@dataclass(frozen=True, slots=True)
class SumDiagonal:
    """The task of a pass over rows; picklable."""

    diagonal: Any

    def __call__(self, block: Block) -> DiagonalSum:
        complete_rows(block)
        return DiagonalSum(float(block.weights() @ self.diagonal(block)))


def primal_axes(
    spectrum: Spectrum, diagonal: float | None, dimension: int | None, noise: float | None = None
) -> PrimalAxes:
    """What the spectrum of the coordinates says; axes without variance are left out.

    Parameters
    ----------
    spectrum : Spectrum
        Of the coordinates.
    diagonal : float or None
        The mean of k(x, x); None if the coordinates are all that there is.
    dimension : int or None
        Of the space of features; None if it has no bound.
    noise : float, optional
        Variance of the noise; None takes what the axes leave.
    """
    n, total = spectrum.n_rows, spectrum.total_variance
    if diagonal is not None:
        total = max(total, diagonal - float(spectrum.mean @ spectrum.mean))
    size = max(float(spectrum.mean @ spectrum.mean), total)
    kept = spectrum.values > max(NEGLIGIBLE * total, 1e-15 * size)
    values = n * spectrum.values[kept]
    space = max(n - 1, len(values), 1) if dimension is None else dimension
    law = noise_variance(values, n * total, n, space) if noise is None else float(noise)
    return PrimalAxes(values, spectrum.vectors[:, kept], spectrum.mean, n * total, n, space, law)
