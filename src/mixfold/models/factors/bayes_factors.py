"""Mixtures of factor components with priors: steps of their posteriors can be extrapolated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Context, Update
from mixfold.families.factor.posteriors import FactorPosterior
from mixfold.families.gaussian import flat
from mixfold.math.symmetric import LOG_LIMIT
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.mixture import COORDINATE_LIMIT, MixtureStats

# rows are counted from here: the logarithm of a component that has none stays calm
_FEW = 0.1


@dataclass(frozen=True)
class BayesFactorMixture(BayesMixture):
    """Posteriors of weights, loadings, means and noise: variational Bayes."""

    @property
    def can_extrapolate(self) -> bool:
        return True

    def update(self, params: Any, stats: MixtureStats, context: Context) -> Update[Any]:
        """A step after which other factors are in use has no predecessors."""
        done = super().update(params, stats, context)
        before, after = params.components.used, done.params.components.used
        if before.shape == after.shape and (before == after).all():
            return done
        return replace(done, monotone=False)

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: Any) -> Array:
        """Log counts; of the components what is expected, and the rates of their relevances."""
        own: FactorPosterior = params.components
        logs = np.log(params.counts + _FEW)
        return flat(logs, own.means, own.loadings, np.log(own.noise), np.log(own.rates))

    def from_coordinates(self, params: Any, vector: Array) -> Any:
        """Any values make a posterior; what is not known of the loadings is that of ``params``."""
        old: FactorPosterior = params.components
        shapes = [(old.n_components,), old.means.shape, old.loadings.shape]
        shapes += [old.noise.shape, old.rates.shape]
        sizes = [int(np.prod(shape)) for shape in shapes]
        if len(vector) != sum(sizes) or not np.abs(vector[sizes[0] :]).max() < COORDINATE_LIMIT:
            return None
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        logs, means, loadings, noise, rates = (
            part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)
        )
        if max(np.abs(noise).max(), np.abs(rates).max()) > LOG_LIMIT:
            return None
        counts = np.maximum(np.exp(np.minimum(logs, LOG_LIMIT)) - _FEW, 0.0)
        # the weight of all rows is what it was
        counts *= float(params.counts.sum()) / max(float(counts.sum()), np.finfo(float).tiny)
        components = replace(
            old, means=means, loadings=loadings, noise=np.exp(noise), rates=np.exp(rates)
        )
        state = self.mixing.posterior(counts, self.alpha_of(params), params.mixing)
        weights = self.mixing.mean(state)
        return BayesParams(state, components, params.prior, counts, weights)
