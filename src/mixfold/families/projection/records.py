"""Parameters and additive statistics of Gaussian components on one shared plane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mixfold.contracts import Array, Stats, constant, record
from mixfold.families.dense import about
from mixfold.families.factor.records import Latents
from mixfold.families.gaussian import Moments
from mixfold.math.frame import Frame
from mixfold.math.symmetric import pack, unpack


@record
@dataclass(frozen=True, slots=True)
class ProjectionParams:
    """x = ``axes`` z + ``offset`` + noise, in the coordinates of a frame with one scale.

    ``axes`` (D, d) are orthonormal and ``noise`` is a variance. ``clusters`` are the Gaussians of
    the latents z: points (``GaussianParams``) or posteriors (``NormalPosterior``).
    """

    frame: Frame
    axes: Array
    offset: Array
    noise: float
    clusters: Any

    @property
    def n_components(self) -> int:
        return int(self.clusters.n_components)

    @property
    def n_features(self) -> int:
        return len(self.offset)

    @property
    def n_latents(self) -> int:
        return int(self.axes.shape[1])

    @property
    def means(self) -> Array:
        """Centres of the components (K, D)."""
        return np.asarray(self.clusters.means @ self.axes.T + self.offset)


@record
@dataclass(frozen=True)
class ProjectionSums(Stats):
    """Sums of a pass, with rows and latents weighted by responsibilities.

    ``latents`` are moments of z per component. Over the seen entries, as deviations from
    ``origin`` (D,): ``entries`` counts them, ``first`` (D,) sums x, ``square`` all x^2, ``cross``
    (D, d) the products with the expected latents. ``unseen`` (D, ...) sums count, E[z] and E[zz']
    over the missing entries of each column; it has no columns, (0, ...), in a fit to rows that
    are complete. ``axes``, ``offset`` and ``noise`` are the plane of the last pass.
    """

    latents: Moments
    entries: float
    first: Array
    square: float
    cross: Array
    unseen: Latents
    origin: Array = constant()  # noqa: RUF009 (it makes a field)
    axes: Array = constant()  # noqa: RUF009 (it makes a field)
    offset: Array = constant()  # noqa: RUF009 (it makes a field)
    noise: float = constant()

    def __add__(self, other: Self) -> Self:
        total = super().__add__(other)
        return replace(total, axes=other.axes, offset=other.offset, noise=other.noise)


@dataclass(frozen=True, slots=True)
class Plane:
    """Where a fit starts: principal axes, in the frame that it keeps.

    ``variance`` is that of the latents along an axis, on average.
    """

    frame: Frame
    axes: Array
    offset: Array
    noise: float
    variance: float


def no_unseen(n_columns: int, size: int) -> Latents:
    """Sums over no missing entries of some columns."""
    shape = (n_columns, size)
    return Latents(np.zeros(n_columns), np.zeros(shape), np.zeros((*shape, size)))


def change_origin(moments: Moments, origin: Array) -> Moments:
    """The same moments of the latents about other points (K, d)."""
    _, first, second = about(origin, moments, unpack(moments.second, origin.shape[1]))
    return Moments(moments.count, first, pack(second), origin)
