"""What the E step of components on one plane reads, made once per pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array
from mixfold.families.dense import DenseReading
from mixfold.families.full import FullGaussian
from mixfold.families.gaussian import GaussianParams
from mixfold.families.projection.records import ProjectionParams
from mixfold.math.frame import Frame
from mixfold.math.symmetric import LOG_2PI

# the Gaussians of the latents: a covariance may be singular, for noise is added to it
LATENT = FullGaussian(floor=0.0)


@dataclass(frozen=True, slots=True)
class ProjectionReading:
    """``params`` have points as clusters; ``scores`` reads them with noise added, ``gains`` are
    G_k (K, d, d); ``shift`` (K,) and ``constant`` are added to the log densities of the scores.

    ``has_missing``: statistics keep what the missing entries lack.
    """

    params: ProjectionParams
    scores: DenseReading
    gains: Array
    shift: Array
    constant: float
    has_missing: bool

    @property
    def frame(self) -> Frame:
        return self.params.frame

    @property
    def means(self) -> Array:
        return self.params.means


def read(params: ProjectionParams, shift: Array, has_missing: bool) -> ProjectionReading:
    """The reading of a plane with points as clusters."""
    own = params.clusters
    spread = own.scatter + params.noise * np.eye(own.n_features)
    scores = LATENT.mode(GaussianParams(own.frame, own.means, spread))
    gains = np.swapaxes(np.linalg.solve(spread, own.scatter), 1, 2)
    rest = params.n_features - own.n_features
    constant = -0.5 * rest * (LOG_2PI + np.log(params.noise)) - params.frame.log_scale.sum()
    return ProjectionReading(params, scores, gains, shift, float(constant), has_missing)


def latent_roots(clusters: GaussianParams) -> Array:
    """R_k (K, d, d) with R_k R_k' = S_k, which may be singular."""
    values, vectors = np.linalg.eigh(clusters.scatter)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def rescale_reading(params: ProjectionParams, frame: Frame) -> ProjectionParams:
    """The same components in another frame of one scale."""
    ratio = float(params.frame.scale[0] / frame.scale[0])
    own = params.clusters
    clusters = replace(own, means=own.means * ratio, scatter=own.scatter * ratio**2)
    offset = frame.enter(params.frame.leave(params.offset))
    return ProjectionParams(frame, params.axes, offset, params.noise * ratio**2, clusters)
