"""From sums of a pass to what the M step of a projection with clusters needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families.dense import about
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.symmetric import pack, unpack
from mixfold.models.projection.projection_axes import Centred, polar
from mixfold.models.projection.projection_records import ProjectionParams, ProjectionStats


def latent_moments(scores: Moments, means: Array, gains: Array, noise: float) -> Moments:
    """Moments of the latents about the means of their clusters, from those of the scores."""
    count, first, second = about(means, scores, unpack(scores.second, means.shape[1]))
    back = np.swapaxes(gains, 1, 2)
    second = gains @ second @ back
    second += (count * noise)[:, None, None] * (gains + back) / 2
    return Moments(scores.count, (gains @ first[:, :, None])[..., 0], pack(second), means)


def centred(stats: ProjectionStats, moments: Moments) -> tuple[Centred, Array, Array]:
    """Sums about the means, the mean of the rows about the offset, and that of the latents."""
    n, count = stats.weight, moments.count[:, 0]
    first = (moments.first + count[:, None] * moments.origin).sum(axis=0)
    zero = np.zeros_like(moments.origin)
    _, _, second = about(zero, moments, unpack(moments.second, zero.shape[1]))
    mean, latent = stats.first / n, first / n
    cross = stats.cross - np.outer(mean, first)
    total = stats.square - n * float(mean @ mean)
    return Centred(n, total, cross, second.sum(axis=0) - np.outer(first, latent)), mean, latent


def orthonormal(params: ProjectionParams) -> ProjectionParams:
    """The same density with axes that are orthonormal; only for clusters without priors."""
    axes, turn = polar(params.axes)
    own: Any = params.clusters.components
    scatter = turn @ own.scatter @ turn
    scatter = (scatter + np.swapaxes(scatter, 1, 2)) / 2
    components = GaussianParams(own.frame, own.means @ turn, scatter)
    return replace(params, axes=axes, clusters=replace(params.clusters, components=components))
