"""Families whose covariances are not diagonal: the triangular route and missing entries.

The fast kernels belong to the subclasses; here is the route that is exact for any block:
ill-conditioned components, missing entries, sparse rows, many columns.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.families.component import Scores, Trust, dense_rows
from mixfold.families.gaussian import (
    AMPLIFICATION_LIMIT,
    GaussianFamily,
    GaussianParams,
    Moments,
    flat,
    gaussian_trust,
    robust_gaps,
    tile_width,
)
from mixfold.math.frame import Frame
from mixfold.math.lifted import lifted_scores, product_features
from mixfold.math.missing import (
    Patterns,
    add_conditional_draws,
    complete,
    conditional_scatter,
    patterns_of,
)
from mixfold.math.symmetric import (
    LOG_2PI,
    factorise,
    log_determinants,
    lower_triangle,
    pack,
    within_range,
)
from mixfold.math.triangular import squared_norms, weighted_gram

# beyond this many columns the packed products of a tile leave the cache and cost more than they
# save
LIFT_LIMIT = 300


@dataclass(frozen=True, slots=True)
class DenseReading:
    """``whiten[k]`` = A with A A' the precision; ``constant`` the log density at the mean."""

    frame: Frame
    means: Array
    whiten: Array
    constant: Array
    amplification: Array
    # over (1, u_d, u_d u_e), if the components are to be scored that way
    theta: Array | None = None
    # how far scores can be relied on, by type of the rows: the same for every block of a pass
    trusts: dict[Any, Trust] = field(default_factory=dict, init=False, compare=False)


@dataclass(frozen=True, slots=True)
class _Work:
    """Rows in frame coordinates; with missing entries also their patterns and completions, and the
    log densities (n, K) of the entries that are seen at the means."""

    U: Array
    patterns: Patterns | None = None
    deviations: tuple[Array, ...] = ()
    heights: Array | None = None


def read_dense(
    frame: Frame, means: Array, covariances: Array, known: tuple[Array, Array] | None = None
) -> DenseReading:
    """Factors of (K, D, D) covariances in frame coordinates, or those that are ``known``."""
    factors, whiten = known or factorise(covariances)
    size = means.shape[1]
    constant = -0.5 * (size * LOG_2PI + log_determinants(factors)) - frame.log_scale.sum()
    # the size of the terms whose sum is the quadratic form, at a typical row of the component
    reach = np.abs(means) + np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    precisions = whiten @ np.swapaxes(whiten, -1, -2)
    amplification = (reach * (np.abs(precisions) @ reach[:, :, None])[..., 0]).sum(axis=1)
    theta = None
    if size <= LIFT_LIMIT and (amplification <= AMPLIFICATION_LIMIT).all():
        theta = lifted_theta(precisions, means, constant)
    return DenseReading(frame, means, whiten, constant, amplification, theta)


@cache
def _halved_diagonal(size: int) -> Array:
    return np.where(np.eye(size, dtype=bool), 0.5, 1.0)


def lifted_theta(precisions: Array, means: Array, constant: Array) -> Array:
    """The log density of each component as a row over (1, u_d, u_d u_e)."""
    linear = np.einsum("kde,ke->kd", precisions, means)
    offset = constant - 0.5 * np.einsum("kd,kd->k", linear, means)
    # off-diagonal products stand once in the features and twice in the form
    quadratic = -pack(precisions * _halved_diagonal(means.shape[1]))
    if len(quadratic) < len(means):  # one precision for all
        quadratic = np.repeat(quadratic, len(means), axis=0)
    return np.concatenate([offset[:, None], linear, quadratic], axis=1)


def about(points: Array, moments: Moments, second: Array) -> tuple[Array, Array, Array]:
    """Count (K,), first and second (K, D, D) moments about the given points (K, D)."""
    shift = points - moments.origin
    count = moments.count[:, 0]
    cross = moments.first[:, :, None] * shift[:, None, :]
    own = (count[:, None] * shift)[:, :, None] * shift[:, None, :]
    second = second - cross - np.swapaxes(cross, 1, 2) + own
    return count, moments.first - count[:, None] * shift, second


def distance_gaps(U: Array, means: Array, whiten: Array, reference: int) -> Array:
    """Q_k - Q_r (n, K) of rows with Q_k = |A_k'(u - mu_k)|^2, as (y_k - y_r)'(y_k + y_r).

    The difference of the whitened rows is made of A_k - A_r and mu_r - mu_k, so that what two
    components share is taken out before it meets the row.
    """
    return robust_gaps(U - means[reference], partial(_gaps, means, whiten, reference))


def _gaps(means: Array, whiten: Array, reference: int, V: Array, unit: Array, rows: Any) -> Array:
    """``distance_gaps`` of rows that are V / unit (n, 1) from the reference, times unit^2."""
    out, first = np.empty((len(V), len(means))), whiten[reference]
    for k, (mean, factor) in enumerate(zip(means, whiten, strict=True)):
        moved = unit * ((means[reference] - mean) @ factor)
        apart = V @ (factor - first) + moved
        out[:, k] = (apart * (V @ (factor + first) + moved)).sum(axis=1)
    return out


def marginal_factors(whiten: Array, seen: Array) -> tuple[Array, Array]:
    """Factors of the precisions of some columns, and ln|Lambda_mm| of the others (K,).

    Equal factors give equal ones, bit by bit.
    """
    roots = np.swapaxes(np.linalg.inv(whiten), 1, 2)  # Sigma = A^-T A^-1
    own = roots[:, seen]
    factors, marginal = factorise(own @ np.swapaxes(own, 1, 2))
    whole = 2 * np.log(np.abs(np.diagonal(whiten, axis1=1, axis2=2))).sum(axis=1)
    return marginal, log_determinants(factors) + whole


@record
@dataclass(frozen=True, slots=True)
class DenseMetric:
    """Inverse information of the complete data in (means, log-Cholesky) coordinates.

    A relative change E of a factor, L -> L (I + E), has information ``count`` off the diagonal
    and twice that on it, whatever L is; a mean has information count / covariance.
    """

    factors: Array
    counts: Array
    shares: Array

    def solve(self, gradient: Array) -> Array:
        size = self.factors.shape[-1]
        split = len(self.counts) * size
        turned = np.swapaxes(self.factors, 1, 2)
        by_mean = gradient[:split].reshape(-1, size, 1)
        means = (self.factors @ (turned @ by_mean))[..., 0] / self.counts[:, None]
        row, column, on = lower_triangle(size)
        diagonal = np.einsum("kdd->kd", self.factors)
        by_factor = gradient[split:].reshape(len(self.factors), -1).copy()
        by_factor[:, on] /= diagonal
        lower = np.zeros_like(self.factors)
        lower[:, row, column] = by_factor
        relative = (turned @ lower) * (_lower_information(size) / self.shares[:, None, None])
        change = (self.factors @ relative)[:, row, column]
        change[:, on] /= diagonal
        return flat(means, change)


@cache
def _lower_information(size: int) -> Array:
    """Inverse information of each entry of a relative change, for one row; 0 above the diagonal."""
    return np.tril(np.ones((size, size))) - 0.5 * np.eye(size)


def slopes(
    known: tuple[Array, Array], count: Array, first: Array, second: Array
) -> tuple[Array, DenseMetric]:
    """Gradient and metric in (means, log-Cholesky) coordinates.

    The ``factorise``d covariances and ``second`` have one entry per component, or one for all.
    """
    factors, whiten = known
    precisions = whiten @ np.swapaxes(whiten, 1, 2)
    shares = count if len(factors) == len(count) else count.sum(keepdims=True)
    slope = precisions @ second @ whiten - shares[:, None, None] * whiten
    row, column, on = lower_triangle(factors.shape[-1])
    by_factor = slope[:, row, column]
    by_factor[:, on] *= factors[:, row[on], row[on]]
    by_mean = (precisions @ first[:, :, None])[..., 0]
    safe = np.finfo(float).tiny
    metric = DenseMetric(factors, np.maximum(count, safe), np.maximum(shares, safe))
    return flat(by_mean, by_factor), metric


@dataclass(frozen=True)
class DenseGaussian(GaussianFamily):
    """Shared by the full and the tied family."""

    matrix: ClassVar[bool] = True

    def mode(self, params: GaussianParams) -> DenseReading:
        """Made once for a point: estimators are asked for it again and again."""
        if "reading" not in params.known:
            known = self.factors(params)
            reading = read_dense(params.frame, params.means, self.dense(params), known)
            params.known["reading"] = reading
        found: DenseReading = params.known["reading"]
        return found

    def factors(self, params: GaussianParams) -> tuple[Array, Array]:
        """``factorise`` of the covariances, (K, D, D) or one for all; made once for a point."""
        if "factors" not in params.known:
            size = params.n_features
            params.known["factors"] = factorise(params.scatter.reshape(-1, size, size))
        found: tuple[Array, Array] = params.known["factors"]
        return found

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> GaussianParams:
        _, size = U.shape
        start = GaussianParams(
            frame, np.zeros((resp.shape[1], size)), self._unit(resp.shape[1], size)
        )
        reading = self.mode(start)
        count = resp.sum(axis=0)[:, None]
        first = np.stack([share @ U for share in resp.T])
        means = np.divide(first, count, out=np.zeros_like(first), where=count > 0)
        # about the means: a start may have clusters that are tiny beside the spread of the data
        centred = DenseReading(
            frame, means, reading.whiten, reading.constant, np.full(len(means), np.inf)
        )
        params: GaussianParams = self.estimate(self._sum(_Work(U), resp, centred), start)[0]
        return params

    @abstractmethod
    def _unit(self, n_components: int, n_features: int) -> Array:
        """Unit covariances in the family's shape."""

    @abstractmethod
    def _pool(self, count: Array, first: Array, second: Array, origin: Array) -> Moments:
        """Moments of the family from (K, D, D) second moments."""

    def _kernel_can(self, block: Block, reading: DenseReading) -> bool:
        well = bool((reading.amplification <= AMPLIFICATION_LIMIT).all())
        return well and block.complete and isinstance(block.X, np.ndarray)

    def log_density(self, block: Block, reading: DenseReading) -> Array:
        if reading.theta is None or not self._kernel_can(block, reading):
            return self.scores(block, reading).log_density
        width = tile_width(block.X.dtype, reading.amplification.max())
        features = product_features(reading.means.shape[1])
        return lifted_scores(block, reading.frame, features, reading.theta.astype(width))

    def scores(self, tile: Block, reading: DenseReading) -> Scores:
        U = reading.frame.enter(dense_rows(tile.X))
        if not tile.complete:
            return self._scores_missing(U, reading)
        out = np.empty((len(U), len(reading.means)))
        for k, (mean, whiten) in enumerate(zip(reading.means, reading.whiten, strict=True)):
            out[:, k] = reading.constant[k] - 0.5 * squared_norms(U - mean, whiten)
        return Scores(out, _Work(U))

    def _scores_missing(self, U: Array, reading: DenseReading) -> Scores:
        patterns = patterns_of(U)
        missing = np.isnan(U)
        # an entry that is not seen gives back its share of the constant
        unseen = missing @ (0.5 * LOG_2PI + reading.frame.log_scale)
        out, deviations = np.empty((len(U), len(reading.means))), []
        heights = np.empty_like(out)
        for k, (mean, whiten) in enumerate(zip(reading.means, reading.whiten, strict=True)):
            deviation, log_det = complete(U, patterns, mean, whiten @ whiten.T)
            heights[:, k] = reading.constant[k] + unseen - 0.5 * log_det
            out[:, k] = heights[:, k] - 0.5 * squared_norms(deviation, whiten)
            deviations.append(deviation)
        return Scores(out, _Work(U, patterns, tuple(deviations), heights))

    def trust(self, reading: DenseReading, dtype: np.dtype[Any]) -> Trust:
        if dtype not in reading.trusts:
            single = tile_width(dtype, reading.amplification.max()) == np.float32
            reading.trusts[dtype] = gaussian_trust(
                reading.constant, reading.amplification, reading.means.shape[1], single
            )
        return reading.trusts[dtype]

    def log_ratios(self, block: Block, reading: DenseReading, reference: int) -> Array:
        U = reading.frame.enter(dense_rows(block.X))
        constant = reading.constant - reading.constant[reference]
        if block.complete:
            return np.asarray(
                constant - 0.5 * distance_gaps(U, reading.means, reading.whiten, reference)
            )
        out = np.empty((len(U), len(reading.means)))
        patterns = patterns_of(U)
        for p, missing in enumerate(patterns.missing):
            rows = patterns.order[patterns.start[p] : patterns.start[p + 1]]
            seen = np.flatnonzero(~missing)
            if not seen.size:
                out[rows] = constant
                continue
            whiten, log_det = marginal_factors(reading.whiten, seen)
            gaps = distance_gaps(U[rows][:, seen], reading.means[:, seen], whiten, reference)
            out[rows] = constant - 0.5 * (log_det - log_det[reference] + gaps)
        return out

    def moments(self, scores: Scores, resp: Array, reading: DenseReading) -> Moments:
        return self._sum(dense_work(scores.work), resp, reading)

    def _sum(self, work: _Work, resp: Array, reading: DenseReading) -> Moments:
        size = reading.means.shape[1]
        # well-conditioned components about the common origin, so that all blocks agree with the
        # kernel
        careful = reading.amplification > AMPLIFICATION_LIMIT
        origin = np.where(careful[:, None], reading.means, 0.0)
        first = np.empty(reading.means.shape)
        second = np.empty((len(first), size, size))
        for k in range(len(first)):
            V = (work.deviations[k] + reading.means[k] if work.patterns else work.U) - origin[k]
            first[k] = resp[:, k] @ V
            second[k] = weighted_gram(V, resp[:, k])
            if work.patterns is not None:
                whiten = reading.whiten[k]
                second[k] += conditional_scatter(work.patterns, whiten @ whiten.T, resp[:, k])
        count = np.repeat(resp.sum(axis=0)[:, None], size, axis=1)
        return self._pool(count, first, second, origin)

    def complete_rows(
        self, scores: Scores, reading: DenseReading, component: int, normals: Array | None
    ) -> Array:
        work = dense_work(scores.work)
        if work.patterns is None:
            return work.U
        filled = work.deviations[component].copy()
        if normals is not None:
            whiten = reading.whiten[component]
            add_conditional_draws(work.patterns, whiten @ whiten.T, normals, filled)
        return np.asarray(filled + reading.means[component])

    def condition(
        self, params: GaussianParams, known: Array, values: Array
    ) -> tuple[Array, GaussianParams]:
        frame, size = params.frame, params.n_features
        rest = np.setdiff1d(np.arange(size), known)
        seen = Frame(frame.origin[known], frame.scale[known])
        covariances = self.dense(params)
        deviation = seen.enter(values) - params.means[:, known]
        factors, _ = factorise(covariances[:, known[:, None], known])
        cross = np.linalg.solve(factors, covariances[:, known[:, None], rest])
        white = np.linalg.solve(factors, deviation[:, :, None])
        log_density = -0.5 * ((white**2).sum(axis=(1, 2)) + log_determinants(factors))
        means = params.means[:, rest] + (np.swapaxes(cross, 1, 2) @ white)[..., 0]
        left = covariances[:, rest[:, None], rest] - np.swapaxes(cross, 1, 2) @ cross
        remaining = Frame(frame.origin[rest], frame.scale[rest])
        return log_density, GaussianParams(remaining, means, self._own_shape(left))

    def precisions(self, params: GaussianParams) -> tuple[Array, Array]:
        _, whiten = self.factors(params)
        factors = (whiten / params.frame.scale[:, None]).reshape(params.scatter.shape)
        with np.errstate(over="ignore"):
            return within_range(factors @ np.swapaxes(factors, -1, -2)), factors

    @abstractmethod
    def _own_shape(self, covariances: Array) -> Array:
        """(K, D, D) in the family's shape; the inverse of ``dense``."""

    def sample(self, params: GaussianParams, labels: Array, normals: Array) -> Array:
        factors, _ = factorise(self.dense(params))
        U = params.means[labels]
        for k in np.unique(labels):
            rows = labels == k
            U[rows] += normals[rows] @ factors[k].T
        return params.frame.leave(U)


def dense_work(work: Any) -> _Work:
    """The work of ``scores`` with its type, for callers that complete rows."""
    assert isinstance(work, _Work)
    return work
