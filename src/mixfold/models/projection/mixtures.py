"""Mixtures of Gaussian components on one shared plane, with or without priors.

    c ~ pi,   z | c = k ~ N(m_k, S_k),   x | z ~ N(W z + offset, noise I),   W'W = I

The E step, the counts, the weights and the bound are those of any mixture; the plane belongs to the
family (``families/projection``). What is added here: the floor of the noise is told once rather
than of every component, and posteriors can be extrapolated, without which the plane and the
clusters creep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Context, Event, Pilot, Update
from mixfold.families.bayes.records import NormalPosterior
from mixfold.families.gaussian import flat
from mixfold.families.projection import ProjectedGaussian, ProjectionParams, ProjectionSums
from mixfold.families.projection.family import plane_vector, split_clusters, split_plane
from mixfold.families.projection.plane import polar
from mixfold.math.frame import Frame
from mixfold.math.softmax import normalise
from mixfold.math.symmetric import LOG_LIMIT, factorise, log_cholesky, raise_eigenvalues
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.far_rows import separate_far_rows
from mixfold.models.mixtures.mixture import (
    COORDINATE_LIMIT,
    Mixture,
    MixtureParams,
    MixtureReading,
    MixtureStats,
    Started,
)

# rows are counted from here: the logarithm of a cluster that has none stays calm
_FEW = 0.1


@dataclass(frozen=True)
class ProjectedMixture(Mixture):
    """Free weights, means and covariances: maximum likelihood."""

    def rearrangements(
        self, params: MixtureParams, pilot: Pilot, rng: np.random.Generator
    ) -> Iterator[MixtureParams]:
        """None: starts are made on the plane, rows are not."""
        return iter(())

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        return _tell_of_floor(self.family, super().update(params, stats, context), context)

    def derivatives(self, params: MixtureParams, stats: MixtureStats) -> None:
        return None


@dataclass(frozen=True)
class ProjectedBayesMixture(BayesMixture):
    """Posteriors of weights and components: variational Bayes; the plane is a point."""

    def sample_moments(self, frame: Frame, rows: Started, resp: Array) -> ProjectionSums:
        assert isinstance(self.family, ProjectedGaussian)
        return self.family.start_sums(rows.U, resp)

    def update(self, params: Any, stats: MixtureStats, context: Context) -> Update[Any]:
        return _tell_of_floor(self.family, super().update(params, stats, context), context)

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: Any) -> Array:
        """Log counts, which make all degrees of freedom; means, covariances and the plane."""
        own: NormalPosterior = params.components.clusters
        factors, _ = factorise(own.scatter)
        logs = np.log(params.counts + _FEW)
        return flat(logs, own.means, log_cholesky(factors), plane_vector(params.components))

    def from_coordinates(self, params: Any, vector: Array) -> Any:
        if not np.abs(vector[self.n_components :]).max() < COORDINATE_LIMIT:
            return None
        old: ProjectionParams = params.components
        prior = params.prior
        (loadings, offset, noise), own = split_plane(old, vector, self.family.floor)
        logs, own = np.split(own, [self.n_components])
        means, scatter = split_clusters(old, own)
        scatter = np.stack([raise_eigenvalues(one, 0.0)[0] for one in scatter])
        counts = np.maximum(np.exp(np.minimum(logs, LOG_LIMIT)) - _FEW, 0.0)
        # the weight of all rows is what it was
        counts *= float(params.counts.sum()) / max(float(counts.sum()), np.finfo(float).tiny)
        clusters = replace(
            old.clusters,
            means=means,
            precision=prior.precision + counts,
            degrees=prior.degrees + counts,
            scatter=scatter,
        )
        # priors know the scale of the latents: only the directions of the loadings count
        components = ProjectionParams(old.frame, polar(loadings)[0], offset, noise, clusters)
        state = self.mixing.posterior(counts, self.alpha_of(params), params.mixing)
        return BayesParams(state, components, prior, counts, self.mixing.mean(state))


def _tell_of_floor(family: Any, update: Update[Any], context: Context) -> Update[Any]:
    """The update with an event if its noise is at the floor."""
    if update.params.components.noise > family.floor:
        return update
    event = Event("floor", family.floor_message(), context.iteration)
    return replace(update, events=(*update.events, event))


def expected_latents(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    """E[z | x] (n, d) of the rows of a block, averaged over the components."""
    family = model.family
    assert isinstance(family, ProjectedGaussian)
    parts = []
    for tile in family.tiles(block, reading.components):
        scores = family.scores(tile, reading.components)
        log_joint = scores.log_density + reading.log_weights
        own = reading.components, reading.log_weights
        _, resp = normalise(separate_far_rows(family, tile, *own, log_joint)[0])
        parts.append(family.latents(scores, resp, reading.components))
    return np.concatenate(parts)
