"""Diagonal covariances with a normal-gamma prior: four ways to share the precisions.

    lambda ~ Gamma(degrees / 2, rate scatter / 2)
    mu_kd | lambda ~ N(mean_d, 1 / (precision lambda))

``spread`` and ``gather`` of the maximum-likelihood families say who shares a precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from mixfold.contracts import Array, Block, record
from mixfold.families.axis_aligned import AxisGaussian
from mixfold.families.axis_aligned_rows import AxisReading
from mixfold.families.bayes.gaussian import ConjugateGaussian
from mixfold.families.bayes.prior_settings import check_variances
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.component import ComponentFamily, dense_rows
from mixfold.families.diagonal import DiagonalGaussian
from mixfold.families.gaussian import GaussianParams, Moments, share
from mixfold.families.spherical import SphericalGaussian
from mixfold.families.tied_diagonal import TiedDiagonalGaussian
from mixfold.families.tied_spherical import TiedSphericalGaussian
from mixfold.math.frame import Frame
from mixfold.math.gamma_law import expected_log, fit_gamma, gamma_kl
from mixfold.math.prior_draws import draw_gammas, draw_precision, sum_to
from mixfold.math.symmetric import LOG_2PI


@dataclass(frozen=True)
class NormalGamma(ConjugateGaussian, AxisGaussian):
    """What the four share."""

    def _check_scatter(self, n_features: int) -> Array:
        return check_variances(self.scatter, "scatter", n_features, self._per_column)

    def _least_degrees(self, n_features: int) -> float:
        return 0.0

    def _usual_degrees(self, n_features: int) -> float:
        return 1.0

    def _enter_scatter(self, scatter: Array, frame: Frame) -> Array:
        scale = frame.scale if self._per_column else frame.scale[0]
        return np.asarray(scatter / scale / scale)  # the square may be out of range

    def _total_scatter(self, total: Moments) -> Array:
        deviation, _ = share(total)
        count = np.maximum(total.count, np.finfo(float).tiny)
        variances = np.maximum(total.second / count - deviation**2, 0.0)[0]
        if not self._per_column:
            variances = np.asarray(variances.mean())
        return np.asarray(np.maximum(variances, self.floor))

    # ------------------------------------------------ posterior

    def posterior(self, moments: Moments, prior: NormalPrior, frame: Frame) -> NormalPosterior:
        deviation, _ = share(moments)
        count = moments.count
        within = np.maximum(moments.second - count * deviation**2, 0.0)
        precision = prior.precision + count
        away = moments.origin + deviation - prior.mean
        shrunk = prior.precision * count / precision * away**2
        degrees = prior.degrees + self.gather(count)
        scatter = (prior.scatter + self.gather(within + shrunk)) / degrees
        means = prior.mean + count / precision * away
        return NormalPosterior(frame, means, precision, degrees, scatter)

    def expected_reading(self, posterior: NormalPosterior) -> AxisReading:
        reading = self.mode(self.point(posterior))
        half = posterior.degrees / 2
        gap = expected_log(half, half)  # E ln lambda against the logarithm of E lambda
        shift = self.spread(np.asarray(gap), posterior.means.shape) - 1 / posterior.precision
        return replace(reading, constant=reading.constant + 0.5 * shift)

    def draw(self, posterior: NormalPosterior, rng: np.random.Generator) -> GaussianParams:
        half = np.asarray(posterior.degrees / 2)
        gamma = np.maximum(rng.standard_gamma(half), np.finfo(float).tiny)
        scatter = np.asarray(posterior.scatter * half / gamma)
        deviation = np.sqrt(self.spread(scatter, posterior.means.shape) / posterior.precision)
        means = posterior.means + deviation * rng.standard_normal(posterior.means.shape)
        return GaussianParams(posterior.frame, means, scatter)

    # ------------------------------------------------ objectives

    def kl(self, posterior: NormalPosterior, prior: NormalPrior) -> float:
        ratio = prior.precision / posterior.precision
        variances = self.spread(posterior.scatter, posterior.means.shape)
        away = prior.precision * (posterior.means - prior.mean) ** 2 / variances
        normal = 0.5 * (ratio - 1 - np.log(ratio) + away)
        half = posterior.degrees / 2
        gamma = gamma_kl(half, half * posterior.scatter, prior.degrees / 2, prior.scatter / 2)
        return float(normal.sum() + np.sum(gamma))

    def log_prior(self, params: GaussianParams, prior: NormalPrior) -> float:
        variances = self.spread(params.scatter, params.means.shape)
        away = prior.precision * (params.means - prior.mean) ** 2 / variances
        ones = np.ones(params.means.shape)
        log_scale = self.gather(ones * params.frame.log_scale) / self.gather(ones)
        log_precision = -np.log(params.scatter) - 2 * log_scale
        own = prior.degrees * log_precision - prior.scatter / params.scatter
        return float(0.5 * (np.sum(own) - away.sum()))

    def evidence(self, moments: Moments, prior: NormalPrior, frame: Frame) -> float:
        q = self.posterior(moments, prior, frame)
        before = self._log_norm(prior.degrees, prior.scatter)
        after = self._log_norm(q.degrees, q.degrees * q.scatter)
        means = 0.5 * np.log(prior.precision / q.precision)
        base = -moments.count * (0.5 * LOG_2PI + frame.log_scale)
        return float(base.sum() + np.sum(after - before) + means.sum())

    @staticmethod
    def _log_norm(degrees: Array, scatter: Array) -> Array:
        """B of the gammas."""
        return np.asarray(gammaln(degrees / 2) - degrees / 2 * np.log(scatter / 2))

    def average(self, moments: Moments, reading: AxisReading) -> float:
        shift = reading.means - moments.origin
        squares = moments.second - shift * (2 * moments.first - moments.count * shift)
        return float((moments.count * reading.constant - 0.5 * reading.precision * squares).sum())

    def empirical(self, posterior: NormalPosterior, prior: NormalPrior) -> NormalPrior:
        variances = self.spread(posterior.scatter, posterior.means.shape)
        mean = (posterior.means / variances).sum(axis=0) / (1 / variances).sum(axis=0)
        spread = 1 / posterior.precision + (posterior.means - mean) ** 2 / variances
        precision = 1 / (spread.mean(axis=0) if self._per_column else spread.mean())
        if not self._own_scatter:  # one precision: the components say nothing about its prior
            return replace(prior, mean=mean, precision=np.asarray(precision))
        half = posterior.degrees / 2
        logs = expected_log(half, half * posterior.scatter)
        a, b = fit_gamma((1 / posterior.scatter).mean(axis=0), logs.mean(axis=0))
        # Columns that do not vary would have a smaller variance a priori in every step: their
        # prior stays where it has come near the floor, which the bound allows.
        keep = b < self.floor * a
        degrees = np.where(keep, prior.degrees, 2 * a)
        scatter = np.where(keep, prior.scatter, 2 * b)
        return NormalPrior(mean, np.asarray(precision), degrees, scatter)

    def draw_prior(
        self,
        params: GaussianParams,
        prior: NormalPrior,
        given: NormalPrior,
        rng: np.random.Generator,
    ) -> NormalPrior:
        shape = params.means.shape
        own = 1 / params.scatter
        precisions = self.spread(own, shape)
        # the mean: about the given one, as far as the given prior expects means to be
        pull = np.broadcast_to(given.precision * given.degrees / given.scatter, shape[1:])
        held = pull + prior.precision * precisions.sum(axis=0)
        weighted = pull * given.mean + prior.precision * (precisions * params.means).sum(axis=0)
        mean = weighted / held + rng.standard_normal(shape[1]) / np.sqrt(held)
        squares = (precisions * (params.means - mean) ** 2).sum(axis=0)
        count = np.full(shape[1], float(shape[0]))
        each = np.shape(prior.precision)
        precision = draw_precision(
            sum_to(squares, each), sum_to(count, each), prior.precision, given.precision, rng
        )
        rates = own.reshape(-1, *np.shape(prior.scatter))
        now, base = (prior.degrees, prior.scatter), (given.degrees, given.scatter)
        return NormalPrior(mean, precision, *draw_gammas(rates, now, base, rng))

    def log_strength(self, prior: NormalPrior) -> float:
        return float(np.log(prior.degrees).mean() + np.log(prior.precision).mean())

    # ------------------------------------------------ prediction

    def log_predictive(self, posterior: NormalPosterior, block: Block) -> Array:
        U = posterior.frame.enter(dense_rows(block.X))
        seen = ~np.isnan(U)
        unit = seen @ posterior.frame.log_scale
        widened = 1 + 1 / posterior.precision
        scales = self.spread(posterior.scatter, posterior.means.shape) * widened
        degrees = self.spread(np.asarray(posterior.degrees), posterior.means.shape)
        out = np.empty((len(U), posterior.n_components))
        for k in range(posterior.n_components):
            Q = np.where(seen, (U - posterior.means[k]) ** 2 / scales[k], 0.0)
            out[:, k] = self._student(Q, seen, degrees[k], scales[k]) - unit
        return out

    def _student(self, Q: Array, seen: Array, degrees: Array, scales: Array) -> Array:
        """Log density of Student's t: one for each column, or jointly for all that are seen."""
        if self._per_column:
            head = gammaln((degrees + 1) / 2) - gammaln(degrees / 2)
            head -= 0.5 * np.log(np.pi * degrees * scales)
            tails = (degrees + 1) / 2 * np.log1p(Q / degrees)
            return np.asarray(seen @ head - tails.sum(axis=1))
        nu, size = degrees[0], seen.sum(axis=1)
        head = gammaln((nu + size) / 2) - gammaln(nu / 2) - size / 2 * np.log(np.pi * nu)
        head -= 0.5 * (seen @ np.log(scales))
        return np.asarray(head - (nu + size) / 2 * np.log1p(Q.sum(axis=1) / nu))

    def condition_predictive(
        self, posterior: NormalPosterior, known: Array, values: Array
    ) -> tuple[Array, ComponentFamily, NormalPosterior]:
        """Columns with variances of their own are independent given the component. Where they
        share one, what is known of some tells of it: degrees grow, and it with their distance."""
        frame, shape = posterior.frame, posterior.means.shape
        rest = np.setdiff1d(np.arange(shape[1]), known)
        log_density = self._log_predictive_of(posterior, known, values)
        family, degrees, scatter = self, posterior.degrees, posterior.scatter
        if self._per_column:
            family = self.for_columns(rest, shape[1])
            degrees, scatter = degrees[..., rest], scatter[..., rest]
        else:
            family = BayesSpherical(self.floor)
            nu = self.spread(np.asarray(degrees), shape)[:, 0]
            scales = self.spread(scatter, shape)[:, known] * (1 + 1 / posterior.precision[:, known])
            away = (values - frame.origin[known]) / frame.scale[known] - posterior.means[:, known]
            Q = (away**2 / scales).sum(axis=1)
            degrees = nu + known.size
            scatter = self.spread(scatter, shape)[:, 0] * (nu + Q) / degrees
        remaining = Frame(frame.origin[rest], frame.scale[rest])
        means, precision = posterior.means[:, rest], posterior.precision[:, rest]
        given = NormalPosterior(remaining, means, precision, degrees, scatter)
        return log_density, family, given

    def sample_predictive(
        self, posterior: NormalPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        shape = posterior.means.shape
        half = self.spread(np.asarray(posterior.degrees), shape)[labels] / 2
        if not self._per_column:
            half = half[:, :1]
        gamma = np.maximum(rng.standard_gamma(half), np.finfo(float).tiny)
        variances = self.spread(posterior.scatter, shape)[labels] * half / gamma
        variances = variances * (1 + 1 / posterior.precision[labels])
        normals = rng.standard_normal(variances.shape)
        return posterior.frame.leave(posterior.means[labels] + np.sqrt(variances) * normals)


@record
@dataclass(frozen=True)
class BayesDiagonal(NormalGamma, DiagonalGaussian):
    """Each component has its own variances."""

    name: ClassVar[str] = "diag"
    _per_column = True

    @property
    def collapsed_law(self) -> str:
        return "normal-gamma"


@record
@dataclass(frozen=True)
class BayesTiedDiagonal(NormalGamma, TiedDiagonalGaussian):
    """The components share one variance per column."""

    name: ClassVar[str] = "tied-diag"
    not_collapsed: ClassVar[str] = "its components share a covariance"
    _per_column = True


@record
@dataclass(frozen=True)
class BayesSpherical(NormalGamma, SphericalGaussian):
    """Each component has one variance."""

    name: ClassVar[str] = "spherical"
    _per_column = False

    @property
    def collapsed_law(self) -> str:
        return "normal-gamma"


@record
@dataclass(frozen=True)
class BayesTiedSpherical(NormalGamma, TiedSphericalGaussian):
    """One variance for all."""

    name: ClassVar[str] = "tied-spherical"
    not_collapsed: ClassVar[str] = "its components share a covariance"
    _per_column = False
