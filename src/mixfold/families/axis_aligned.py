"""Families whose covariances are diagonal: four ways to share the variances.

A subclass says how variances spread to (K, D) and how squares are pooled; missing entries, sparse
rows and the fast kernel are the same for all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block, Metric
from mixfold.families.axis_aligned_rows import (
    AxisReading,
    safe_about_zero,
    sparse_moments,
    sparse_scores,
)
from mixfold.families.component import Scores, Trust, dense_rows
from mixfold.families.gaussian import (
    AMPLIFICATION_LIMIT,
    DiagonalMetric,
    GaussianFamily,
    GaussianParams,
    Moments,
    flat,
    gaussian_trust,
    robust_gaps,
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
    lifted_scores,
    seen_square_features,
    square_features,
)
from mixfold.math.symmetric import LOG_2PI, LOG_LIMIT, within_range


@dataclass(frozen=True)
class AxisGaussian(GaussianFamily):
    """Shared by the diagonal, spherical and tied versions."""

    matrix: ClassVar[bool] = False

    # ------------------------------------------------ what a subclass says

    @abstractmethod
    def spread(self, scatter: Array, shape: tuple[int, int]) -> Array:
        """Variances as (K, D)."""

    @abstractmethod
    def gather(self, values: Array) -> Array:
        """(K, D) values summed over the entries that share a variance."""

    # ------------------------------------------------ parameters

    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        deviation, seen = share(moments)
        squares = np.maximum(moments.second - moments.count * deviation**2, 0.0)
        total = self.gather(moments.count)
        known = total > 0
        pooled = self.gather(squares) / np.where(known, total, 1.0)
        floor = self.floors(previous.frame)
        scatter = np.where(known, np.maximum(pooled, floor), previous.scatter)
        held = known & (pooled < floor) & self.is_spike(floor, previous.frame)
        touched = self.spread(held, seen.shape)
        means = np.where(seen, moments.origin + deviation, previous.means)
        return GaussianParams(previous.frame, means, scatter), np.asarray(touched.any(axis=1))

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> GaussianParams:
        count = np.repeat(resp.sum(axis=0)[:, None], U.shape[1], axis=1)
        means = (resp.T @ U) / np.maximum(count, np.finfo(float).tiny)
        squares = np.stack([r @ (U - m) ** 2 for r, m in zip(resp.T, means, strict=True)])
        unit = np.ones_like(self.gather(squares))
        start = GaussianParams(frame, np.zeros_like(means), unit)
        return self.estimate(Moments(count, np.zeros_like(means), squares, means), start)[0]

    def dense(self, params: GaussianParams) -> Array:
        variances = self.spread(params.scatter, params.means.shape)
        return np.asarray(variances[:, :, None] * np.eye(params.n_features))

    def coordinates(self, params: GaussianParams) -> Array:
        return flat(params.means, np.log(params.scatter))

    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams:
        split = params.means.size
        return GaussianParams(
            params.frame,
            vector[:split].reshape(params.means.shape),
            np.maximum(
                np.exp(np.clip(vector[split:], -LOG_LIMIT, LOG_LIMIT)).reshape(
                    params.scatter.shape
                ),
                self.floors(params.frame),
            ),
        )

    def derivatives(self, params: GaussianParams, moments: Moments) -> tuple[Array, Metric]:
        variances = self.spread(params.scatter, params.means.shape)
        shift = params.means - moments.origin
        first = moments.first - moments.count * shift
        squares = moments.second - shift * (2 * moments.first - moments.count * shift)
        by_scatter = self.gather(0.5 * (squares / variances - moments.count))
        # a variance that is held at the floor has nowhere to go
        held = (params.scatter <= self.floors(params.frame) * (1 + 1e-9)) & (by_scatter < 0)
        gradient = first / variances, np.where(held, 0.0, by_scatter)
        curvature = moments.count / variances, self.gather(0.5 * moments.count)
        return flat(*gradient), DiagonalMetric(flat(*curvature))

    def place(self, params: GaussianParams, where: Array, points: Array) -> GaussianParams:
        means, scatter = params.means.copy(), params.scatter.copy()
        means[where] = points
        rest = np.setdiff1d(np.arange(len(means)), where)
        if scatter.shape[:1] == means.shape[:1] and self._own_scatter and rest.size:
            scatter[where] = scatter[rest].mean(axis=0)
        return GaussianParams(params.frame, means, scatter)

    # whether each component has variances of its own
    _own_scatter = True

    def _keep(self, scatter: Array, which: Array) -> Array:
        return np.asarray(scatter[which]) if self._own_scatter else scatter

    # ------------------------------------------------ E step

    def mode(self, params: GaussianParams) -> AxisReading:
        variances = self.spread(params.scatter, params.means.shape)
        constant = -0.5 * (LOG_2PI + np.log(variances)) - params.frame.log_scale
        reach = (np.abs(params.means) + np.sqrt(variances)) ** 2 / variances
        return AxisReading(params.frame, params.means, 1 / variances, constant, reach.sum(axis=1))

    def _kernel_can(self, block: Block, reading: AxisReading) -> bool:
        well = bool((reading.amplification <= AMPLIFICATION_LIMIT).all())
        return well and isinstance(block.X, np.ndarray)

    def _lift(self, block: Block, reading: AxisReading) -> tuple[FeatureMap, Array]:
        """The log densities as rows over (1, u, u^2), or (1, seen, u, u^2) with missing entries."""
        size = reading.means.shape[1]
        linear = reading.precision * reading.means
        offset = reading.constant - 0.5 * linear * reading.means
        if block.complete:
            head, features = offset.sum(axis=1, keepdims=True), square_features(size)
        else:
            head = np.concatenate([np.zeros((len(offset), 1)), offset], axis=1)
            features = seen_square_features(size)
        theta = np.concatenate([head, linear, -0.5 * reading.precision], axis=1)
        return features, theta.astype(tile_width(block.X.dtype, reading.amplification.max()))

    def lift_complete_rows(self, reading: AxisReading) -> tuple[FeatureMap, Array] | None:
        block = Block(np.empty((0, reading.means.shape[1])))
        return self._lift(block, reading) if self._kernel_can(block, reading) else None

    def numbers_of_row(self, block: Block, reading: AxisReading) -> int:
        if issparse(block.X) and block.complete and safe_about_zero(reading):
            return max(1, int(block.X.nnz) // max(1, block.n_rows))  # they stay sparse
        return super().numbers_of_row(block, reading)

    def fused_pass(
        self, block: Block, reading: AxisReading, log_weights: Array
    ) -> tuple[Moments, Sums] | None:
        if not self._kernel_can(block, reading):
            return None
        features, theta = self._lift(block, reading)
        theta[:, 0] += log_weights
        trusted = self.trust(reading, block.X.dtype).least
        sums = lifted_pass(block, reading.frame, features, theta, trusted)
        return _as_moments(sums.moments, reading.means.shape[1], block.complete), sums

    def stack(self, params: Sequence[GaussianParams]) -> GaussianParams | None:
        return stack_components(params) if self._own_scatter else None

    def unstack(
        self, params: GaussianParams, moments: Moments, n_groups: int
    ) -> list[tuple[GaussianParams, Moments]]:
        return unstack_components(params, moments, n_groups)

    def grouped_pass(
        self, block: Block, reading: AxisReading, log_weights: Array
    ) -> tuple[Moments, list[Sums]] | None:
        single = block.X.dtype != np.float64
        if single or not block.complete or not self._kernel_can(block, reading):
            return None
        features, theta = self._lift(block, reading)
        theta[:, 0] += log_weights.ravel()
        trusted = self.trust(reading, block.X.dtype).least
        found = lifted_groups(block, reading.frame, features, theta, len(log_weights), trusted)
        if found is None:
            return None
        return _as_moments(found[0], reading.means.shape[1], True), found[1]

    def log_density(self, block: Block, reading: AxisReading) -> Array:
        if not self._kernel_can(block, reading):
            return self.scores(block, reading).log_density
        features, theta = self._lift(block, reading)
        return lifted_scores(block, reading.frame, features, theta)

    def scores(self, tile: Block, reading: AxisReading) -> Scores:
        if issparse(tile.X) and tile.complete and safe_about_zero(reading):
            return Scores(sparse_scores(tile.X, reading), tile.X)
        U = reading.frame.enter(dense_rows(tile.X))
        seen = ~np.isnan(U)
        out = seen @ reading.constant.T
        for k, (mean, precision) in enumerate(zip(reading.means, reading.precision, strict=True)):
            out[:, k] -= 0.5 * (np.where(seen, U - mean, 0.0) ** 2 @ precision)
        return Scores(out, (U, seen))

    def trust(self, reading: AxisReading, dtype: np.dtype[Any]) -> Trust:
        if dtype not in reading.trusts:
            single = tile_width(dtype, reading.amplification.max()) == np.float32
            constant = reading.constant.sum(axis=1)
            trust = gaussian_trust(constant, reading.amplification, reading.means.shape[1], single)
            reading.trusts[dtype] = trust
        return reading.trusts[dtype]

    def log_ratios(self, block: Block, reading: AxisReading, reference: int) -> Array:
        """Of Q_k - Q_r = sum_d (p_k - p_r) v^2 + p_k e (2 v + e) with v = u - mu_r and e =
        mu_r - mu_k: what components share is taken out before it meets the row."""
        U = reading.frame.enter(dense_rows(block.X))
        seen = ~np.isnan(U)
        V = np.where(seen, U - reading.means[reference], 0.0)
        out = seen @ (reading.constant - reading.constant[reference]).T
        gaps = robust_gaps(V, partial(_gaps, seen, reading, reference))
        return np.asarray(out - 0.5 * gaps)

    def moments(self, scores: Scores, resp: Array, reading: AxisReading) -> Moments:
        careful = reading.amplification > AMPLIFICATION_LIMIT
        origin = np.where(careful[:, None], reading.means, 0.0)
        if issparse(scores.work):
            return sparse_moments(scores.work, resp, reading.frame.leave(origin), reading)
        U, seen = scores.work
        first, second = np.empty_like(origin), np.empty_like(origin)
        for k in range(len(origin)):
            V = np.where(seen, U - origin[k], 0.0)
            first[k], second[k] = resp[:, k] @ V, resp[:, k] @ V**2
        return Moments(resp.T @ seen.astype(float), first, second, origin)

    def about_frame(self, moments: Moments) -> Moments:
        origin, count = moments.origin, moments.count
        first = moments.first + count * origin
        second = moments.second + origin * (2 * moments.first + count * origin)
        return Moments(count, first, second, np.zeros_like(origin))

    def complete_rows(
        self, scores: Scores, reading: AxisReading, component: int, normals: Array | None
    ) -> Array:
        U, seen = scores.work
        entry = np.broadcast_to(reading.means[component], U.shape)
        if normals is not None:
            entry = entry + normals / np.sqrt(reading.precision[component])
        return np.where(seen, U, entry)

    def condition(
        self, params: GaussianParams, known: Array, values: Array
    ) -> tuple[Array, GaussianParams]:
        frame = params.frame
        rest = np.setdiff1d(np.arange(params.n_features), known)
        variances = self.spread(params.scatter, params.means.shape)[:, known]
        deviation = (values - frame.origin[known]) / frame.scale[known] - params.means[:, known]
        log_density = -0.5 * (deviation**2 / variances + np.log(variances)).sum(axis=1)
        remaining = Frame(frame.origin[rest], frame.scale[rest])
        scatter = self._columns(params.scatter, rest)
        return log_density, GaussianParams(remaining, params.means[:, rest], scatter)

    def precisions(self, params: GaussianParams) -> tuple[Array, Array]:
        covariances = self.covariances(params)
        with np.errstate(over="ignore", divide="ignore"):
            return within_range(1 / covariances), within_range(1 / np.sqrt(covariances))

    @abstractmethod
    def _columns(self, scatter: Array, which: Array) -> Array:
        """The scatter of some of the columns."""

    def sample(self, params: GaussianParams, labels: Array, normals: Array) -> Array:
        deviations = np.sqrt(self.spread(params.scatter, params.means.shape))
        return params.frame.leave(params.means[labels] + normals * deviations[labels])


def _as_moments(sums: Array, size: int, complete: bool) -> Moments:
    """Sums over (1, u, u^2), or (1, seen, u, u^2), as moments about the origin of the frame."""
    first, second = sums[:, -2 * size : -size], sums[:, -size:]
    count = sums[:, : -2 * size][:, -size:]  # per column, or one for all of them
    if complete:
        count = np.repeat(count, size, axis=1)
    return Moments(count, first, second, np.zeros_like(first))


def _gaps(
    seen: Array, reading: AxisReading, reference: int, V: Array, unit: Array, rows: Any
) -> Array:
    """Q_k - Q_r (n, K), as in ``log_ratios``, of rows V / unit from the reference, times unit^2."""
    out = np.empty((len(V), len(reading.means)))
    for k, precision in enumerate(reading.precision):
        apart = unit * (reading.means[reference] - reading.means[k])
        wider = (precision - reading.precision[reference]) * V * V
        moved = np.where(seen[rows], precision * apart * (2 * V + apart), 0.0)
        out[:, k] = (wider + moved).sum(axis=1)
    return out
