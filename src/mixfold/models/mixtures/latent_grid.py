"""The generative topographic mapping: a mixture whose components are a grid on a smooth surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Context, Update
from mixfold.families.latent_grid import LatentGridGaussian
from mixfold.math.frame import Frame
from mixfold.models.mixtures.floor_events import floor_events
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureStats, Started
from mixfold.models.mixtures.starts import Sample


def equal_shares(
    sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
) -> Array:
    """No start: the surface begins on the principal axes, whatever the shares."""
    return np.full((len(sample.U), n_components), 1.0 / n_components)


@dataclass(frozen=True)
class GridMixture(Mixture):
    """Components of equal weight that are not moved one by one: an empty one is no fault."""

    family: LatentGridGaussian

    def _first(self, frame: Frame, rows: Started) -> MixtureParams:
        components = self.family.from_plane(frame, rows.U, rows.resp.sum(axis=1))
        weights = self.mixing.posterior(np.ones(self.n_components))
        return MixtureParams(weights, components)

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        components, touched = self.family.estimate(stats.components, params.components)
        events = floor_events(self.family, components, touched, stats.counts, context)
        return Update(MixtureParams(params.weights, components), events)
