"""Gaussian components that share one full covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.dense import (
    DenseGaussian,
    DenseMetric,
    DenseReading,
    about,
    read_dense,
    slopes,
)
from mixfold.families.gaussian import GaussianParams, Moments, flat, share, tile_width
from mixfold.math.frame import Frame
from mixfold.math.lifted import Sums
from mixfold.math.pooled import pooled_pass
from mixfold.math.symmetric import (
    from_log_cholesky,
    log_cholesky,
    pack,
    raise_eigenvalues,
    unpack,
)


@dataclass(frozen=True)
class TiedGaussian(DenseGaussian):
    """p(x | k) = N(x; mu_k, Sigma)."""

    name: ClassVar[str] = "tied"

    def mode(self, params: GaussianParams) -> DenseReading:
        # one factor serves all; broadcast views keep it one in memory
        known = self.factors(params)
        one = read_dense(params.frame, params.means, params.scatter[None], known)
        K, size = params.means.shape
        return replace(
            one,
            whiten=np.broadcast_to(one.whiten, (K, size, size)),
            constant=np.broadcast_to(one.constant, K),
        )

    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        deviation, seen = share(moments)
        count = moments.count[:, 0]
        scatter = unpack(moments.second, previous.n_features)
        scatter = (scatter - (deviation.T * count) @ deviation) / count.sum()
        scatter, raised = raise_eigenvalues(scatter, self.floors(previous.frame))
        means = np.where(seen, moments.origin + deviation, previous.means)
        params = GaussianParams(previous.frame, means, scatter)
        return params, np.full(len(means), self.is_spike(raised, previous.frame))

    def covariances(self, params: GaussianParams) -> Array:
        scale = params.frame.scale
        return np.asarray(params.scatter * scale[:, None] * scale)

    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        scale = frame.scale
        return GaussianParams(frame, frame.enter(means), covariances / scale[:, None] / scale)

    def dense(self, params: GaussianParams) -> Array:
        return np.tile(params.scatter, (params.n_components, 1, 1))

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features + n_features * (n_features + 1) // 2

    def coordinates(self, params: GaussianParams) -> Array:
        factors, _ = self.factors(params)
        return flat(params.means, log_cholesky(factors))

    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams:
        split, size = params.means.size, params.n_features
        means = vector[:split].reshape(params.means.shape)
        floor = self.floors(params.frame)
        scatter, _ = raise_eigenvalues(from_log_cholesky(vector[split:], size), floor)
        return GaussianParams(params.frame, means, scatter)

    def derivatives(self, params: GaussianParams, moments: Moments) -> tuple[Array, DenseMetric]:
        # the pooled second moment stands for one component; the others carry none of it
        second = np.zeros((params.n_components, params.n_features, params.n_features))
        second[0] = unpack(moments.second, params.n_features)
        count, first, second = about(params.means, moments, second)
        return slopes(self.factors(params), count, first, second.sum(axis=0, keepdims=True))

    def place(self, params: GaussianParams, where: Array, points: Array) -> GaussianParams:
        means = params.means.copy()
        means[where] = points
        return replace(params, means=means)

    def about_frame(self, moments: Moments) -> Moments:
        shift = -moments.origin
        count = moments.count[:, :1]
        cross = moments.first.T @ shift
        second = (
            unpack(moments.second, shift.shape[1]) - cross - cross.T + (count * shift).T @ shift
        )
        first = moments.first - count * shift
        return Moments(moments.count, first, pack(second), np.zeros_like(shift))

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return (n_features, n_features)

    def _own_shape(self, covariances: Array) -> Array:
        return np.asarray(covariances[0])

    def _keep(self, scatter: Array, which: Array) -> Array:
        return scatter

    def _unit(self, n_components: int, n_features: int) -> Array:
        return np.eye(n_features)

    def _pool(self, count: Array, first: Array, second: Array, origin: Array) -> Moments:
        return Moments(count, first, pack(second.sum(axis=0)), origin)

    def fused_pass(
        self, block: Block, reading: DenseReading, log_weights: Array
    ) -> tuple[Moments, Sums] | None:
        if not self._kernel_can(block, reading):
            return None
        width = tile_width(block.X.dtype, reading.amplification.max())
        whiten = reading.whiten[0]
        white_means = reading.means @ whiten
        offset = log_weights + reading.constant - 0.5 * (white_means**2).sum(axis=1)
        theta = np.concatenate([offset[:, None], white_means @ whiten.T], axis=1)
        trusted = self.trust(reading, block.X.dtype).least
        sums, second = pooled_pass(
            block, reading.frame, theta.astype(width), whiten.astype(width), trusted
        )
        size = len(whiten)
        moments = Moments(
            np.repeat(sums.moments[:, :1], size, axis=1),
            sums.moments[:, 1:],
            pack(second),
            np.zeros_like(reading.means),
        )
        return moments, sums
