"""A restricted Boltzmann machine as a learner of mini-batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.rates import Position, Rate
from mixfold.models.networks.boltzmann import scores
from mixfold.models.networks.boltzmann.gibbs import Negative
from mixfold.models.networks.boltzmann.records import RBMParams, RBMState
from mixfold.models.networks.boltzmann.statistics import contrast, positive_phase
from mixfold.models.networks.boltzmann.units import Units

# weights beyond this are no longer learned but running away
LARGEST_WEIGHT = 50.0


@dataclass(frozen=True, slots=True)
class RBMLearner:
    """Ascends ln p by contrastive divergence or persistent chains, with momentum.

    ``l2`` pulls weights, not biases, to zero.
    """

    units: Units
    negative: Negative
    rate: Rate
    momentum: Rate
    l2: float = 0.0

    def step(
        self, state: RBMState, batch: Block, rng: np.random.Generator, position: Position
    ) -> RBMState:
        """One batch; parameters change in place."""
        params = state.params
        data = positive_phase(params, batch)
        model, chains = self.negative.negative(self.units, params, data, state.chains, rng)
        gradient = contrast(data, model)
        momentum = self.momentum.at(position)
        rate = self.rate.at(position)
        for name, decay in WITH_DECAY:
            move(
                getattr(params, name), getattr(state.velocity, name), getattr(gradient, name),
                rate, momentum, self.l2 if decay else 0.0,
            )  # fmt: skip
        return RBMState(params, state.velocity, chains)

    def score(self, state: RBMState, rows: Block) -> float:
        return scores.validation(self.units, state.params, rows)

    def describe_divergence(self, state: RBMState) -> str:
        return trouble_of(state.params)


WITH_DECAY = (
    ("weights", True),
    ("visible", False),
    ("hidden", False),
    ("label_weights", True),
    ("label_bias", False),
)


def move(
    value: Array, velocity: Array, gradient: Array, rate: float, momentum: float, l2: float
) -> None:
    """velocity <- momentum velocity + rate (gradient - l2 value); value <- value + velocity."""
    velocity *= momentum
    gradient *= rate
    velocity += gradient
    if l2:
        np.multiply(value, rate * l2, out=gradient)
        velocity -= gradient
    value += velocity


def trouble_of(params: RBMParams) -> str:
    """Weights that run away, in words."""
    largest = float(np.abs(params.weights).max(initial=0.0))
    if not all(np.isfinite(array).all() for array in params.arrays()):
        return "weights are no longer finite; lower learning_rate"
    if largest > LARGEST_WEIGHT:
        return (
            f"a weight has grown to {largest:.3g} (more than {LARGEST_WEIGHT:g}); lower "
            "learning_rate or raise l2"
        )
    return ""
