"""What a projection with clusters knows, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Stats, constant, record
from mixfold.families.gaussian import Moments
from mixfold.math.frame import Frame
from mixfold.models.factors.spectral import Spectrum


@record
@dataclass(frozen=True, slots=True)
class LatentClusters:
    """Weights and Gaussians of the clusters, as their law holds them: points or posteriors.

    ``prior`` is that of a Gaussian (None without one), ``counts`` (K,) the rows that made them.
    """

    mixing: Any
    components: Any
    prior: Any
    counts: Array

    @property
    def n_components(self) -> int:
        return len(self.counts)


@record
@dataclass(frozen=True, slots=True)
class ProjectionParams:
    """x = ``axes`` z + ``offset`` + noise, in the coordinates of a frame with one scale.

    ``axes`` (D, d) are orthonormal, ``noise`` is a variance; z belongs to one of the clusters.
    """

    frame: Frame
    axes: Array
    offset: Array
    noise: float
    clusters: LatentClusters

    @property
    def n_components(self) -> int:
        return self.clusters.n_components


@record
@dataclass(frozen=True)
class ProjectionStats(Stats):
    """Sums of a pass.

    ``scores`` are moments of t = axes'(x - offset) per cluster; about the offset, ``first`` is the
    sum of the rows (D,), ``square`` that of their squared lengths, and ``cross`` (D, d) that of
    their products with the expected latents.
    """

    scores: Moments
    first: Array
    square: float
    cross: Array
    log_likelihood: float
    entropy: float
    weight: float
    offset: Array = constant()  # noqa: RUF009 (it makes a field)


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


def plane_of(spectrum: Spectrum, origin: Array, floor: float) -> Plane:
    """The plane of probabilistic PCA, about ``origin`` (zero keeps sparse rows sparse).

    ``floor`` is the least noise, relative to the mean variance of a column.
    """
    size, kept = len(spectrum.mean), len(spectrum.values)
    total = spectrum.total_variance if spectrum.total_variance > 0 else float(size)
    scale = np.sqrt(total / size)
    # with as many axes as columns the noise can be anything below the least variance
    least = 0.1 * float(spectrum.values.min())
    rest = (
        (spectrum.total_variance - spectrum.values.sum()) / (size - kept) if size > kept else least
    )
    noise = max(rest / scale**2, floor)
    frame = Frame(origin, np.full(size, scale))
    variance = float(np.maximum(spectrum.values / scale**2 - noise, noise).mean())
    return Plane(frame, spectrum.vectors, frame.enter(spectrum.mean), float(noise), variance)
