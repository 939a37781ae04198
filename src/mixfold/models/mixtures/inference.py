"""Three readings of one posterior: what tells EM/MAP, variational Bayes and Gibbs sampling apart.

A mixture holds the posterior of its weights and of its components. The E step reads them at their
point, in expectation or at a draw; the statistics that it sums make the next posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from mixfold.contracts import Array

if TYPE_CHECKING:
    from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams, BayesStats


class Inference(Protocol):
    """A reading, and what it maximises or samples."""

    name: ClassVar[str]
    # what a family must offer
    reading: ClassVar[str]
    # whether each row is given to one component, by a draw
    drawn: ClassVar[bool]

    def read(self, model: BayesMixture, params: BayesParams) -> tuple[Array, object]:
        """Log weights (K,) and the reading of the components."""
        ...

    def objective(self, model: BayesMixture, params: BayesParams, stats: BayesStats) -> float: ...

    def penalty(self, model: BayesMixture, params: BayesParams) -> float:
        """What the objective lacks from the log-likelihood of the reading."""
        ...

    def alpha(self, model: BayesMixture, state: object, rng: np.random.Generator) -> float:
        """The concentration of the weights after an update of their posterior."""
        ...


@dataclass(frozen=True, slots=True)
class Point:
    """The posterior at its point: maximum a posteriori, by EM."""

    name: ClassVar[str] = "em"
    reading: ClassVar[str] = "mode"
    drawn: ClassVar[bool] = False

    def read(self, model: BayesMixture, params: BayesParams) -> tuple[Array, object]:
        point = model.conjugate.point(params.components)
        return model.mixing.mode(params.mixing), model.family.mode(point)

    def objective(self, model: BayesMixture, params: BayesParams, stats: BayesStats) -> float:
        return stats.log_likelihood - self.penalty(model, params)

    def penalty(self, model: BayesMixture, params: BayesParams) -> float:
        point = model.conjugate.point(params.components)
        of_weights = model.mixing.log_prior(params.mixing)
        return -of_weights - model.conjugate.log_prior(point, params.prior)

    def alpha(self, model: BayesMixture, state: object, rng: np.random.Generator) -> float:
        return float(model.mixing.update_alpha(state, model.mixing.mode(state)))


@dataclass(frozen=True, slots=True)
class Variational:
    """The posterior in expectation: variational Bayes. The objective bounds the log evidence."""

    name: ClassVar[str] = "vb"
    reading: ClassVar[str] = "expected"
    drawn: ClassVar[bool] = False

    def read(self, model: BayesMixture, params: BayesParams) -> tuple[Array, object]:
        return model.mixing.expected_log_weights(params.mixing), model.conjugate.expected_reading(
            params.components
        )

    def objective(self, model: BayesMixture, params: BayesParams, stats: BayesStats) -> float:
        return stats.log_likelihood - self.penalty(model, params)

    def penalty(self, model: BayesMixture, params: BayesParams) -> float:
        of_components = model.conjugate.kl(params.components, params.prior)
        return model.mixing.kl(params.mixing) + of_components

    def alpha(self, model: BayesMixture, state: object, rng: np.random.Generator) -> float:
        return float(model.mixing.update_alpha(state))


@dataclass(frozen=True, slots=True)
class Gibbs:
    """The posterior at a draw, and each row in the component that was drawn for it.

    The objective is the log joint of the assignments and the rows, without the parameters.
    """

    name: ClassVar[str] = "gibbs"
    reading: ClassVar[str] = "draw"
    drawn: ClassVar[bool] = True

    def read(self, model: BayesMixture, params: BayesParams) -> tuple[Array, object]:
        # a function of the parameters: workers and later questions see the same draw
        rng = np.random.default_rng(params.seed)
        log_weights = model.mixing.draw(params.mixing, rng)
        return log_weights, model.family.mode(model.conjugate.draw(params.components, rng))

    def objective(self, model: BayesMixture, params: BayesParams, stats: BayesStats) -> float:
        frame = params.components.frame
        rows = model.conjugate.evidence(stats.components, params.prior, frame)
        return rows + model.mixing.log_prob(stats.counts, model.alpha_of(params))

    def penalty(self, model: BayesMixture, params: BayesParams) -> float:
        raise TypeError("a sampler has no bound")

    def alpha(self, model: BayesMixture, state: object, rng: np.random.Generator) -> float:
        return float(model.mixing.draw_alpha(state, model.mixing.draw(state, rng), rng))


INFERENCES: dict[str, Inference] = {rule.name: rule for rule in (Point(), Variational(), Gibbs())}
