"""What all Gaussian families share: parameters, statistics, the contract with a mixture.

Everything is in the coordinates of a ``Frame`` until it is published.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Stats, constant, record
from mixfold.families.component import EVERYWHERE, ComponentFamily, Trust
from mixfold.math.chance_slabs import rows_of_chance
from mixfold.math.frame import Frame, with_rounding

# a score that sums terms of this size in float64 has about 1e-10 left of absolute error
AMPLIFICATION_LIMIT = 1e6
# the same for float32, where 1e-4 suffices: beyond it the arithmetic is float64
AMPLIFICATION_LIMIT_32 = 1e3
# Terms of a score may be this large, for a row far from all components, before its shares are made
# of ratios of densities (``log_ratios``); rounding is then up to 1e-7 in float64, 1e-2 in float32
FAR_TERMS, FAR_TERMS_32 = 1e9, 1e5
# and of squared distances, in units of that of a typical row, up to which it never is
NEAR = 100.0
# entries in frame coordinates, where their size is taken out of a product
_REACH = 1e300
# A variance at the least of a column recorded in steps makes no spike if it is at least this part
# of the variance of the data: densities are then at most twenty times as high as those of the data
SPIKE = 0.05**2


@record
@dataclass(frozen=True, slots=True)
class GaussianParams:
    """K Gaussians in frame coordinates; the shape of ``scatter`` is the family's own."""

    frame: Frame
    means: Array
    scatter: Array
    # factors of the covariances, which reading, coordinates and derivatives of a point share
    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

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
        # a coordinate of which nothing is known stays where it is
        known = self.information > 1e-300 * np.maximum(np.abs(gradient), 1.0)
        return np.divide(gradient, self.information, out=np.zeros_like(gradient), where=known)


@dataclass(frozen=True)
class GaussianFamily(ComponentFamily):
    """A family of Gaussian components that is said by means and covariances.

    Parameters
    ----------
    rounded : bool
        No variance is smaller than a column recorded in steps (years, yes or no) can tell, either:
        see ``with_rounding``.
    """

    rounded: bool = field(default=False, kw_only=True)

    free_means: ClassVar[bool] = True  # whether components are where their rows are
    matrix: ClassVar[bool]  # whether a covariance is a matrix rather than variances

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        frame = super().frame(X, weight, spread)
        return with_rounding(frame, X) if self.rounded else frame

    def floors(self, frame: Frame) -> Any:
        """The smallest variance, one for all columns or (D,)."""
        if frame.rounding is None:
            return self.floor
        return np.maximum(self.floor, frame.rounding)

    def is_spike(self, variance: Any, frame: Frame) -> Any:
        """Whether a variance that is held at the floor makes densities that say how low that is."""
        return variance < (np.inf if frame.rounding is None else max(SPIKE, self.floor))

    @abstractmethod
    def covariances(self, params: GaussianParams) -> Array:
        """``scatter`` in data coordinates, in the family's own shape."""

    @abstractmethod
    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        """The inverse of publishing: data coordinates to frame coordinates."""

    def has_few_rows(self, params: GaussianParams, counts: Array, n_rows: float) -> Array:
        rows = counts if self._keeps_apart else np.full_like(counts, counts.sum())
        return np.asarray(rows <= rows_of_chance(n_rows, params.n_features, self.floor))

    @property
    def _keeps_apart(self) -> bool:
        """Whether each component has a covariance of its own."""
        return self.scatter_shape(7, 3)[:1] == (7,)

    def describe(self, params: GaussianParams) -> dict[str, Any]:
        return {**super().describe(params), "covariances": self.covariances(params)}

    def _shares_scatter(self, params: GaussianParams) -> bool:
        K, D = params.means.shape
        return self.scatter_shape(K, D) == self.scatter_shape(K + 1, D)

    def extent(self, params: GaussianParams) -> Array:
        if self._shares_scatter(params):
            return super().extent(params)
        scatter = params.scatter
        own = np.diagonal(scatter, axis1=1, axis2=2) if self.matrix else scatter
        return np.asarray(np.sqrt(own.reshape(len(scatter), -1)) * params.frame.scale)

    def shared_extent(self, params: GaussianParams) -> Array | None:
        if not self._shares_scatter(params):
            return None
        own = np.diagonal(params.scatter) if self.matrix else params.scatter
        return np.asarray(np.sqrt(own) * params.frame.scale)

    def change_frame(self, params: GaussianParams, frame: Frame) -> GaussianParams:
        means, covariances = params.frame.leave(params.means), self.covariances(params)
        return self.from_covariances(frame, means, covariances)

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

    def select(self, params: GaussianParams, which: Array) -> GaussianParams:
        return replace(params, means=params.means[which], scatter=self._keep(params.scatter, which))

    def _keep(self, scatter: Array, which: Array) -> Array:
        return np.asarray(scatter[which])


def stack_components(params: Sequence[GaussianParams]) -> GaussianParams | None:
    """Components that share nothing, of several mixtures in one frame, one after the other; None if
    the frames differ."""
    frame = params[0].frame
    if any(one.frame is not frame for one in params):
        return None
    means, scatter = ([getattr(one, name) for one in params] for name in ("means", "scatter"))
    return GaussianParams(frame, np.concatenate(means), np.concatenate(scatter))


def unstack_components(
    params: GaussianParams, moments: Moments, n_groups: int
) -> list[tuple[GaussianParams, Moments]]:
    """The parameters and moments of each of several mixtures of as many components."""

    def parts(*arrays: Array) -> Iterator[tuple[Array, ...]]:
        split = (one.reshape(n_groups, -1, *one.shape[1:]) for one in arrays)
        return zip(*split, strict=True)

    own = parts(params.means, params.scatter)
    sums = parts(moments.count, moments.first, moments.second, moments.origin)
    return [
        (GaussianParams(params.frame, *one), Moments(*part))
        for one, part in zip(own, sums, strict=True)
    ]


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


def gaussian_trust(constant: Array, amplification: Array, n_features: int, single: bool) -> Trust:
    """Where terms that grow with the squared distance of a row are as large as is allowed.

    At a typical row of a component, of squared distance D, they are its amplification. ``single``
    says that the arithmetic is that of float32.
    """
    if len(amplification) == 1:
        return EVERYWHERE
    terms = FAR_TERMS_32 if single else FAR_TERMS
    distance = max(terms / float(amplification.max()), NEAR)
    return Trust(float(constant.max()), 0.5 * n_features * distance)


def tile_width(dtype: np.dtype[Any], amplification: float) -> np.dtype[Any]:
    """The dtype of the arithmetic: float32 data keep it unless it would cost too many digits."""
    if dtype == np.float32 and amplification <= AMPLIFICATION_LIMIT_32:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def robust_gaps(V: Array, gaps: Callable[[Array, Array, Any], Array]) -> Array:
    """Differences (n, K) of squared distances, of rows V from a component.

    ``gaps(V, unit, rows)`` are those of rows V / unit, times unit^2. Where terms of both signs are
    beyond the range of floats, the size of the row is taken out first: which sign prevails is told.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out = gaps(V, np.ones((len(V), 1)), slice(None))
        lost = np.flatnonzero(np.isnan(out).any(axis=1) & ~np.isnan(V).any(axis=1))
        if lost.size:
            V = np.clip(V[lost], -_REACH, _REACH)
            size = np.abs(V).max(axis=1, keepdims=True)
            out[lost] = gaps(V / size, 1 / size, lost) * size * size
    return out
