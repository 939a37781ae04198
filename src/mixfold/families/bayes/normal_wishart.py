"""Covariance matrices with a normal-Wishart prior, one per component or one for all.

    Lambda ~ Wishart(W, degrees),   mu_k | Lambda ~ N(mean, (precision Lambda)^-1)

In expectation the log density is that of a Gaussian with covariance W^-1 / degrees and a smaller
constant, also where entries are missing: the kernels are those of maximum likelihood.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from mixfold.contracts import Array, Block, record
from mixfold.families.bayes.gaussian import ConjugateGaussian
from mixfold.families.bayes.prior_settings import check_matrix
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.component import ComponentFamily
from mixfold.families.dense import DenseGaussian, DenseReading, about, dense_work
from mixfold.families.full import FullGaussian
from mixfold.families.gaussian import GaussianParams, Moments, share
from mixfold.families.tied import TiedGaussian
from mixfold.math.frame import Frame
from mixfold.math.prior_draws import draw_normal, draw_precision, draw_wisharts
from mixfold.math.symmetric import LOG_2PI, factorise, log_determinants, raise_eigenvalues, unpack
from mixfold.math.triangular import squared_norms
from mixfold.math.wishart import (
    draw_factor,
    expected_log_det,
    fit_degrees,
    log_norm,
    wishart_kl,
)


@dataclass(frozen=True)
class NormalWishart(ConjugateGaussian, DenseGaussian):
    """What the full and the tied family share; ``stack`` is 1 matrix or K of them."""

    augments: ClassVar[bool] = True

    def _check_scatter(self, n_features: int) -> Array:
        return check_matrix(self.scatter, "scatter", n_features)

    def _least_degrees(self, n_features: int) -> float:
        return n_features - 1.0

    def _usual_degrees(self, n_features: int) -> float:
        return float(n_features)

    def _enter_scatter(self, scatter: Array, frame: Frame) -> Array:
        return np.asarray(scatter / frame.scale[:, None] / frame.scale)

    def _total_scatter(self, total: Moments) -> Array:
        deviation, _ = share(total)
        size = deviation.shape[1]
        second = unpack(np.atleast_2d(total.second), size)[0] / max(total.count[0, 0], 1e-300)
        return raise_eigenvalues(second - np.outer(deviation[0], deviation[0]), self.floor)[0]

    @abstractmethod
    def _sum_over_shared(self, matrices: Array) -> Array:
        """(K, D, D) contributions of the components, summed over those that share a matrix."""

    @abstractmethod
    def _second(self, moments: Moments, shape: tuple[int, int]) -> Array:
        """Second moments about ``origin`` whose sum over components is right: (K, D, D)."""

    # ------------------------------------------------ posterior

    def posterior(self, moments: Moments, prior: NormalPrior, frame: Frame) -> NormalPosterior:
        deviation, _ = share(moments)
        count = moments.count[:, 0]
        precision = prior.precision + count
        away = moments.origin + deviation - prior.mean
        pull = (prior.precision * count / precision)[:, None] * away
        scatter = self._second(moments, deviation.shape)
        scatter -= (count[:, None] * deviation)[:, :, None] * deviation[:, None, :]
        scatter += pull[:, :, None] * away[:, None, :]
        degrees = prior.degrees + self._sum_over_shared(count)
        scatter = (prior.scatter + self._sum_over_shared(scatter)) / degrees[:, None, None]
        means = prior.mean + (count / precision)[:, None] * away
        return NormalPosterior(frame, means, precision, degrees, self._own_shape(scatter))

    def _stack(self, scatter: Array) -> Array:
        return scatter.reshape(-1, *scatter.shape[-2:])

    def _shift(self, posterior: NormalPosterior) -> Array:
        """Twice what the expected log density lacks from that of the point: (K,)."""
        size = posterior.n_features
        nu = posterior.degrees
        gap = expected_log_det(-size * np.log(nu), nu, size)
        return np.asarray(gap - size / posterior.precision)

    def expected_reading(self, posterior: NormalPosterior) -> DenseReading:
        reading = self.mode(self.point(posterior))
        shift = 0.5 * self._shift(posterior)
        theta = reading.theta
        if theta is not None:
            theta = theta.copy()
            theta[:, 0] += shift
        return replace(reading, constant=reading.constant + shift, theta=theta)

    def draw(self, posterior: NormalPosterior, rng: np.random.Generator) -> GaussianParams:
        _, whiten = factorise(self._stack(posterior.scatter))
        roots = whiten / np.sqrt(posterior.degrees)[:, None, None]
        # Lambda = F F': its inverse has the factor F^-T
        inverse = np.linalg.inv(draw_factor(roots, posterior.degrees, rng))
        normals = rng.standard_normal(posterior.means.shape)
        normals /= np.sqrt(posterior.precision)[:, None]
        means = posterior.means + (np.swapaxes(inverse, 1, 2) @ normals[:, :, None])[..., 0]
        scatter = np.swapaxes(inverse, 1, 2) @ inverse
        return GaussianParams(posterior.frame, means, self._own_shape(scatter))

    # ------------------------------------------------ objectives

    @staticmethod
    def _distances(whiten: Array, means: Array, prior: NormalPrior) -> Array:
        """beta_0 (mu_k - m_0)' Sigma_k^-1 (mu_k - m_0), (K,)."""
        away = (means - prior.mean)[:, None, :] @ whiten
        return np.asarray(prior.precision * (away**2).sum(axis=(1, 2)))

    def kl(self, posterior: NormalPosterior, prior: NormalPrior) -> float:
        size = posterior.n_features
        ratio = prior.precision / posterior.precision
        factors, whiten = factorise(self._stack(posterior.scatter))
        away = self._distances(whiten, posterior.means, prior)
        normal = 0.5 * (size * (ratio - 1 - np.log(ratio)) + away)
        wishart = self._wishart_kl(factors, whiten, posterior.degrees, prior)
        return float(normal.sum() + wishart.sum())

    @staticmethod
    def _wishart_kl(factors: Array, whiten: Array, nu: Array, prior: NormalPrior) -> Array:
        size = factors.shape[-1]
        log_det = -log_determinants(factors) - size * np.log(nu)
        trace = np.einsum("kde,df,kfe->k", whiten, prior.scatter, whiten) / nu
        prior_log_det = -np.linalg.slogdet(prior.scatter)[1]
        return wishart_kl(log_det, nu, prior_log_det, prior.degrees, trace, size)

    @staticmethod
    def _prior_norm(prior: NormalPrior, size: int) -> Array:
        return log_norm(np.linalg.slogdet(prior.scatter)[1], prior.degrees, size)

    def log_prior(self, params: GaussianParams, prior: NormalPrior) -> float:
        factors, whiten = factorise(self._stack(params.scatter))
        trace = np.einsum("kde,df,kfe->k", whiten, prior.scatter, whiten)
        log_det = log_determinants(factors) + 2 * params.frame.log_scale.sum()
        away = self._distances(whiten, params.means, prior)
        return float(-0.5 * (np.sum(trace + prior.degrees * log_det) + away.sum()))

    def evidence(self, moments: Moments, prior: NormalPrior, frame: Frame) -> float:
        q = self.posterior(moments, prior, frame)
        size = q.n_features
        factors, _ = factorise(self._stack(q.scatter))
        after = log_norm(log_determinants(factors) + size * np.log(q.degrees), q.degrees, size)
        means = 0.5 * size * np.log(prior.precision / q.precision)
        base = -moments.count[:, 0].sum() * (0.5 * size * LOG_2PI + frame.log_scale.sum())
        return float(base + np.sum(after - self._prior_norm(prior, size)) + means.sum())

    def average(self, moments: Moments, reading: DenseReading) -> float:
        second = self._second(moments, reading.means.shape)
        count, _, second = about(reading.means, moments, second)
        precisions = reading.whiten @ np.swapaxes(reading.whiten, 1, 2)
        return float(count @ reading.constant - 0.5 * np.sum(precisions * second))

    def empirical(self, posterior: NormalPosterior, prior: NormalPrior) -> NormalPrior:
        size, K = posterior.n_features, posterior.n_components
        factors, whiten = factorise(self._stack(posterior.scatter))
        shape = (K, size, size)
        precisions = np.broadcast_to(whiten @ np.swapaxes(whiten, 1, 2), shape)
        pulled = np.einsum("kde,ke->d", precisions, posterior.means)
        mean = np.linalg.solve(precisions.sum(axis=0), pulled)
        away = posterior.means - mean
        distances = np.einsum("kd,kde,ke->k", away, precisions, away)
        precision = 1 / np.mean(1 / posterior.precision + distances / size)
        fresh = replace(prior, mean=mean, precision=np.asarray(precision))
        if len(factors) == 1:  # one matrix: the components say nothing about its prior
            return fresh
        average = precisions.mean(axis=0)
        if np.linalg.eigvalsh(average)[-1] * self.floor > 1:
            # Columns that do not vary would have a smaller variance a priori in every step: their
            # prior stays where it has come near the floor, which the bound allows.
            return fresh
        nu = posterior.degrees
        expected = expected_log_det(-log_determinants(factors) - size * np.log(nu), nu, size)
        degrees = fit_degrees(expected.mean(), np.linalg.slogdet(average)[1], size)
        scatter = degrees * np.linalg.inv(average)
        return replace(fresh, degrees=np.asarray(degrees), scatter=scatter)

    def draw_prior(
        self,
        params: GaussianParams,
        prior: NormalPrior,
        given: NormalPrior,
        rng: np.random.Generator,
    ) -> NormalPrior:
        K, size = params.means.shape
        _, whiten = factorise(self._stack(params.scatter))
        own = whiten @ np.swapaxes(whiten, 1, 2)
        precisions = np.broadcast_to(own, (K, size, size))
        mean, precision = self._draw_means(params.means, precisions, prior, given, rng)
        now, base = (prior.degrees, prior.scatter), (given.degrees, given.scatter)
        degrees, scatter = draw_wisharts(own, now, base, rng)
        return NormalPrior(mean, precision, degrees, scatter)

    def _draw_means(
        self,
        means: Array,
        precisions: Array,
        prior: NormalPrior,
        given: NormalPrior,
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        """Mean and precision of the prior of the means (K, D)."""
        # about the given mean, as far as the given prior expects means to be
        pull = given.precision * given.degrees * np.linalg.inv(given.scatter)
        held = pull + prior.precision * precisions.sum(axis=0)
        weighted = pull @ given.mean
        weighted = weighted + prior.precision * np.einsum("kde,ke->d", precisions, means)
        mean = draw_normal(held, weighted, rng)
        away = means - mean
        squares = np.einsum("kd,kde,ke->", away, precisions, away)
        count = np.asarray(float(means.size))
        return mean, draw_precision(squares, count, prior.precision, given.precision, rng)

    def log_strength(self, prior: NormalPrior) -> float:
        return float(np.log(prior.degrees) + np.log(prior.precision))

    # ------------------------------------------------ prediction

    def _student(self, posterior: NormalPosterior) -> tuple[Array, Array]:
        """Degrees of freedom (K,), and the scale in units of the point covariance."""
        degrees = posterior.degrees - posterior.n_features + 1
        wider = posterior.degrees / degrees * (1 + 1 / posterior.precision)
        return np.broadcast_to(degrees, wider.shape), np.asarray(wider)

    def log_predictive(self, posterior: NormalPosterior, block: Block) -> Array:
        reading = self.mode(self.point(posterior))
        scores = self.scores(block, reading)
        work = dense_work(scores.work)
        seen = (~np.isnan(work.U)).sum(axis=1)
        degrees, wider = self._student(posterior)
        out = np.empty_like(scores.log_density)
        for k, nu in enumerate(degrees):
            V = work.deviations[k] if work.patterns else work.U - reading.means[k]
            Q = squared_norms(V, reading.whiten[k])
            # what the Gaussian density at its mean says of the determinant of the seen columns
            height = reading.constant[k] if work.heights is None else work.heights[:, k]
            root = height + 0.5 * seen * LOG_2PI
            head = gammaln((nu + seen) / 2) - gammaln(nu / 2)
            head -= seen / 2 * np.log(np.pi * nu * wider[k])
            out[:, k] = root + head - (nu + seen) / 2 * np.log1p(Q / (nu * wider[k]))
        return out

    def condition_predictive(
        self, posterior: NormalPosterior, known: Array, values: Array
    ) -> tuple[Array, ComponentFamily, NormalPosterior]:
        """Given b of its entries, a Student t of nu degrees has nu + |b|, and a scale that grows
        with their distance Q: it is that of a posterior with the same degrees of freedom."""
        frame, K = posterior.frame, posterior.n_components
        family = BayesFull(self.floor)
        covariances = self.dense(self.point(posterior))
        point = GaussianParams(frame, posterior.means, covariances)
        _, given = family.condition(point, known, values)
        factors, _ = factorise(covariances[:, known[:, None], known])
        away = (values - frame.origin[known]) / frame.scale[known] - posterior.means[:, known]
        Q = (np.linalg.solve(factors, away[:, :, None]) ** 2).sum(axis=(1, 2))
        nu, wider = self._student(posterior)
        degrees = np.broadcast_to(posterior.degrees, (K,)).copy()
        scatter = given.scatter * (1 + Q / (nu * wider))[:, None, None]
        rest = NormalPosterior(given.frame, given.means, posterior.precision, degrees, scatter)
        return self._log_predictive_of(posterior, known, values), family, rest

    def sample_predictive(
        self, posterior: NormalPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        degrees, wider = self._student(posterior)
        params = self.point(posterior)
        rows = params.frame.enter(self.draw_rows(params, labels, rng)) - params.means[labels]
        gamma = np.maximum(rng.standard_gamma(degrees[labels] / 2), np.finfo(float).tiny)
        stretch = np.sqrt(wider[labels] * degrees[labels] / 2 / gamma)
        return params.frame.leave(params.means[labels] + stretch[:, None] * rows)


@record
@dataclass(frozen=True)
class BayesFull(NormalWishart, FullGaussian):
    """Each component has its own matrix."""

    name: ClassVar[str] = "full"

    @property
    def collapsed_law(self) -> str:
        return "normal-wishart"

    def _sum_over_shared(self, matrices: Array) -> Array:
        return matrices

    def _second(self, moments: Moments, shape: tuple[int, int]) -> Array:
        return unpack(moments.second, shape[1])


@record
@dataclass(frozen=True)
class BayesTied(NormalWishart, TiedGaussian):
    """The components share one matrix."""

    name: ClassVar[str] = "tied"
    not_collapsed: ClassVar[str] = "its components share a covariance"

    def _sum_over_shared(self, matrices: Array) -> Array:
        return np.asarray(matrices.sum(axis=0, keepdims=True))

    def _second(self, moments: Moments, shape: tuple[int, int]) -> Array:
        second = np.zeros((shape[0], shape[1], shape[1]))
        second[0] = unpack(moments.second, shape[1])  # only their sum is known
        return second
