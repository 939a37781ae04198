"""What model files of earlier versions hold, and the same as mixtures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mixfold.contracts import Array, record
from mixfold.families.projection import ProjectionParams
from mixfold.mixing.dirichlet import DirichletWeights
from mixfold.models.mixtures.bayes_records import BayesParams
from mixfold.models.mixtures.mixture import MixtureParams


@record
@dataclass(frozen=True, slots=True)
class LatentClusters:
    """Weights, Gaussians and counts of the clusters, which stood inside of ``ProjectionParams``."""

    mixing: Any
    components: Any
    prior: Any
    counts: Array

    @property
    def n_components(self) -> int:
        return len(self.counts)


def as_mixture(params: Any) -> Any:
    """Parameters of an earlier version as those of a mixture; others as they are."""
    if not (isinstance(params, ProjectionParams) and isinstance(params.clusters, LatentClusters)):
        return params
    old = params.clusters
    components = replace(params, clusters=old.components)
    if old.prior is None:
        return MixtureParams(old.mixing, components)
    state: DirichletWeights = old.mixing
    weights = state.concentration / state.concentration.sum()
    return BayesParams(state, components, old.prior, old.counts, weights)
