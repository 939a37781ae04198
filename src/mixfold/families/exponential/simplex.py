"""Families whose parameters are shares that add to one, with Dirichlet priors."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families.exponential.family import ConjugateLinearFamily
from mixfold.families.exponential.pair import refuse_single
from mixfold.families.exponential.records import (
    LinearMoments,
    LinearParams,
    LinearReading,
    SharesPosterior,
    SharesPrior,
)
from mixfold.families.exponential.shares import (
    draw_logs,
    expected_logs,
    fit_segments,
    log_norm,
    log_shares,
    normalised_logs,
    over_segments,
    segment_sums,
)
from mixfold.families.exponential.support import require_positive
from mixfold.math.frame import Frame
from mixfold.math.prior_draws import draw_concentration


@dataclass(frozen=True)
class SimplexFamily(ConjugateLinearFamily):
    """Shares p of segments of columns, p ~ Dirichlet(a).

    Parameters
    ----------
    concentration : float or array, optional
        a; 1 by default, which is uniform.
    """

    concentration: Any = None

    @property
    def collapsed_law(self) -> str:
        return "dirichlet"

    def __post_init__(self) -> None:
        require_positive(self.concentration, "concentration")

    # ------------------------------------------------ what a family says

    @abstractmethod
    def starts(self, size: Array) -> Array:
        """Where the segments begin."""

    @abstractmethod
    def prior_shares(self, size: Array) -> Array:
        """a (V,) of the prior."""

    # ------------------------------------------------ linear family

    def describe(self, params: LinearParams) -> dict[str, Any]:
        return {"means": params.means, "probabilities": np.exp(params.theta)}

    def point_of(self, first: Array, count: Array, size: Array) -> Array:
        return log_shares(first, self.starts(size))

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        return normalised_logs(theta, self.starts(size))

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        return theta, np.zeros((len(theta), 1))

    def gradient_and_information(
        self, params: LinearParams, moments: LinearMoments
    ) -> tuple[Array, Array]:
        starts = self.starts(params.size)
        total = segment_sums(moments.first, starts)
        expected = over_segments(total, starts, params.theta.shape[1]) * np.exp(params.theta)
        return moments.first - expected, expected

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: LinearMoments) -> SharesPrior:
        size = self.column_constants(frame.origin.size)
        rows = float(total.count.max())
        length = float(total.first.sum()) / rows if rows > 0 else 1.0
        return SharesPrior(self.prior_shares(size), size, length)

    def describe_prior(self, prior: SharesPrior, frame: Frame) -> dict[str, Any]:
        return {"concentration": prior.a}

    def posterior(
        self, moments: LinearMoments, prior: SharesPrior, frame: Frame
    ) -> SharesPosterior:
        a = prior.a + moments.first
        usual = np.full((len(a), 1), prior.total)
        like = self.like(moments, usual)
        means = self.of_theta(log_shares(a, self.starts(prior.size)), prior.size, like)
        return SharesPosterior(frame, means, a, prior.size)

    def keep_posterior(self, posterior: SharesPosterior, which: Array) -> SharesPosterior:
        return replace(posterior, means=posterior.means[which], a=posterior.a[which])

    def point(self, posterior: SharesPosterior) -> LinearParams:
        theta = log_shares(posterior.a, self.starts(posterior.size))
        return LinearParams(posterior.frame, posterior.means, theta, posterior.size)

    def expected_reading(self, posterior: SharesPosterior) -> LinearReading:
        logs = expected_logs(posterior.a, self.starts(posterior.size))
        return self.reading(logs, np.zeros((len(logs), 1)), self.point(posterior))

    def draw(self, posterior: SharesPosterior, rng: np.random.Generator) -> LinearParams:
        theta = draw_logs(posterior.a, self.starts(posterior.size), rng)
        means = self.of_theta(theta, posterior.size, posterior.means)
        return LinearParams(posterior.frame, means, theta, posterior.size)

    # ------------------------------------------------ parts of the objectives

    def kl(self, posterior: SharesPosterior, prior: SharesPrior) -> float:
        starts = self.starts(prior.size)
        cross = ((posterior.a - prior.a) * expected_logs(posterior.a, starts)).sum()
        gain = log_norm(prior.a, starts) - log_norm(posterior.a, starts)
        return float(cross + gain.sum())

    def log_prior(self, params: LinearParams, prior: SharesPrior) -> float:
        return float((prior.a * params.theta).sum())

    def evidence(self, moments: LinearMoments, prior: SharesPrior, frame: Frame) -> float:
        starts = self.starts(prior.size)
        gain = log_norm(prior.a + moments.first, starts) - log_norm(prior.a, starts)
        return moments.base + float(gain.sum())

    def empirical(self, posterior: SharesPosterior, prior: SharesPrior) -> SharesPrior:
        refuse_single(posterior.n_components)
        starts = self.starts(prior.size)
        mean_log = expected_logs(posterior.a, starts).mean(axis=0)
        return replace(prior, a=fit_segments(mean_log, prior.a, starts))

    def draw_prior(
        self,
        params: LinearParams,
        prior: SharesPrior,
        given: SharesPrior,
        rng: np.random.Generator,
    ) -> SharesPrior:
        ends = [*self.starts(prior.size).tolist(), len(prior.a)]
        parts = [slice(first, last) for first, last in itertools.pairwise(ends)]
        drawn = [
            draw_concentration(params.theta[:, part], prior.a[part], given.a[part], rng)
            for part in parts
        ]
        return replace(prior, a=np.concatenate(drawn))

    def log_strength(self, prior: SharesPrior) -> float:
        return float(np.log(segment_sums(prior.a, self.starts(prior.size))).mean())

    def sample_predictive(
        self, posterior: SharesPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        theta = draw_logs(posterior.a[labels], self.starts(posterior.size), rng)
        return self.emit(posterior.means[labels], theta, posterior.size, rng)
