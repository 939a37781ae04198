"""How clusters in a latent space are learned: by maximum likelihood, or with priors by VB.

Both see moments of the latents of each cluster, and the E step reads both as Gaussians with
weights; under priors each cluster has in addition a ``shift`` of its log density.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.families.bayes.records import NormalPrior
from mixfold.families.full import FullGaussian
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.frame import plain_frame
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.free import FreeWeights
from mixfold.models.projection.projection_coordinates import (
    points_from,
    points_vector,
    posterior_from,
    posterior_vector,
)
from mixfold.models.projection.projection_records import LatentClusters

# numbers of clusters that are tried at the start where theirs is learned
_SIZES = 12


@dataclass(frozen=True, slots=True)
class LatentReading:
    """Log weights (K,), point Gaussians, and the shift (K,) of their log densities."""

    log_weights: Array
    gaussians: GaussianParams
    shift: Array


class LatentLaw(Protocol):
    """A way to learn the clusters."""

    # whether there are priors, so that the latents have a scale of their own
    bayes: ClassVar[bool]

    def prior(
        self, size: int, n_clusters: int, variance: float, scale: float
    ) -> NormalPrior | None:
        """The prior of a cluster in ``size`` dimensions. ``variance`` is that of the latents along
        an axis, in units of ``scale`` squared."""
        ...

    def sizes(self, n_clusters: int) -> list[int]:
        """Numbers of clusters that a start may give rows to, to be tried in turn."""
        ...

    def first(self, moments: Moments, prior: NormalPrior | None) -> LatentClusters:
        """The clusters of a start."""
        ...

    def update(self, moments: Moments, old: LatentClusters) -> LatentClusters: ...

    def settled(self, clusters: LatentClusters) -> tuple[LatentClusters, Array]:
        """The clusters moved together to where their prior likes them best, and by how much (d,).

        The offset of the projection can follow, so that the density stays as it is. Without this
        the two creep along together.
        """
        ...

    def read(self, clusters: LatentClusters) -> LatentReading: ...

    def weights(self, clusters: LatentClusters) -> Array:
        """Expected weights (K,)."""
        ...

    def gaussians(self, clusters: LatentClusters) -> GaussianParams:
        """The clusters as points."""
        ...

    def penalty(self, clusters: LatentClusters) -> float:
        """What the objective lacks from the log-likelihood of the reading."""
        ...

    def ordered(self, clusters: LatentClusters, which: Array) -> LatentClusters:
        """The same clusters in another order."""
        ...

    def coordinates(self, clusters: LatentClusters, noise: float) -> Array:
        """The clusters as a vector without constraints; ``noise`` is that of the scores."""
        ...

    def from_coordinates(
        self, clusters: LatentClusters, vector: Array, noise: float
    ) -> LatentClusters: ...


@dataclass(frozen=True)
class MaximumLikelihood:
    """Free weights, means and covariances. A covariance may be singular: noise is added to it."""

    bayes: ClassVar[bool] = False
    family: FullGaussian = field(default_factory=lambda: FullGaussian(floor=0.0))
    mixing: FreeWeights = field(default_factory=FreeWeights)

    def prior(self, size: int, n_clusters: int, variance: float, scale: float) -> None:
        return None

    def sizes(self, n_clusters: int) -> list[int]:
        return [n_clusters]

    def first(self, moments: Moments, prior: NormalPrior | None) -> LatentClusters:
        K, size = moments.first.shape
        unit = np.tile(np.eye(size), (K, 1, 1))
        before = GaussianParams(plain_frame(size), np.zeros((K, size)), unit)
        # a cluster that found no rows may still win some
        counts = moments.count[:, 0] + 1e-3 * moments.count[:, 0].mean()
        components, _ = self.family.estimate(moments, before)
        return LatentClusters(self.mixing.posterior(counts), components, None, counts)

    def update(self, moments: Moments, old: LatentClusters) -> LatentClusters:
        counts = moments.count[:, 0]
        components, _ = self.family.estimate(moments, old.components)
        return LatentClusters(self.mixing.posterior(counts), components, None, counts)

    def settled(self, clusters: LatentClusters) -> tuple[LatentClusters, Array]:
        return clusters, np.zeros(clusters.components.n_features)

    def read(self, clusters: LatentClusters) -> LatentReading:
        zero = np.zeros(clusters.n_components)
        return LatentReading(self.mixing.mode(clusters.mixing), clusters.components, zero)

    def weights(self, clusters: LatentClusters) -> Array:
        return self.mixing.mean(clusters.mixing)

    def gaussians(self, clusters: LatentClusters) -> GaussianParams:
        gaussians: GaussianParams = clusters.components
        return gaussians

    def penalty(self, clusters: LatentClusters) -> float:
        return 0.0

    def ordered(self, clusters: LatentClusters, which: Array) -> LatentClusters:
        components = self.family.keep(clusters.components, which)
        weights = self.mixing.keep(clusters.mixing, which)
        return LatentClusters(weights, components, None, clusters.counts[which])

    def coordinates(self, clusters: LatentClusters, noise: float) -> Array:
        return points_vector(clusters, noise)

    def from_coordinates(
        self, clusters: LatentClusters, vector: Array, noise: float
    ) -> LatentClusters:
        return points_from(clusters, vector, noise)


@dataclass(frozen=True)
class VariationalBayes:
    """pi ~ Dirichlet(alpha / K), and a normal-Wishart prior of each cluster.

    Parameters
    ----------
    mixing : SymmetricDirichlet
    precision : float
        How many rows the prior of a mean is worth.
    degrees : float, optional
        Of the Wishart prior; by default d + 2.
    scatter : float, optional
        W^-1 = scatter I of the Wishart prior, in data units; by default the variance of the
        latents along an axis times K^(-2 / d), as if the clusters shared the space out. It must be
        a multiple of I, for the axes are free to turn.
    """

    bayes: ClassVar[bool] = True
    mixing: SymmetricDirichlet = field(default_factory=SymmetricDirichlet)
    precision: float = 0.1
    degrees: float | None = None
    scatter: float | None = None
    family: BayesFull = field(default_factory=lambda: BayesFull(floor=0.0))

    def prior(self, size: int, n_clusters: int, variance: float, scale: float) -> NormalPrior:
        degrees = size + 2.0 if self.degrees is None else float(self.degrees)
        if not degrees > size - 1:
            raise ValueError(
                f"degrees_of_freedom_prior must exceed n_components - 1 = {size - 1}, got "
                f"{degrees:g}; leave it out to take {size + 2}"
            )
        if self.scatter is None:
            scatter = variance * n_clusters ** (-2.0 / size)
        else:
            scatter = float(self.scatter) / scale**2
        return NormalPrior(
            np.zeros(size), np.asarray(self.precision), np.asarray(degrees), scatter * np.eye(size)
        )

    def sizes(self, n_clusters: int) -> list[int]:
        # a cluster that shares the rows of another dies slowly; one that never had any costs little
        return [int(size) for size in np.unique(np.geomspace(1, n_clusters, _SIZES).round())]

    def first(self, moments: Moments, prior: NormalPrior | None) -> LatentClusters:
        assert prior is not None
        frame, counts = plain_frame(moments.first.shape[1]), moments.count[:, 0]
        components = self.family.posterior(moments, prior, frame)
        return LatentClusters(self.mixing.posterior(counts), components, prior, counts)

    def update(self, moments: Moments, old: LatentClusters) -> LatentClusters:
        return self.first(moments, old.prior)

    def settled(self, clusters: LatentClusters) -> tuple[LatentClusters, Array]:
        own = clusters.components
        precisions = np.linalg.inv(own.scatter)
        pull = np.einsum("kde,ke->d", precisions, clusters.prior.mean - own.means)
        shift = np.linalg.solve(precisions.sum(axis=0), pull)
        return replace(clusters, components=replace(own, means=own.means + shift)), shift

    def read(self, clusters: LatentClusters) -> LatentReading:
        point = self.gaussians(clusters)
        expected = self.family.expected(clusters.components)
        shift = expected.constant - self.family.mode(point).constant
        return LatentReading(self.mixing.expected(clusters.mixing), point, shift)

    def weights(self, clusters: LatentClusters) -> Array:
        return self.mixing.mean(clusters.mixing)

    def gaussians(self, clusters: LatentClusters) -> GaussianParams:
        return self.family.point(clusters.components)

    def penalty(self, clusters: LatentClusters) -> float:
        of_weights = self.mixing.kl(clusters.mixing)
        return of_weights + self.family.kl(clusters.components, clusters.prior)

    def ordered(self, clusters: LatentClusters, which: Array) -> LatentClusters:
        state = self.mixing.keep(clusters.mixing, which)
        assert state is not None  # shares of alpha are equal here
        components = self.family.keep_posterior(clusters.components, which)
        return LatentClusters(state, components, clusters.prior, clusters.counts[which])

    def coordinates(self, clusters: LatentClusters, noise: float) -> Array:
        return posterior_vector(clusters, noise)

    def from_coordinates(
        self, clusters: LatentClusters, vector: Array, noise: float
    ) -> LatentClusters:
        return posterior_from(clusters, vector, self.mixing, float(clusters.counts.sum()))
