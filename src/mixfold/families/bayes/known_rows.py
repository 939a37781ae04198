"""Gaussian components of one known covariance: scores, sums, and the best means.

Scores, draws and completed rows are those of a tied covariance; only the means are estimated, and
with missing entries they still have a closed form: weighted least squares.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.bayes.known_records import (
    KnownMetric,
    KnownMoments,
    KnownReading,
    KnownWork,
    change_origin,
    solve_semidefinite,
)
from mixfold.families.component import Scores, Trust, dense_rows
from mixfold.families.dense import dense_work
from mixfold.families.gaussian import AMPLIFICATION_LIMIT, GaussianFamily, GaussianParams
from mixfold.families.tied import TiedGaussian
from mixfold.math.frame import Frame
from mixfold.math.lifted import Sums
from mixfold.math.missing import Patterns, conditional_scatter, patterns_of
from mixfold.math.symmetric import factorise, pack, unpack

_TIED = TiedGaussian()


@dataclass(frozen=True)
class KnownRows(GaussianFamily):
    """p(x | k) = N(x; mu_k, Sigma) with Sigma given."""

    matrix: ClassVar[bool] = True

    @abstractmethod
    def known_covariance(self, frame: Frame) -> Array:
        """Sigma (D, D) in frame coordinates."""

    # ------------------------------------------------ parameters

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> GaussianParams:
        count = np.maximum(resp.sum(axis=0)[:, None], np.finfo(float).tiny)
        return GaussianParams(frame, (resp.T @ U) / count, self.known_covariance(frame))

    def estimate(
        self, moments: KnownMoments, previous: GaussianParams
    ) -> tuple[GaussianParams, Array]:
        shift, known = solve_semidefinite(moments.matrices(), moments.linear)
        means = np.where(known, moments.origin + shift, previous.means)
        return replace(previous, means=means), np.zeros(len(means), bool)

    def covariances(self, params: GaussianParams) -> Array:
        return _TIED.covariances(params)

    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        return _TIED.from_covariances(frame, means, covariances)

    def precisions(self, params: GaussianParams) -> tuple[Array, Array]:
        return _TIED.precisions(params)

    def dense(self, params: GaussianParams) -> Array:
        return _TIED.dense(params)

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return (n_features, n_features)

    def _keep(self, scatter: Array, which: Array) -> Array:
        return scatter

    def place(self, params: GaussianParams, where: Array, points: Array) -> GaussianParams:
        return _TIED.place(params, where, points)

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features

    def coordinates(self, params: GaussianParams) -> Array:
        return np.ravel(params.means).copy()

    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams:
        return replace(params, means=vector.reshape(params.means.shape))

    def derivatives(
        self, params: GaussianParams, moments: KnownMoments
    ) -> tuple[Array, KnownMetric]:
        gradient, _ = moments.about(params.means)
        # a column that no row has leaves no slope either: any positive number serves
        _, whiten = factorise(params.scatter[None])
        least = 1e-300 * whiten @ np.swapaxes(whiten, 1, 2)
        return np.ravel(gradient), KnownMetric(np.linalg.cholesky(moments.matrices() + least))

    # ------------------------------------------------ E step

    def mode(self, params: GaussianParams) -> KnownReading:
        reading = _TIED.mode(params)
        return KnownReading(
            **{f.name: getattr(reading, f.name) for f in fields(reading) if f.init},
            height=float(reading.constant[0]),
            covariance=params.scatter,
        )

    def scores(self, tile: Block, reading: KnownReading) -> Scores:
        sure = replace(reading, constant=np.full(len(reading.means), reading.height))
        scores = _TIED.scores(tile, sure)
        rows, out = dense_work(scores.work), scores.log_density
        if reading.doubt is not None:
            out = out - 0.5 * _traces(rows.patterns, len(out), reading)
        return Scores(out, KnownWork(rows, scores.log_density))

    def log_density(self, block: Block, reading: KnownReading) -> Array:
        if block.complete:
            return _TIED.log_density(block, reading)
        return self.scores(block, reading).log_density

    def trust(self, reading: KnownReading, dtype: np.dtype[Any]) -> Trust:
        return _TIED.trust(reading, dtype)

    def log_ratios(self, block: Block, reading: KnownReading, reference: int) -> Array:
        sure = replace(reading, constant=np.full(len(reading.means), reading.height))
        out = _TIED.log_ratios(block, sure, reference)
        if reading.doubt is not None:
            U = reading.frame.enter(dense_rows(block.X))
            patterns = None if block.complete else patterns_of(U)
            traces = _traces(patterns, len(out), reading)
            out = out - 0.5 * (traces - traces[:, reference, None])
        return np.asarray(out)

    def moments(self, scores: Scores, resp: Array, reading: KnownReading) -> KnownMoments:
        work: KnownWork = scores.work
        rows, count = work.rows, resp.sum(axis=0)
        careful = reading.amplification > AMPLIFICATION_LIMIT
        if rows.patterns is None:
            first = resp.T @ rows.U - count[:, None] * reading.means
            for k in np.flatnonzero(careful):
                first[k] = resp[:, k] @ (rows.U - reading.means[k])
            curvature = count[:, None] * pack(reading.precision())
        else:
            first = np.stack([r @ d for r, d in zip(resp.T, rows.deviations, strict=True)])
            seen = replace(rows.patterns, missing=~rows.patterns.missing)
            # what gives the conditional covariance of gaps gives the precision of what is seen
            each = (conditional_scatter(seen, reading.known(), r) for r in resp.T.copy())
            curvature = pack(np.stack(list(each)))
        base = float(np.sum(resp * work.log_density, where=resp > 0))
        # well-conditioned components about the common origin, as the kernel has them
        origin = np.where(careful[:, None], reading.means, 0.0)
        own = KnownMoments(first @ reading.precision(), curvature, base, reading.means)
        return change_origin(own, origin)

    def fused_pass(
        self, block: Block, reading: KnownReading, log_weights: Array
    ) -> tuple[KnownMoments, Sums] | None:
        result = _TIED.fused_pass(block, reading, log_weights)
        if result is None:
            return None
        moments, sums = result
        precision = reading.precision()
        second = unpack(moments.second, len(precision))
        base = sums.weight * reading.height - 0.5 * float(np.sum(precision * second))
        curvature = sums.moments[:, :1] * pack(precision)
        return KnownMoments(moments.first @ precision, curvature, base, moments.origin), sums

    def about_frame(self, moments: KnownMoments) -> KnownMoments:
        return change_origin(moments, np.zeros_like(moments.origin))

    # ------------------------------------------------ using a fit

    def complete_rows(
        self, scores: Scores, reading: KnownReading, component: int, normals: Array | None
    ) -> Array:
        rows = Scores(scores.log_density, scores.work.rows)
        return _TIED.complete_rows(rows, reading, component, normals)

    def condition(
        self, params: GaussianParams, known: Array, values: Array
    ) -> tuple[Array, GaussianParams]:
        return _TIED.condition(params, known, values)

    def sample(self, params: GaussianParams, labels: Array, normals: Array) -> Array:
        return _TIED.sample(params, labels, normals)


def _traces(patterns: Patterns | None, n_rows: int, reading: KnownReading) -> Array:
    """tr(A_n doubt_k) of each row, (n, K)."""
    assert reading.doubt is not None
    if patterns is None:
        whole = np.einsum("kde,de->k", reading.doubt, reading.precision())
        return np.broadcast_to(whole, (n_rows, len(whole)))
    each = np.empty((len(patterns.missing), len(reading.doubt)))
    for p, missing in enumerate(patterns.missing):
        seen = np.flatnonzero(~missing)
        inverse = np.linalg.inv(reading.known()[np.ix_(seen, seen)])
        each[p] = np.einsum("kde,de->k", reading.doubt[:, seen[:, None], seen], inverse)
    out = np.empty((n_rows, len(reading.doubt)))
    out[patterns.order] = np.repeat(each, np.diff(patterns.start), axis=0)
    return out
