"""One output of any likelihood of a score: ordered categories, counts.

    a = V_k z + m_k,   y ~ p(y | a, shape)

Given a row the score is normal, and given y too its law is one integral in one dimension: all
moments of the latents follow from those of the score, since they are linear in it. So the E step is
exact. The M step has no closed form: it is a Newton step of the expected log-likelihood in the
loadings, the means and the shape together, which the engine shortens where the objective falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Context, Event, Stats, Update, record
from mixfold.math.output_likelihoods import Likelihood, OrderedProbit, draw, tilt
from mixfold.models.outputs.gaussian_starts import GaussianStart
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams, SupervisedStats
from mixfold.models.outputs.outputs import Latent, Replicate

# numbers that the law of a score takes for each row and component
_POINTS = 32
# steps shorter than this are none
_SHORTEST = 1e-9
# thresholds, and logarithms of an excess, change by so much at most
_SHAPE_STEP = 1.0
# added to the information, as a share of its mean
_RIDGE = 1e-10
# ln of the largest expected count: its square is a number
_LARGEST_LOG_RATE = 300.0


@record
@dataclass(frozen=True, slots=True)
class ScoreParams:
    """``loadings`` (K, 1, d), ``means`` (K, 1), and the ``shape`` (p,) that all components have."""

    loadings: Array
    means: Array
    shape: Array


@record
@dataclass(frozen=True)
class ScoreSums(Stats):
    """Slopes of the log-likelihood in (V, m) of each component and in the shape, and minus its
    second derivatives, expected given rows and outputs, at the parameters of the pass."""

    slope: Array
    information: Array
    cross: Array
    shape_slope: Array
    shape_information: Array
    count: Array


@record
@dataclass(frozen=True, slots=True)
class ScoreMetric:
    """Inverse information (P, P) in the coordinates."""

    inverse: Array

    def solve(self, gradient: Array) -> Array:
        return np.asarray(self.inverse @ gradient)


@dataclass(frozen=True, slots=True)
class _Work:
    """Of the rows ``known`` (n,) with a y: those, the law of the score and its lean on z."""

    known: Array
    y: Array
    points: Array
    shares: Array
    prior: Latent
    lean: Array
    score: Array


@dataclass(frozen=True)
class ScoreOutputs:
    """One output (n, 1), NaN where unknown, of a likelihood."""

    likelihood: Likelihood
    n_outputs: int = 1

    @property
    def tied(self) -> bool:
        return False

    def unknown(self, n_rows: int) -> Array:
        return np.full((n_rows, 1), np.nan)

    def read(self, params: ScoreParams, covariances: Array) -> ScoreParams:
        return params

    def workspace_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        return n_components * (8 * _POINTS + (n_factors + 1) ** 2)

    # ------------------------------------------------ E step

    def scores(self, latent: Latent, params: ScoreParams) -> tuple[Array, Array, Array]:
        """Mean and variance (n, K) of the score, and the lean h (n, K, d) of the latents on it.

        z = E[z] + h u + what is independent of the score, for u = (a - mean) / deviation.
        """
        v = params.loadings[:, 0]
        q = np.einsum("nkd,kd->nk", latent.means, v) + params.means[:, 0]
        along = np.einsum("nkde,ke->nkd", latent.covariances, v)
        tau2 = np.einsum("nkd,kd->nk", along, v)
        tau = np.sqrt(np.maximum(tau2, 0.0))
        h = along / np.where(tau > 0, tau, 1.0)[..., None]
        n, K, d = latent.means.shape
        return q, np.broadcast_to(tau**2, (n, K)), np.broadcast_to(h, (n, K, d))

    def replicates(self, y: Array, latent: Latent, reading: ScoreParams) -> Sequence[Replicate]:
        known = ~np.isnan(y[:, 0])
        n, K, d = latent.means.shape
        own = latent.covariances if len(latent.covariances) == 1 else latent.covariances[known]
        prior = Latent(latent.means[known], own)
        q, tau2, lean = self.scores(prior, reading)
        values = y[known]
        law = tilt(self.likelihood, values, q, tau2, reading.shape)
        u = law.mean()
        left = law.mean((law.points - u[..., None]) ** 2) - 1.0
        log_p, means = np.zeros((n, K)), latent.means.copy()
        spread = np.broadcast_to(latent.covariances, (n, K, d, d)).copy()
        log_p[known] = law.log_probability
        means[known] += u[..., None] * lean
        spread[known] += left[..., None, None] * (lean[..., :, None] * lean[..., None, :])
        score = q[..., None] + np.sqrt(tau2)[..., None] * law.points
        work = _Work(known, values, law.points, law.shares, prior, lean, score)
        share = known.astype(float)
        rest = Replicate(1.0 - share, np.zeros((n, K)), latent, None)
        return Replicate(share, log_p, Latent(means, spread), work), rest

    def sums(
        self,
        y: Array,
        replicates: Sequence[Replicate],
        resp: Sequence[Array],
        reading: ScoreParams,
    ) -> ScoreSums:
        work: _Work = replicates[0].work
        r = resp[0][work.known]
        slopes = self.likelihood.slopes(work.y[..., None], work.score, reading.shape)
        u, weight = work.points, work.shares * r[..., None]
        # z = m + h u + rest: moments of slope and curvature with 1, u and u^2
        first = [(weight * slopes.score * u**i).sum(axis=-1) for i in range(2)]
        second = [(weight * slopes.score_curvature * u**i).sum(axis=-1) for i in range(3)]
        m, h, own = work.prior.means, work.lean, work.prior.covariances
        K, d, p = m.shape[1], m.shape[2], len(reading.shape)
        slope = np.zeros((K, d + 1))
        slope[:, :d] = np.einsum("nk,nkd->kd", first[0], m) + np.einsum("nk,nkd->kd", first[1], h)
        slope[:, d] = first[0].sum(axis=0)
        information = np.zeros((K, d + 1, d + 1))
        around = np.einsum("nk,nkd,nke->kde", second[1], m, h)
        inner = np.einsum("nk,nkd,nke->kde", second[0], m, m) + around + np.swapaxes(around, 1, 2)
        inner += np.einsum("nk,nkd,nke->kde", second[2] - second[0], h, h)
        inner += np.einsum("nk,nkde->kde", second[0], np.broadcast_to(own, (len(m), K, d, d)))
        information[:, :d, :d] = inner
        across = np.einsum("nk,nkd->kd", second[0], m) + np.einsum("nk,nkd->kd", second[1], h)
        information[:, :d, d] = information[:, d, :d] = across
        information[:, d, d] = second[0].sum(axis=0)
        cross = np.zeros((K, d + 1, p))
        for j in range(p):
            with_shape = [(weight * slopes.cross[j] * u**i).sum(axis=-1) for i in range(2)]
            cross[:, :d, j] = np.einsum("nk,nkd->kd", with_shape[0], m)
            cross[:, :d, j] += np.einsum("nk,nkd->kd", with_shape[1], h)
            cross[:, d, j] = with_shape[0].sum(axis=0)
        shape_slope = (weight * slopes.shape).sum(axis=(1, 2, 3))
        shape_information = (weight * slopes.shape_curvature).sum(axis=(2, 3, 4))
        return ScoreSums(slope, information, cross, shape_slope, shape_information, r.sum(axis=0))

    # ------------------------------------------------ M step

    def update(
        self, sums: ScoreSums, params: ScoreParams, relevance: Array | None = None
    ) -> ScoreParams:
        return self.step(sums, params, 1.0, relevance)

    def step(
        self, sums: ScoreSums, params: ScoreParams, length: float, relevance: Array | None = None
    ) -> ScoreParams:
        """A part of a Newton step; shorter where there is no such shape."""
        sums = self._with_prior(sums, params, relevance)
        change = np.linalg.solve(self._information(sums), self._slope(sums))
        v, m, shape = self._split(change, params)
        shape = np.clip(shape, -_SHAPE_STEP, _SHAPE_STEP)
        while length > _SHORTEST:
            fresh = params.shape + length * shape
            if self.likelihood.is_valid(fresh):
                return ScoreParams(params.loadings + length * v, params.means + length * m, fresh)
            length *= 0.5
        return params

    def _with_prior(
        self, sums: ScoreSums, params: ScoreParams, relevance: Array | None
    ) -> ScoreSums:
        """The sums, and what a prior N(0, 1 / relevance) of the loadings adds to them."""
        if relevance is None:
            return sums
        K, _, d = params.loadings.shape
        precision = np.broadcast_to(relevance, (K, d))
        slope, information = sums.slope.copy(), sums.information.copy()
        slope[:, :d] -= precision * params.loadings[:, 0]
        information[:, range(d), range(d)] += precision
        return replace(sums, slope=slope, information=information)

    def squares_of(self, params: ScoreParams) -> Array:
        return self.information(params)

    def n_loadings(self, params: ScoreParams) -> int:
        return int(params.loadings.shape[1])

    def _slope(self, sums: ScoreSums) -> Array:
        return np.concatenate([sums.slope.ravel(), sums.shape_slope])

    def _information(self, sums: ScoreSums) -> Array:
        """Of all parameters together, positive definite."""
        K, size = sums.slope.shape
        total = K * size + len(sums.shape_slope)
        out = np.zeros((total, total))
        for k in range(K):
            own = slice(k * size, (k + 1) * size)
            out[own, own] = sums.information[k]
            out[own, K * size :] = sums.cross[k]
            out[K * size :, own] = sums.cross[k].T
        out[K * size :, K * size :] = sums.shape_information
        diagonal = np.diagonal(out)
        least = max(float(diagonal.mean()) * _RIDGE, np.finfo(float).tiny)
        return np.asarray(out + np.diag(np.where(diagonal > 0, least, 1.0)))

    def _split(self, vector: Array, params: ScoreParams) -> tuple[Array, Array, Array]:
        """Loadings, means and shape of a vector of slopes."""
        K, _, d = params.loadings.shape
        both = vector[: K * (d + 1)].reshape(K, d + 1)
        return both[:, None, :d], both[:, d:], vector[K * (d + 1) :]

    def transform_latents(self, params: ScoreParams, mean: Array, root: Array) -> ScoreParams:
        shape = params.loadings.shape[::2]
        shift = np.einsum("kld,kd->kl", params.loadings, np.broadcast_to(mean, shape))
        return replace(params, loadings=params.loadings @ root, means=params.means + shift)

    def penalty(self, params: ScoreParams) -> float:
        return 0.0

    def information(self, params: ScoreParams) -> Array:
        return np.swapaxes(params.loadings, 1, 2) @ params.loadings

    def n_free(self, n_components: int, n_factors: int) -> int:
        return n_components * (n_factors + 1) + self.likelihood.n_shape

    def without_reference(self, sums: ScoreSums) -> ScoreSums:
        raise TypeError("slopes at the parameters of a pass say nothing about other parameters")

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: ScoreParams) -> Array:
        """Loadings and mean of each component, then the shape without constraints."""
        both = np.concatenate([params.loadings[:, 0], params.means], axis=1)
        return np.concatenate([both.ravel(), self.likelihood.coordinates(params.shape)])

    def from_coordinates(self, params: ScoreParams, vector: Array) -> ScoreParams:
        v, m, free = self._split(vector, params)
        return ScoreParams(v, m, self.likelihood.from_coordinates(free))

    def derivatives(
        self, params: ScoreParams, sums: ScoreSums, relevance: Array | None = None
    ) -> tuple[Array, ScoreMetric]:
        sums = self._with_prior(sums, params, relevance)
        size = sums.slope.size
        turn = np.eye(size + len(params.shape))
        turn[size:, size:] = self.likelihood.jacobian(params.shape)
        information = turn.T @ self._information(sums) @ turn
        return turn.T @ self._slope(sums), ScoreMetric(np.linalg.inv(information))


@dataclass(frozen=True)
class ScoreModel(SupervisedModel):
    """A mixture of factor models with one output of a score: its steps are tentative."""

    outputs: ScoreOutputs

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        if context.length == 0:  # only rounding takes back the shortest of steps
            return Update(params)
        relevance = self.relevances(params)
        components, touched = self.family.estimate(stats.components, params.components, relevance)
        length = min(context.length, 1.0)
        outputs = self.outputs.step(stats.outputs, params.outputs, length, relevance)
        fresh = SupervisedParams(self.mixing.posterior(stats.counts), components, outputs)
        told = tuple(
            Event("floor", self.family.floor_message(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(touched)
        )
        return Update(self._expand_parameters(fresh, stats), told, length=length)


@dataclass(frozen=True, slots=True)
class ScoreStart(GaussianStart):
    """As for Gaussian outputs, with scores that begin as the known y are on average."""

    shape: tuple[float, ...] = ()

    def _outputs(self, model: Any) -> Any:
        means = np.broadcast_to(self.means, (model.n_components, 1)).copy()
        loadings = np.zeros((model.n_components, 1, model.family.size))
        return ScoreParams(loadings, means, np.array(self.shape, dtype=float))


def draw_outputs(
    model: ScoreModel, reading: Any, latent: Latent, resp: Array, rng: np.random.Generator
) -> Array:
    """One y (n,) for each row."""
    q, tau2, _ = model.outputs.scores(latent, reading.outputs)
    bounds = np.cumsum(resp, axis=1)[:, :-1]
    rows, k = np.arange(len(resp)), (rng.random(len(resp))[:, None] > bounds).sum(axis=1)
    a = q[rows, k] + np.sqrt(tau2[rows, k]) * rng.normal(size=len(resp))
    return draw(model.outputs.likelihood, a, reading.outputs.shape, rng)


def start_of_categories(frequencies: Array) -> tuple[Array, Array]:
    """Mean (1,) of the score, and thresholds, at which categories have these frequencies."""
    from scipy.special import ndtri

    smooth = (frequencies * len(frequencies) * 10 + 1) / (len(frequencies) * 11)
    ends = ndtri(np.cumsum(smooth / smooth.sum())[:-1])
    return -ends[:1], ends[1:] - ends[0]


def start_of_counts(mean: float, variance: float) -> tuple[Array, Array]:
    """Mean (1,) of the score, and the logarithm of the excess, by moments."""
    rate = max(mean, 1e-3)
    excess = np.clip((variance - rate) / rate**2, 0.05, 10.0)
    return np.array([np.log(rate)]), np.array([np.log(excess)])


# ------------------------------------------------ prediction


def chances(model: ScoreModel, reading: Any, latent: Latent, resp: Array) -> Array:
    """P(category | row), (n, C)."""
    likelihood = model.outputs.likelihood
    assert isinstance(likelihood, OrderedProbit)
    q, tau2, _ = model.outputs.scores(latent, reading.outputs)
    each = likelihood.chances(q, tau2, reading.outputs.shape)
    return np.asarray((resp[..., None] * each).sum(axis=1))


def count_moments(
    model: ScoreModel, reading: Any, latent: Latent, resp: Array, excess: float
) -> tuple[Array, Array]:
    """Mean and variance (n,) of the counts of rows; those of rows so far away that no number could
    hold them are the largest whose squares are numbers."""
    q, tau2, _ = model.outputs.scores(latent, reading.outputs)
    rate = np.exp(np.minimum(q + 0.5 * tau2, _LARGEST_LOG_RATE))
    square = np.exp(np.minimum(2 * q + 2 * tau2, 2 * _LARGEST_LOG_RATE))
    mean = (resp * rate).sum(axis=1)
    second = (resp * (rate + (1.0 + excess) * square)).sum(axis=1)
    return mean, second - mean**2
