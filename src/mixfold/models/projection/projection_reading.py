"""What the E step of a projection with clusters reads, and what it believes of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import Scores
from mixfold.families.dense import DenseReading
from mixfold.families.full import FullGaussian
from mixfold.families.gaussian import GaussianParams
from mixfold.math.symmetric import LOG_2PI
from mixfold.models.projection.projection_laws import LatentReading
from mixfold.models.projection.projection_records import ProjectionParams
from mixfold.models.projection.projection_rows import Rows, rows_about

# mixtures on the scores: only its arithmetic is used
FAMILY = FullGaussian(floor=0.0)


@dataclass(frozen=True, slots=True)
class ProjectionReading:
    """``scores`` reads clusters with noise, ``gains`` are G_k (K, d, d), ``constant`` is shared."""

    params: ProjectionParams
    log_weights: Array
    latent: LatentReading
    scores: DenseReading
    gains: Array
    constant: float


@dataclass(frozen=True, slots=True)
class Belief:
    """Of some rows: scores t (n, d) and their log joint (n, K), and what the axes leave (n,)."""

    rows: Rows
    found: Scores
    t: Array
    log_joint: Array
    left: Array


def read(params: ProjectionParams, latent: LatentReading) -> ProjectionReading:
    """The reading of a plane with the given clusters."""
    own = latent.gaussians
    spread = own.scatter + params.noise * np.eye(own.n_features)
    scores = FAMILY.mode(GaussianParams(own.frame, own.means, spread))
    gains = np.swapaxes(np.linalg.solve(spread, own.scatter), 1, 2)
    rest = len(params.offset) - own.n_features
    constant = -0.5 * rest * (LOG_2PI + np.log(params.noise)) - params.frame.log_scale.sum()
    log_weights = latent.log_weights + latent.shift
    return ProjectionReading(params, log_weights, latent, scores, gains, float(constant))


def believed(reading: ProjectionReading, tile: Block) -> Belief:
    """Scores of some rows, without what all clusters share."""
    params = reading.params
    rows = rows_about(tile, params.frame, params.offset)
    t = rows.onto(params.axes)
    found = FAMILY.scores(Block(t), reading.scores)
    left = rows.left(t, params.axes, params.noise)
    return Belief(rows, found, t, found.log_density + reading.log_weights, left)


def expected_latents(reading: ProjectionReading, t: Array, resp: Array) -> Array:
    """sum_k resp_k E[z | x, k], (n, d)."""
    means = reading.latent.gaussians.means
    Z = resp @ means
    for k, gain in enumerate(reading.gains):
        Z += (resp[:, k, None] * (t - means[k])) @ gain.T
    return np.asarray(Z)
