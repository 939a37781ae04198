"""Gaussian components around one mean that is known, with covariances of their own.

    Lambda_k ~ Wishart(W, degrees),   x | k ~ N(mean, Lambda_k^-1)

It is the limit of the normal-Wishart family as the prior of the means becomes infinitely sure:
``PINNED`` rows at the known mean outweigh any table, so that posteriors, bounds, draws and urns are
those of ``BayesFull``, to the last digit. Only the likelihood without a prior has steps of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Metric, record
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.dense import DenseMetric, about, slopes
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.frame import Frame
from mixfold.math.symmetric import (
    from_log_cholesky,
    log_cholesky,
    raise_all_eigenvalues,
    unpack,
)

# rows that the known mean is worth: 1 + n / PINNED is 1, and squares of it are floats
PINNED = 1e100


@record
@dataclass(frozen=True, slots=True)
class CovarianceMetric:
    """Information about the covariances of a ``DenseMetric``, the means left out."""

    whole: DenseMetric

    def solve(self, gradient: Array) -> Array:
        means = np.zeros(self.whole.factors.shape[0] * self.whole.factors.shape[1])
        return self.whole.solve(np.concatenate([means, gradient]))[means.size :]


@record
@dataclass(frozen=True)
class KnownMean(BayesFull):
    """p(x | k) = N(x; mean, Sigma_k) with the mean given: regimes of returns, errors of scales.

    Parameters
    ----------
    mean : float or array (D,)
        The mean of all components, in data coordinates; zero by default.
    degrees : float, optional
        nu_0 of the Wishart prior of the precisions; by default D.
    scatter : array (D, D), optional
        W_0^-1; by default degrees times the second moments of all rows about the mean.
    """

    mean: Any = 0.0
    precision: Any = field(default=PINNED, init=False, repr=False)

    name: ClassVar[str] = "known-mean"
    free_means: ClassVar[bool] = False

    def __post_init__(self) -> None:
        mean = np.asarray(self.mean, dtype=float)
        if mean.ndim > 1 or not np.isfinite(mean).all():
            raise ValueError(
                "mean, which is known, must be one finite number or one for each column, got "
                f"{self.mean!r}"
            )

    def known_mean(self, frame: Frame) -> Array:
        """The mean (D,) in frame coordinates."""
        size, mean = frame.origin.size, np.asarray(self.mean, dtype=float)
        if mean.ndim and mean.size != size:
            raise ValueError(
                f"mean has {mean.size} numbers and the data have {size} columns; give one number "
                "for all columns, or one for each"
            )
        return np.asarray(frame.enter(np.broadcast_to(mean, (size,))))

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * (n_features * (n_features + 1) // 2)

    # ------------------------------------------------ maximum likelihood

    def _means(self, frame: Frame, n_components: int) -> Array:
        return np.repeat(self.known_mean(frame)[None], n_components, axis=0)

    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        size, K = previous.n_features, previous.n_components
        means = self._means(previous.frame, K)
        count, _, second = about(means, moments, unpack(moments.second, size))
        alive = count > 0
        scatter = second / np.where(alive, count, 1.0)[:, None, None]
        raised, floor = np.full(K, np.inf), self.floors(previous.frame)
        if alive.any():
            scatter[alive], raised[alive] = raise_all_eigenvalues(scatter[alive], floor)
        scatter = np.where(alive[:, None, None], scatter, previous.scatter)
        touched = self.is_spike(raised, previous.frame)
        return GaussianParams(previous.frame, means, scatter), touched

    def coordinates(self, params: GaussianParams) -> Array:
        return log_cholesky(self.factors(params)[0]).ravel()

    def from_coordinates(self, params: GaussianParams, vector: Array) -> GaussianParams:
        factors = vector.reshape(params.n_components, -1)
        covariances = from_log_cholesky(factors, params.n_features)
        raised, _ = raise_all_eigenvalues(covariances, self.floors(params.frame))
        return GaussianParams(params.frame, params.means, raised)

    def derivatives(self, params: GaussianParams, moments: Moments) -> tuple[Array, Metric]:
        second = unpack(moments.second, params.n_features)
        gradient, metric = slopes(self.factors(params), *about(params.means, moments, second))
        return gradient[params.means.size :], CovarianceMetric(metric)

    def place(self, params: GaussianParams, where: Array, points: Array) -> GaussianParams:
        """A component cannot move: it becomes as wide as a row asks for."""
        moved = super().place(params, where, points)
        away = points - params.means[where]
        scatter = moved.scatter.copy()
        scatter[where] += away[:, :, None] * away[:, None, :]
        return GaussianParams(params.frame, params.means, scatter)

    # ------------------------------------------------ the prior

    def prior(self, frame: Frame, total: Moments) -> NormalPrior:
        mean = self.known_mean(frame)
        known = replace(super().prior(frame, total), mean=mean)
        if self.scatter is not None:
            return known
        count, _, second = about(mean[None], total, unpack(total.second, mean.size))
        average = second[0] / max(float(count[0]), 1e-300)
        raised, _ = raise_all_eigenvalues(average[None], self.floor)
        return replace(known, scatter=known.degrees * raised[0])

    def describe_prior(self, prior: NormalPrior, frame: Frame) -> dict[str, Any]:
        told = super().describe_prior(prior, frame)
        del told["precision"]
        return told

    def empirical(self, posterior: NormalPosterior, prior: NormalPrior) -> NormalPrior:
        fresh = super().empirical(posterior, prior)
        return replace(fresh, mean=prior.mean, precision=prior.precision)

    def _draw_means(
        self,
        means: Array,
        precisions: Array,
        prior: NormalPrior,
        given: NormalPrior,
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        return prior.mean, prior.precision  # it is known

    def log_strength(self, prior: NormalPrior) -> float:
        return float(np.log(prior.degrees))
