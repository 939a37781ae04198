"""A Bayesian mixture as the distribution of a new row: parameters averaged out.

    p(x) = sum_k E[pi_k] E[p(x | theta_k)]

Shares, densities and conditionals of it belong together: the density is the sum that shares are
shares of, and that of some columns given others is their joint density over the marginal one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.bayes_records import BayesParams
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading

if TYPE_CHECKING:
    from mixfold.families.component import ComponentFamily
    from mixfold.models.mixtures.bayes_mixture import BayesMixture


@dataclass(frozen=True)
class PredictiveMixture(Mixture):
    """What a mixture is asked, with rows scored by the posterior ``params`` of ``model``.

    The conditional mean of missing entries under a component is that of its point estimate.
    """

    model: Any = None
    params: Any = None

    def log_joint(self, reading: MixtureReading, block: Block) -> Array:
        found: Array = self.model.log_predictive(self.params, block)
        return found

    def _separate(
        self, reading: MixtureReading, block: Block, log_joint: Array
    ) -> tuple[Array, Array]:
        # heavy tails: logarithms stay small however far a row is
        return self.log_joint(reading, block), np.zeros(block.n_rows)

    def log_joint_and_base(self, reading: MixtureReading, block: Block) -> tuple[Array, Array]:
        return self._separate(reading, block, np.empty(0))


def condition_predictive(
    model: BayesMixture, params: BayesParams, known: Array, values: Array
) -> tuple[ComponentFamily, Any]:
    """The other columns given values of some: a family, and the mixture of its components, which is
    a posterior with fixed weights or, where the family has no posterior of its own, parameters."""
    log_density, family, given = model.conjugate.condition_predictive(
        params.components, known, values
    )
    with np.errstate(divide="ignore"):
        log_joint = np.log(params.weights) + log_density
    weights = normalise(log_joint[None])[1][0]
    if not hasattr(family, "posterior"):
        return family, MixtureParams(weights, given)
    return family, BayesParams(weights, given, None, params.counts, weights)
