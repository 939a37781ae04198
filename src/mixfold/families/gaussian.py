"""What all Gaussian families share: parameters, statistics, the contract with a mixture.

Everything is in the coordinates of a ``Frame`` until it is published.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Metric, Stats, constant, record
from mixfold.math.frame import Frame, frame_of
from mixfold.math.lifted import Sums

LOG_2PI = float(np.log(2 * np.pi))
# a score that sums terms of this size in float64 has about 1e-10 left of absolute error
AMPLIFICATION_LIMIT = 1e6
# the same for float32, where 1e-4 suffices: beyond it the arithmetic is float64
AMPLIFICATION_LIMIT_32 = 1e3


@record
@dataclass(frozen=True, slots=True)
class GaussianParams:
    """K Gaussians in frame coordinates; the shape of ``scatter`` is the family's own."""

    frame: Frame
    means: Array
    scatter: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])


@record
@dataclass(frozen=True)
class Moments(Stats):
    """Responsibility-weighted moments about ``origin`` (K, D).

    ``count`` is (K, D): with missing entries, columns of diagonal families count apart.
    ``second`` is packed upper triangles (full: (K, Q), tied: (Q,)) or squares (K, D).
    """

    count: Array
    first: Array
    second: Array
    origin: Array = constant()  # noqa: RUF009 (it makes a field)


@record
@dataclass(frozen=True, slots=True)
class DiagonalMetric:
    """Information that is diagonal in the coordinates."""

    information: Array

    def solve(self, gradient: Array) -> Array:
        return np.asarray(gradient / np.maximum(self.information, np.finfo(float).tiny))


@dataclass(frozen=True, slots=True)
class Scores:
    """Log densities (n, K) of the rows of a tile, and what the M step can use again."""

    log_density: Array
    work: Any


@dataclass(frozen=True)
class GaussianFamily(ABC):
    """A family of Gaussian components.

    Parameters
    ----------
    floor : float
        Smallest variance in any direction, relative to the data's own (frame coordinates).
    """

    floor: float = 1e-6

    name: ClassVar[str]
    scales_columns: ClassVar[bool] = True  # whether each column of the frame has its own scale
    matrix: ClassVar[bool]  # whether a covariance is a matrix rather than variances
    readings: ClassVar[tuple[str, ...]] = ("mode",)

    # ------------------------------------------------ parameters

    def frame(self, X: Array, weight: Array) -> Frame:
        """The coordinates for a fit that starts from this (dense) sample."""
        return frame_of(X, weight)

    @abstractmethod
    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        """The maximum-likelihood M step under the floor, and which components touched it."""

    @abstractmethod
    def from_sample(self, frame: Frame, U: Array, resp: Array) -> GaussianParams:
        """Parameters from a complete sample with given responsibilities (n, K)."""

    @abstractmethod
    def covariances(self, params: GaussianParams) -> Array:
        """``scatter`` in data coordinates, in the family's own shape."""

    @abstractmethod
    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        """The inverse of publishing: data coordinates to frame coordinates."""

    @abstractmethod
    def precisions(self, params: GaussianParams) -> tuple[Array, Array]:
        """Inverses of ``covariances`` and their factors A with precision A A'."""

    @staticmethod
    @abstractmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        """The shape of ``scatter``."""

    @abstractmethod
    def dense(self, params: GaussianParams) -> Array:
        """Covariances in frame coordinates as (K, D, D)."""

    @abstractmethod
    def n_free(self, n_components: int, n_features: int) -> int:
        """Number of free parameters of the components."""

    @abstractmethod
    def coordinates(self, params: GaussianParams) -> Array: ...

    @abstractmethod
    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams: ...

    @abstractmethod
    def derivatives(self, params: GaussianParams, moments: Moments) -> tuple[Array, Metric]:
        """Gradient of the log likelihood in ``coordinates``; the metric of the complete data."""

    @abstractmethod
    def place(self, params: GaussianParams, where: Array, points: Array) -> GaussianParams:
        """Components ``where`` moved to ``points`` with a typical covariance."""

    def keep(self, params: GaussianParams, which: Array) -> GaussianParams:
        """Only the components ``which``."""
        return replace(params, means=params.means[which], scatter=self._keep(params.scatter, which))

    def _keep(self, scatter: Array, which: Array) -> Array:
        return np.asarray(scatter[which])

    # ------------------------------------------------ E step

    @abstractmethod
    def mode(self, params: GaussianParams) -> Any:
        """The reading of point estimates: factors and the lifted form."""

    @abstractmethod
    def scores(self, tile: Block, reading: Any) -> Scores:
        """Log densities of a tile of rows of any kind."""

    @abstractmethod
    def log_density(self, block: Block, reading: Any) -> Array:
        """Log densities (n, K) of a block by the fastest route that is exact for it."""

    @abstractmethod
    def moments(self, scores: Scores, resp: Array, reading: Any) -> Moments:
        """Additive statistics of a tile for weighted responsibilities (n, K)."""

    @abstractmethod
    def fused(self, block: Block, reading: Any, log_weights: Array) -> tuple[Moments, Sums] | None:
        """Both at once over a whole block by the fast kernel; None if the block is not for it."""

    @abstractmethod
    def about_frame(self, moments: Moments) -> Moments:
        """The same moments about the origin of the frame, so that passes can be blended."""

    # ------------------------------------------------ using a fit

    @abstractmethod
    def completed(
        self, scores: Scores, reading: Any, component: int, normals: Array | None
    ) -> Array:
        """Rows in frame coordinates with missing entries at their conditional mean under one
        component, or at a conditional draw made of standard normals (n, D)."""

    @abstractmethod
    def condition(
        self, params: GaussianParams, known: Array, values: Array
    ) -> tuple[Array, GaussianParams]:
        """Log density (K,) of known columns and the components of the others given them."""

    @abstractmethod
    def sample(self, params: GaussianParams, labels: Array, normals: Array) -> Array:
        """Rows of the given components from standard normals (n, D), in data coordinates."""


def share(moments: Moments) -> tuple[Array, Array]:
    """Per component and column: mean deviation from the origin, and where there is any data."""
    seen = moments.count > 0
    deviation = np.divide(
        moments.first, moments.count, out=np.zeros_like(moments.first), where=seen
    )
    return deviation, seen


def flat(*parts: Array) -> Array:
    """The parts as one vector."""
    return np.concatenate([np.ravel(part) for part in parts])


def tile_width(dtype: np.dtype[Any], amplification: float) -> np.dtype[Any]:
    """The dtype of the arithmetic: float32 data keep it unless it would cost too many digits."""
    if dtype == np.float32 and amplification <= AMPLIFICATION_LIMIT_32:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def dense_rows(X: Any) -> Array:
    """A tile as an ordinary array."""
    return np.asarray(X.toarray()) if hasattr(X, "toarray") else np.asarray(X)
