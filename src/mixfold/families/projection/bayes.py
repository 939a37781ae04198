"""Gaussian components on one shared plane, each with a normal-Wishart prior in d dimensions.

The plane is a point estimate, the components have posteriors. Given a component the expected log
density of the latents is that of a Gaussian and a constant, so rows with missing entries are read
exactly as under points, and the bound is one of the same kind with or without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.projection.family import ProjectedGaussian
from mixfold.families.projection.plane import procrustes
from mixfold.families.projection.reading import ProjectionReading, read, rescale_reading
from mixfold.families.projection.records import ProjectionParams, ProjectionSums
from mixfold.math.frame import Frame, plain_frame

LATENT = BayesFull(floor=0.0)


@dataclass(frozen=True)
class BayesProjectedGaussian(ProjectedGaussian, ConjugateFamily):
    """The components with their posteriors; priors are those of ``BayesFull`` on the latents."""

    readings: ClassVar[tuple[str, ...]] = ("mode", "expected")

    def __post_init__(self) -> None:
        if self.update is not procrustes:
            raise ValueError(
                "with priors on the clusters the axes must stay orthonormal, or the scale of the "
                "latents would change under the prior; use update='procrustes'"
            )

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: ProjectionSums) -> NormalPrior:
        return LATENT.prior(plain_frame(self.size), total.latents)

    def posterior(
        self, moments: ProjectionSums, prior: NormalPrior, frame: Frame
    ) -> ProjectionParams:
        axes, offset, noise = self.estimate_plane(moments)
        clusters = LATENT.posterior(moments.latents, prior, plain_frame(self.size))
        if not self.fixed_latents:
            clusters, shift = moved_to_prior(clusters, prior)
            offset = offset - axes @ shift
        return ProjectionParams(frame, axes, offset, noise, clusters)

    def keep_posterior(self, posterior: ProjectionParams, which: Array) -> ProjectionParams:
        return replace(posterior, clusters=LATENT.keep_posterior(posterior.clusters, which))

    def change_frame_of_prior(self, prior: NormalPrior, old: Frame, new: Frame) -> NormalPrior:
        ratio = float(old.scale[0] / new.scale[0])
        return replace(prior, mean=prior.mean * ratio, scatter=prior.scatter * ratio**2)

    def change_frame_of_posterior(
        self, posterior: ProjectionParams, frame: Frame
    ) -> ProjectionParams:
        return rescale_reading(posterior, frame)

    # ------------------------------------------------ readings

    def point(self, posterior: ProjectionParams) -> ProjectionParams:
        return replace(posterior, clusters=LATENT.point(posterior.clusters))

    def expected_reading(self, posterior: ProjectionParams) -> ProjectionReading:
        point = self.point(posterior)
        gap = (
            LATENT.expected_reading(posterior.clusters).constant
            - LATENT.mode(point.clusters).constant
        )
        return read(point, gap, self.has_missing)

    def draw(self, posterior: ProjectionParams, rng: np.random.Generator) -> ProjectionParams:
        return replace(posterior, clusters=LATENT.draw(posterior.clusters, rng))

    # ------------------------------------------------ parts of the objectives

    def kl(self, posterior: ProjectionParams, prior: NormalPrior) -> float:
        return LATENT.kl(posterior.clusters, prior)

    def log_prior(self, params: ProjectionParams, prior: NormalPrior) -> float:
        return LATENT.log_prior(params.clusters, prior)

    def empirical(self, posterior: ProjectionParams, prior: NormalPrior) -> NormalPrior:
        return LATENT.empirical(posterior.clusters, prior)

    def evidence(self, moments: ProjectionSums, prior: NormalPrior, frame: Frame) -> float:
        raise TypeError(
            "the latents are hidden: rows with known components have no closed evidence"
        )

    def average(self, moments: ProjectionSums, reading: ProjectionReading) -> float:
        raise TypeError("the sums hold moments of latents, not of the scores that densities need")

    # ------------------------------------------------ prediction

    def log_predictive(self, posterior: ProjectionParams, block: Block) -> Array:
        raise TypeError(
            "a Student density with Gaussian noise added has no closed form; score the point"
        )

    def sample_predictive(
        self, posterior: ProjectionParams, labels: Array, rng: np.random.Generator
    ) -> Array:
        Z = LATENT.sample_predictive(posterior.clusters, labels, rng)
        noise = rng.standard_normal((len(labels), posterior.n_features)) * np.sqrt(posterior.noise)
        return posterior.frame.leave(Z @ posterior.axes.T + posterior.offset + noise)


def moved_to_prior(clusters: NormalPosterior, prior: NormalPrior) -> tuple[NormalPosterior, Array]:
    """The clusters moved together to where their prior likes them best, and by how much (d,).

    The offset of the plane can follow, so that the density stays as it is. Without this the two
    creep along together.
    """
    precisions = np.linalg.inv(clusters.scatter)
    pull = np.einsum("kde,ke->d", precisions, prior.mean - clusters.means)
    shift = np.linalg.solve(precisions.sum(axis=0), pull)
    return replace(clusters, means=clusters.means + shift), shift
