"""Families whose log density is linear in the entries of a row: everything that follows from it.

    log p(x | k) = log h(x) + sum over observed d of (x_d slope_kd + offset_kd)

Columns are independent given the component (or, for shares, rows have no missing entries), so a
missing entry takes its terms out of the sum. The E step is a product with the slopes and the M step
R'X, by the lifted kernel for dense rows and from the stored entries for sparse ones.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr

from mixfold.contracts import Array, Block, Metric
from mixfold.families.component import ComponentFamily, Scores, dense_rows
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.exponential.passes import plain_scores, scores_of, sums_of, whole_pass
from mixfold.families.exponential.records import (
    LinearMoments,
    LinearParams,
    LinearReading,
    LinearWork,
)
from mixfold.families.exponential.start_points import compact
from mixfold.families.exponential.support import refuse
from mixfold.families.gaussian import DiagonalMetric, flat
from mixfold.math.frame import FAR_AWAY, Frame, far_rows, plain_frame
from mixfold.math.lifted import Sums

# uniforms for inverse distribution functions stay off 0 and 1
_LEAST, _MOST = np.finfo(float).tiny, 1 - np.finfo(float).epsneg


# of an average row, for components of rows far away
_TRACE = 1e-3


@dataclass(frozen=True)
class LinearFamily(ComponentFamily):
    """A family whose log density is linear in the entries. ``floor`` has no meaning here.

    By itself it is fitted by maximum likelihood. ``ConjugateLinearFamily`` adds the prior.
    """

    # ------------------------------------------------ what a family says

    def column_constants(self, n_features: int) -> Array:
        """What the family is told of each column (D,): trials, exposure, shape, categories."""
        return np.ones(n_features)

    @abstractmethod
    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        """Means (K, D) of components; ``like`` are means of the same components, where the
        coordinates do not settle them."""

    @abstractmethod
    def point_of(self, first: Array, count: Array, size: Array) -> Array:
        """theta that maximises the likelihood of sums; NaN in columns without any rows."""

    @abstractmethod
    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        """``slope`` and ``offset`` of given coordinates."""

    @abstractmethod
    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        """The nearest coordinates that a component can have."""

    @abstractmethod
    def gradient_and_information(
        self, params: LinearParams, moments: LinearMoments
    ) -> tuple[Array, Array]:
        """Gradient of the log likelihood in theta, and the information of the complete data."""

    @abstractmethod
    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        """Rows (n, D) by inversion of distribution functions, one row of means and theta each."""

    @abstractmethod
    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        """A row for each row of means and theta."""

    @abstractmethod
    def fault(self, x: Array, size: Array) -> Array:
        """Which entries no component can produce; ``size`` is that of the column of each."""

    @abstractmethod
    def rule(self, size: float) -> str:
        """What entries of a column must be, in words."""

    def log_base(self, block: Block, size: Array) -> Array | None:
        """log h(x) (n,) of the observed entries; None where it is zero."""
        return None

    def expand_block(self, block: Block, size: Array) -> Block:
        """The rows in which the density is linear."""
        return block

    def points(self, X: Array) -> Array:
        """Rows as points whose distances mean something; NaN is missing."""
        return np.asarray(X, float)

    # ------------------------------------------------ parameters

    def view(self, frame: Frame, X: Array) -> Array:
        return compact(self.points(X))

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        return plain_frame(X.shape[1])

    def bulk(self, X: Array, weight: Array) -> Frame:
        # entries are counts: a difference of one is none, and most columns of texts, say, hold
        # none that can be far away
        top = np.nan_to_num(np.where(np.isnan(X), -np.inf, X).max(axis=0), neginf=0.0)
        some = np.flatnonzero(top > FAR_AWAY)
        origin, scale = np.zeros(X.shape[1]), np.full(X.shape[1], np.inf)
        if some.size:
            bulk = super().bulk(X[:, some], weight)
            origin[some], scale[some] = bulk.origin, np.maximum(bulk.scale, 1.0)
        return Frame(origin, scale)

    def entries(self, moments: LinearMoments, counts: Array) -> Array:
        return moments.count

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return n_components + n_features

    def numbers_of_row(self, block: Block, reading: Any) -> int:
        if issparse(block.X):
            return max(1, int(block.X.nnz) // max(1, block.n_rows))
        return super().numbers_of_row(block, reading)

    def check(self, block: Block, names: Array | None) -> None:
        refuse(block, names, self.column_constants(block.X.shape[1]), self.fault, self.rule)

    def change_frame(self, params: LinearParams, frame: Frame) -> LinearParams:
        return params  # there is one frame: data coordinates

    def with_theta(self, params: LinearParams, theta: Array) -> LinearParams:
        """Other coordinates."""
        theta = self.clip_coordinates(theta, params.size)
        means = self.of_theta(theta, params.size, params.means)
        return replace(params, theta=theta, means=means)

    def estimate(
        self, moments: LinearMoments, previous: LinearParams
    ) -> tuple[LinearParams, Array]:
        theta = self.point_of(moments.first, moments.count, previous.size)
        lacking = np.isnan(theta)
        if lacking.any():
            theta = np.where(lacking, previous.theta, theta)
        like = self.like(moments, previous.means)
        means = self.of_theta(theta, previous.size, like)
        params = LinearParams(previous.frame, means, theta, previous.size)
        return params, np.zeros(params.n_components, bool)

    def like(self, moments: LinearMoments, means: Array) -> Array:
        """Means with whatever theta does not settle taken from the moments."""
        return means

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> LinearParams:
        return self.from_rows(frame, U, U, resp)

    def from_rows(self, frame: Frame, X: Array, U: Array, resp: Array) -> LinearParams:
        size = self.column_constants(X.shape[1])
        block = Block(X, complete=not np.isnan(X).any())
        work = LinearWork(block, self.expand_block(block, size), None)
        moments = sums_of(work, resp)
        # an average row more: what a small sample lacks is rare, not impossible
        far = far_rows(X, self.bulk(X, resp.sum(axis=1)))
        near = sums_of(work, resp * ~far[:, None]) if far.any() else moments
        total = near.count.sum(axis=0)
        row = near.first.sum(axis=0) / np.maximum(total, np.finfo(float).tiny)
        # of which a component of rows far away alone has but a trace
        part = np.where(near.count.max(axis=1) > 0, 1.0, _TRACE)[:, None]
        theta = self.point_of(moments.first + part * row, moments.count + part * (total > 0), size)
        theta = self.clip_coordinates(np.nan_to_num(theta, nan=0.0), size)
        like = self.like(moments, np.repeat(row[None], len(theta), axis=0))
        return LinearParams(frame, self.of_theta(theta, size, like), theta, size)

    def select(self, params: LinearParams, which: Array) -> LinearParams:
        return replace(params, means=params.means[which], theta=params.theta[which])

    def place(self, params: LinearParams, where: Array, points: Array) -> LinearParams:
        rest = np.setdiff1d(np.arange(params.n_components), where)
        others = params.means[rest if rest.size else where].mean(axis=0)
        rows = dense_rows(self.expand_block(Block(points), params.size).X)
        typical = self.typical(params, rest if rest.size else where)
        # halfway between the row and the average component, which forbids nothing
        fresh = self.point_of((rows + typical) / 2, np.ones((len(rows), 1)), params.size)
        theta, means = params.theta.copy(), params.means.copy()
        theta[where] = self.clip_coordinates(fresh, params.size)
        like = np.repeat(others[None], len(rows), axis=0)
        means[where] = self.of_theta(theta[where], params.size, like)
        return replace(params, theta=theta, means=means)

    def typical(self, params: LinearParams, which: Array) -> Array:
        """The average row of some components, as ``expand_block`` has it."""
        return np.asarray(params.means[which].mean(axis=0))

    def coordinates(self, params: LinearParams) -> Array:
        return params.theta.ravel()

    def from_coordinates(self, params: LinearParams, vector: Array) -> LinearParams:
        return self.with_theta(params, vector.reshape(params.theta.shape))

    def derivatives(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        gradient, information = self.gradient_and_information(params, moments)
        return flat(gradient), DiagonalMetric(flat(information))

    # ------------------------------------------------ E step

    def mode(self, params: LinearParams) -> LinearReading:
        return self.reading(*self.linear(params.theta, params.size), params)

    def reading(self, slope: Array, offset: Array, params: LinearParams) -> LinearReading:
        """What the E step reads of slopes and offsets; the kernels take slopes by columns."""
        return LinearReading(params.frame, np.asfortranarray(slope), offset, params)

    def _work(self, block: Block, reading: LinearReading) -> LinearWork:
        size = reading.params.size
        return LinearWork(block, self.expand_block(block, size), self.log_base(block, size))

    def scores(self, tile: Block, reading: LinearReading) -> Scores:
        work = self._work(tile, reading)
        return Scores(plain_scores(work, reading), work)

    def log_density(self, block: Block, reading: LinearReading) -> Array:
        return scores_of(self._work(block, reading), reading)

    def moments(self, scores: Scores, resp: Array, reading: LinearReading) -> LinearMoments:
        return sums_of(scores.work, resp)

    def fused_pass(
        self, block: Block, reading: LinearReading, log_weights: Array
    ) -> tuple[LinearMoments, Sums] | None:
        return whole_pass(self._work(block, reading), reading, log_weights)

    def about_frame(self, moments: LinearMoments) -> LinearMoments:
        return moments

    # ------------------------------------------------ using a fit

    def complete_rows(
        self, scores: Scores, reading: LinearReading, component: int, normals: Array | None
    ) -> Array:
        X, params = dense_rows(scores.work.tile.X).astype(float), reading.params
        entry = np.broadcast_to(params.means[component], X.shape)
        if normals is not None:
            theta = np.broadcast_to(params.theta[component], (len(X), params.theta.shape[1]))
            entry = self.quantile(uniforms(normals), entry, theta, params.size)
        return np.where(np.isnan(X), entry, X)

    def condition(
        self, params: LinearParams, known: Array, values: Array
    ) -> tuple[Array, LinearParams]:
        row = np.full((1, params.n_features), np.nan)
        row[0, known] = values
        log_density = self.scores(Block(row, complete=False), self.mode(params)).log_density[0]
        return log_density, self.columns(params, np.setdiff1d(np.arange(row.size), known))

    def columns(self, params: LinearParams, which: Array) -> LinearParams:
        """The components of some of the columns."""
        theta = params.theta[:, which]
        frame = plain_frame(len(which))
        return LinearParams(frame, params.means[:, which], theta, params.size[which])

    def sample(self, params: LinearParams, labels: Array, normals: Array) -> Array:
        means, theta = params.means[labels], params.theta[labels]
        return self.quantile(uniforms(normals), means, theta, params.size)

    def draw_rows(self, params: LinearParams, labels: Array, rng: np.random.Generator) -> Array:
        return self.emit(params.means[labels], params.theta[labels], params.size, rng)


@dataclass(frozen=True)
class ConjugateLinearFamily(LinearFamily, ConjugateFamily):
    """A linear family with a conjugate prior: see ``PairFamily`` and ``SimplexFamily``."""

    def change_frame_of_prior(self, prior: Any, old: Frame, new: Frame) -> Any:
        return prior  # there is one frame: data coordinates

    def change_frame_of_posterior(self, posterior: Any, frame: Frame) -> Any:
        return posterior

    def condition_predictive(
        self, posterior: Any, known: Array, values: Array
    ) -> tuple[Array, ComponentFamily, Any]:
        """Columns are independent given the component: what is known of some tells only which."""
        rest = np.setdiff1d(np.arange(posterior.n_features), known)
        family = self.for_columns(rest, posterior.n_features)
        log_density = self._log_predictive_of(posterior, known, values)
        return log_density, family, self.posterior_of_columns(posterior, rest)

    @abstractmethod
    def posterior_of_columns(self, posterior: Any, which: Array) -> Any:
        """The posterior of some of the columns."""

    def average(self, moments: LinearMoments, reading: LinearReading) -> float:
        linear = float((moments.first * reading.slope).sum())
        return moments.base + linear + float((moments.count * reading.offset).sum())


def uniforms(normals: Array) -> Array:
    """Standard normals as uniforms inside (0, 1)."""
    return np.asarray(np.clip(ndtr(normals), _LEAST, _MOST))
