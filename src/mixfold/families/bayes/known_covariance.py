"""Gaussian components around unknown means, with a covariance that is known.

    mu_k ~ N(mean, C),   x | k ~ N(mu_k, Sigma)

A row with missing entries knows the means only in the directions that it has: it adds the inverse
of the covariance of its entries to the precision of a mean. That stays conjugate, and the best
means have a closed form with any entries missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.families.bayes.known_records import (
    KnownMoments,
    KnownPosterior,
    KnownPrior,
    KnownReading,
    solve_semidefinite,
)
from mixfold.families.bayes.known_rows import KnownRows
from mixfold.families.bayes.prior_settings import check_mean
from mixfold.families.component import ComponentFamily
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.dense import read_dense
from mixfold.families.full import FullGaussian
from mixfold.families.gaussian import GaussianParams
from mixfold.math.frame import Frame
from mixfold.math.prior_draws import MORE_DEGREES, draw_normal, draw_wishart
from mixfold.math.symmetric import (
    LOG_2PI,
    cholesky,
    inverse_factor,
    log_determinants,
    raise_eigenvalues,
)

# means that are averaged over what is believed of them have covariances of their own
_FULL = FullGaussian()


@record
@dataclass(frozen=True)
class KnownCovariance(KnownRows, ConjugateFamily):
    """p(x | k) = N(x; mu_k, Sigma) with Sigma given. Settings are in data coordinates.

    Parameters
    ----------
    covariance : array (D, D) or (D,), or float
        Sigma: a matrix, or the variances of the columns, or one variance for all.
    mean : array (D,), optional
        Of the prior of the means; by default the mean of all rows.
    precision : float
        How many rows the prior of a mean is worth: C = Sigma / precision.
    mean_covariance : array (D, D) or (D,), or float, optional
        C itself.
    """

    covariance: Any = 1.0
    mean: Any = None
    precision: float = 0.01
    mean_covariance: Any = None

    name: ClassVar[str] = "known"

    @property
    def collapsed_law(self) -> str:
        return "normal"

    def __post_init__(self) -> None:
        _check_covariance("covariance", self.covariance)
        if self.mean_covariance is not None:
            _check_covariance("mean_covariance", self.mean_covariance)
        if not (np.isfinite(self.precision) and self.precision > 0):
            raise ValueError(
                "precision, the number of rows that the prior of a mean is worth, must be a "
                f"positive number, got {self.precision!r}"
            )

    def known_covariance(self, frame: Frame) -> Array:
        return _covariance_in_frame("covariance", self.covariance, frame)

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: KnownMoments) -> KnownPrior:
        if self.mean is None:
            shift, _ = solve_semidefinite(total.matrices(), total.linear)
            mean = (total.origin + shift)[0]
        else:
            mean = frame.enter(check_mean(self.mean, frame.origin.size))
        if self.mean_covariance is None:
            covariance = self.known_covariance(frame) / self.precision
        else:
            covariance = _covariance_in_frame("mean_covariance", self.mean_covariance, frame)
        return KnownPrior(mean, np.linalg.inv(covariance))

    def describe_prior(self, prior: KnownPrior, frame: Frame) -> dict[str, Any]:
        covariance = np.linalg.inv(prior.precision) * frame.scale[:, None] * frame.scale
        return {"mean": frame.leave(prior.mean), "mean_covariance": covariance}

    def posterior(self, moments: KnownMoments, prior: KnownPrior, frame: Frame) -> KnownPosterior:
        precisions = prior.precision + moments.matrices()
        slope, _ = moments.about(np.broadcast_to(prior.mean, moments.origin.shape))
        means = prior.mean + np.linalg.solve(precisions, slope[:, :, None])[..., 0]
        return KnownPosterior(frame, means, precisions, self.known_covariance(frame))

    def keep_posterior(self, posterior: KnownPosterior, which: Array) -> KnownPosterior:
        means, precisions = posterior.means[which], posterior.precisions[which]
        return replace(posterior, means=means, precisions=precisions)

    def change_frame_of_prior(self, prior: KnownPrior, old: Frame, new: Frame) -> KnownPrior:
        ratio = new.scale / old.scale
        precision = prior.precision * ratio[:, None] * ratio
        return KnownPrior(new.enter(old.leave(prior.mean)), precision)

    def change_frame_of_posterior(self, posterior: KnownPosterior, frame: Frame) -> KnownPosterior:
        params = self.change_frame(self.point(posterior), frame)
        ratio = frame.scale / posterior.frame.scale
        precisions = posterior.precisions * ratio[:, None] * ratio
        return KnownPosterior(frame, params.means, precisions, params.scatter)

    # ------------------------------------------------ readings

    def point(self, posterior: KnownPosterior) -> GaussianParams:
        return GaussianParams(posterior.frame, posterior.means, posterior.scatter)

    def expected_reading(self, posterior: KnownPosterior) -> KnownReading:
        reading = self.mode(self.point(posterior))
        doubt = posterior.covariances()
        shift = -0.5 * np.einsum("kde,de->k", doubt, reading.precision())
        theta = reading.theta
        if theta is not None:
            theta = theta.copy()
            theta[:, 0] += shift
        return replace(reading, constant=reading.constant + shift, theta=theta, doubt=doubt)

    def draw(self, posterior: KnownPosterior, rng: np.random.Generator) -> GaussianParams:
        roots = np.swapaxes(np.linalg.cholesky(posterior.precisions), 1, 2)
        normals = rng.standard_normal((*posterior.means.shape, 1))
        params = self.point(posterior)
        return replace(params, means=params.means + np.linalg.solve(roots, normals)[..., 0])

    # ------------------------------------------------ objectives

    def kl(self, posterior: KnownPosterior, prior: KnownPrior) -> float:
        away = _distances(posterior.means, prior)
        trace = np.einsum("kde,de->k", posterior.covariances(), prior.precision)
        gain = _log_dets(posterior.precisions) - _log_dets(prior.precision)
        return 0.5 * float(np.sum(away + trace + gain - posterior.n_features))

    def log_prior(self, params: GaussianParams, prior: KnownPrior) -> float:
        """The log density of the means.

        The sum of the contract differs from it by a constant, half of mean' precision mean, that
        depends on the origin of the columns: of a posterior it would be no part.
        """
        height = 0.5 * _log_dets(prior.precision) - 0.5 * params.n_features * LOG_2PI
        height -= params.frame.log_scale.sum()
        return float(np.sum(height - 0.5 * _distances(params.means, prior)))

    def evidence(self, moments: KnownMoments, prior: KnownPrior, frame: Frame) -> float:
        q = self.posterior(moments, prior, frame)
        _, gain = moments.about(np.broadcast_to(prior.mean, q.means.shape))
        away = np.einsum("kd,kde,ke->k", q.means - prior.mean, q.precisions, q.means - prior.mean)
        dets = _log_dets(prior.precision) - _log_dets(q.precisions)
        return moments.base + float(np.sum(gain + 0.5 * (away + dets)))

    def average(self, moments: KnownMoments, reading: KnownReading) -> float:
        _, gain = moments.about(reading.means)
        value = moments.base + float(gain.sum())
        if reading.doubt is not None:
            value -= 0.5 * float(np.sum(moments.matrices() * reading.doubt))
        return value

    def empirical(self, posterior: KnownPosterior, prior: KnownPrior) -> KnownPrior:
        mean = posterior.means.mean(axis=0)
        away = posterior.means - mean
        covariance = posterior.covariances().mean(axis=0) + away.T @ away / len(away)
        # few means far apart, each known well: it is singular but for rounding, and its inverse
        # has to be positive definite
        covariance, _ = raise_eigenvalues(covariance, 1e-13 * float(np.trace(covariance)))
        root = inverse_factor(np.linalg.cholesky(covariance))
        return KnownPrior(mean, root @ root.T)

    def draw_prior(
        self,
        params: GaussianParams,
        prior: KnownPrior,
        given: KnownPrior,
        rng: np.random.Generator,
    ) -> KnownPrior:
        means, size = params.means, params.n_features
        held = given.precision + len(means) * prior.precision
        weighted = given.precision @ given.mean + prior.precision @ means.sum(axis=0)
        mean = draw_normal(held, weighted, rng)
        away, first = means - mean, size + MORE_DEGREES
        inverse = first * np.linalg.inv(given.precision) + away.T @ away
        return KnownPrior(mean, draw_wishart(inverse, first + len(means), rng))

    def log_strength(self, prior: KnownPrior) -> float:
        return float(_log_dets(prior.precision)) / len(prior.mean)

    # ------------------------------------------------ prediction

    def _predictive(self, posterior: KnownPosterior) -> GaussianParams:
        wider = posterior.scatter + posterior.covariances()
        return GaussianParams(posterior.frame, posterior.means, wider)

    def log_predictive(self, posterior: KnownPosterior, block: Block) -> Array:
        params = self._predictive(posterior)
        return _FULL.log_density(block, read_dense(params.frame, params.means, params.scatter))

    def condition_predictive(
        self, posterior: KnownPosterior, known: Array, values: Array
    ) -> tuple[Array, ComponentFamily, GaussianParams]:
        """Predictive Gaussians stay Gaussians, with covariances of their own."""
        _, given = _FULL.condition(self._predictive(posterior), known, values)
        return self._log_predictive_of(posterior, known, values), _FULL, given

    def sample_predictive(
        self, posterior: KnownPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        return _FULL.draw_rows(self._predictive(posterior), labels, rng)


def _distances(means: Array, prior: KnownPrior) -> Array:
    """(mu_k - mean)' precision (mu_k - mean), (K,)."""
    away = means - prior.mean
    return np.asarray(np.einsum("kd,de,ke->k", away, prior.precision, away))


def _log_dets(matrices: Array) -> Array:
    return log_determinants(np.linalg.cholesky(matrices))


# ------------------------------------------------ settings


def _check_covariance(what: str, value: Any) -> None:
    array = np.asarray(value, dtype=float)
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        symmetric = np.allclose(array, array.T, rtol=1e-8, atol=0.0)
        if np.isfinite(array).all() and symmetric and cholesky(array) is not None:
            return
        rule = "a matrix must be finite, symmetric and positive definite"
    elif array.ndim < 2:
        if np.isfinite(array).all() and (array > 0).all():
            return
        rule = "variances must be positive and finite"
    else:
        rule = f"it has shape {array.shape}"
    raise ValueError(
        f"{what} must be a covariance matrix (D, D), variances (D,) or one variance; {rule}, got "
        f"{value!r}"
    )


def _covariance_in_frame(what: str, setting: Any, frame: Frame) -> Array:
    """The covariance that a setting says, as a matrix in frame coordinates."""
    value = np.asarray(setting, dtype=float)
    size = frame.origin.size
    if value.ndim and len(value) != size:
        raise ValueError(
            f"{what} is for {len(value)} columns and the data have {size}; give one number for "
            "all columns, one for each, or a matrix"
        )
    matrix = value if value.ndim == 2 else np.broadcast_to(value, size) * np.eye(size)
    return np.asarray(matrix / frame.scale[:, None] / frame.scale)
