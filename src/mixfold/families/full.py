"""Gaussian components, each with its own full covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Metric
from mixfold.families.dense import (
    DenseGaussian,
    DenseReading,
    about,
    slopes,
)
from mixfold.families.gaussian import (
    GaussianParams,
    Moments,
    flat,
    share,
    stack_components,
    tile_width,
    unstack_components,
)
from mixfold.math.frame import Frame
from mixfold.math.lifted import (
    FeatureMap,
    Sums,
    lifted_groups,
    lifted_pass,
    product_features,
)
from mixfold.math.symmetric import (
    are_above,
    from_log_cholesky,
    log_cholesky,
    pack,
    raise_all_eigenvalues,
    try_to_factorise,
    unpack,
)


@dataclass(frozen=True)
class FullGaussian(DenseGaussian):
    """p(x | k) = N(x; mu_k, Sigma_k)."""

    name: ClassVar[str] = "full"

    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        deviation, seen = share(moments)
        alive = seen[:, 0]
        size = previous.n_features
        scatter = (
            unpack(moments.second, size) / np.where(alive, moments.count[:, 0], 1)[:, None, None]
        )
        scatter -= deviation[:, :, None] * deviation[:, None, :]
        means = np.where(seen, moments.origin + deviation, previous.means)
        if alive.all():
            return self._raised(previous.frame, means, scatter)
        raised, floor = np.full(len(scatter), np.inf), self.floors(previous.frame)
        scatter[alive], raised[alive] = raise_all_eigenvalues(scatter[alive], floor)
        scatter = np.where(alive[:, None, None], scatter, previous.scatter)
        touched = self.is_spike(raised, previous.frame)
        return GaussianParams(previous.frame, means, scatter), touched

    def _raised(self, frame: Frame, means: Array, scatter: Array) -> tuple[GaussianParams, Array]:
        """Parameters with eigenvalues raised to the floor, and which components touched it.

        The factors are asked for next in any case, and tell nearly always that nothing has to be
        raised.
        """
        known = try_to_factorise(scatter)
        if known is not None and are_above(known[1], self.floors(frame)):
            params = GaussianParams(frame, means, scatter)
            params.known["factors"] = known
            return params, np.zeros(len(scatter), bool)
        scatter, raised = raise_all_eigenvalues(scatter, self.floors(frame))
        return GaussianParams(frame, means, scatter), self.is_spike(raised, frame)

    def covariances(self, params: GaussianParams) -> Array:
        scale = params.frame.scale
        return np.asarray(params.scatter * scale[:, None] * scale)

    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        scale = frame.scale
        return GaussianParams(frame, frame.enter(means), covariances / scale[:, None] / scale)

    def dense(self, params: GaussianParams) -> Array:
        return params.scatter

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * (n_features + n_features * (n_features + 1) // 2)

    def coordinates(self, params: GaussianParams) -> Array:
        if "coordinates" not in params.known:  # of a point and, one pass before, of its image
            factors, _ = self.factors(params)
            params.known["coordinates"] = flat(params.means, log_cholesky(factors))
        return np.asarray(params.known["coordinates"])

    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams:
        split, size = params.means.size, params.n_features
        scatter = from_log_cholesky(vector[split:].reshape(params.n_components, -1), size)
        means = vector[:split].reshape(params.means.shape)
        return self._raised(params.frame, means, scatter)[0]

    def derivatives(self, params: GaussianParams, moments: Moments) -> tuple[Array, Metric]:
        second = unpack(moments.second, params.n_features)
        return slopes(self.factors(params), *about(params.means, moments, second))

    def place(self, params: GaussianParams, where: Array, points: Array) -> GaussianParams:
        rest = np.setdiff1d(np.arange(params.n_components), where)
        typical = params.scatter[rest].mean(axis=0) if rest.size else np.eye(params.n_features)
        means, scatter = params.means.copy(), params.scatter.copy()
        means[where], scatter[where] = points, typical
        return GaussianParams(params.frame, means, scatter)

    def _pool(self, count: Array, first: Array, second: Array, origin: Array) -> Moments:
        return Moments(count, first, pack(second), origin)

    def fused_pass(
        self, block: Block, reading: DenseReading, log_weights: Array
    ) -> tuple[Moments, Sums] | None:
        if reading.theta is None or not self._kernel_can(block, reading):
            return None
        size = reading.means.shape[1]
        width = tile_width(block.X.dtype, reading.amplification.max())
        theta = reading.theta.copy()
        theta[:, 0] += log_weights
        trusted = self.trust(reading, block.X.dtype).least
        features = product_features(size)
        sums = lifted_pass(block, reading.frame, features, theta.astype(width), trusted)
        return _as_moments(sums.moments, size), sums

    def stack(self, params: Sequence[GaussianParams]) -> GaussianParams | None:
        return stack_components(params)

    def unstack(
        self, params: GaussianParams, moments: Moments, n_groups: int
    ) -> list[tuple[GaussianParams, Moments]]:
        return unstack_components(params, moments, n_groups)

    def grouped_pass(
        self, block: Block, reading: DenseReading, log_weights: Array
    ) -> tuple[Moments, list[Sums]] | None:
        single = block.X.dtype != np.float64
        if reading.theta is None or single or not self._kernel_can(block, reading):
            return None
        size = reading.means.shape[1]
        theta = reading.theta.copy()
        theta[:, 0] += log_weights.ravel()
        trusted = self.trust(reading, np.dtype(float)).least
        features = product_features(size)
        found = lifted_groups(block, reading.frame, features, theta, len(log_weights), trusted)
        return None if found is None else (_as_moments(found[0], size), found[1])

    def lift_complete_rows(self, reading: DenseReading) -> tuple[FeatureMap, Array] | None:
        if reading.theta is None:
            return None
        return product_features(reading.means.shape[1]), reading.theta

    def about_frame(self, moments: Moments) -> Moments:
        zero = np.zeros_like(moments.origin)
        _, first, second = about(zero, moments, unpack(moments.second, zero.shape[1]))
        return Moments(moments.count, first, pack(second), zero)

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return (n_components, n_features, n_features)

    def _own_shape(self, covariances: Array) -> Array:
        return covariances

    def _unit(self, n_components: int, n_features: int) -> Array:
        return np.tile(np.eye(n_features), (n_components, 1, 1))


def _as_moments(sums: Array, size: int) -> Moments:
    """Sums over (1, u_d, u_d u_e) as moments about the origin of the frame."""
    count, first, second = sums[:, :1], sums[:, 1 : size + 1], sums[:, size + 1 :]
    return Moments(np.repeat(count, size, axis=1), first, second, np.zeros_like(first))
