"""Up-down fine-tuning of a deep belief network (Hinton, Osindero and Teh, 2006)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.rates import Position, Rate
from mixfold.math.softmax import normalise
from mixfold.models.networks.belief import use
from mixfold.models.networks.belief.records import BeliefParams, BeliefState, Directed
from mixfold.models.networks.boltzmann.gibbs import beginnings, walk
from mixfold.models.networks.boltzmann.learner import WITH_DECAY, move, trouble_of
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.scores import TILE
from mixfold.models.networks.boltzmann.statistics import Seen, contrast, even, positive_phase
from mixfold.models.networks.boltzmann.units import Units, bits, sigmoid

# steps of the chain in the top, as training goes on
TOP_STEPS = (3, 6, 10)


@dataclass(frozen=True, slots=True)
class UpDownLearner:
    """Wake, a chain in the top, sleep: each direction learns what the other has drawn."""

    units: Units
    rate: Rate
    momentum: Rate
    l2: float = 0.0
    top_steps: tuple[int, ...] = TOP_STEPS

    def step(
        self, state: BeliefState, batch: Block, rng: np.random.Generator, position: Position
    ) -> BeliefState:
        """One batch; parameters change in place."""
        params = state.params
        n_steps = self.top_steps[int(position.share * len(self.top_steps))]
        gradient = up_down(params, self.units, batch, n_steps, rng)
        rate, momentum = self.rate.at(position), self.momentum.at(position)
        for one, velocity, slope in zip(
            params.layers, state.velocity.layers, gradient.layers, strict=True
        ):
            for value, speed, ascent in zip(
                one.arrays(), velocity.arrays(), slope.arrays(), strict=True
            ):
                move(value, speed, ascent, rate, momentum, self.l2 if value.ndim == 2 else 0.0)
        for name, decay in WITH_DECAY:
            value, speed, ascent = (
                getattr(each, name) for each in (params.top, state.velocity.top, gradient.top)
            )
            move(value, speed, ascent, rate, momentum, self.l2 if decay else 0.0)
        return state

    def score(self, state: BeliefState, rows: Block) -> float:
        return validation_score(state.params, self.units, rows)

    def describe_divergence(self, state: BeliefState) -> str:
        arrays = [a for layer in state.params.layers for a in layer.arrays()]
        if not all(np.isfinite(a).all() for a in arrays):
            return "weights are no longer finite; lower fine_tune_rate"
        return trouble_of(state.params.top)


def up_down(
    params: BeliefParams, units: Units, batch: Block, n_steps: int, rng: np.random.Generator
) -> BeliefParams:
    """Directions of ascent of all parameters, from one pass up, a chain, and one pass down."""
    awake = [np.asarray(batch.X, dtype=params.top.dtype)]
    for layer in params.layers:
        awake.append(bits(sigmoid(use.up(layer, awake[-1])), rng))
    shares = even(len(awake[0]), params.top.dtype, batch.weight)
    top, dream = _top(params.top, use.top_units(params, units), batch, awake[-1], n_steps, rng)
    asleep = [dream]
    for number in reversed(range(len(params.layers))):
        drive = use.down(params.layers[number], asleep[0])
        asleep.insert(0, use.units_at(units, number).draw(drive, rng))
    layers = []
    for number, layer in enumerate(params.layers):
        kind = use.units_at(units, number)
        down = generative(layer, kind, awake[number], awake[number + 1], shares)
        up = recognition(layer, asleep[number], asleep[number + 1], shares)
        layers.append(Directed(*up, *down))
    return BeliefParams(tuple(layers), top)


def generative(
    layer: Directed, units: Units, below: Array, above: Array, shares: Array
) -> tuple[Array, Array]:
    """Gradient of the mean ln p(below | above) by the weights downward and their bias."""
    miss = below - units.mean(use.down(layer, above))
    miss *= shares[:, None]
    return above.T @ miss, miss.sum(axis=0)


def recognition(layer: Directed, below: Array, above: Array, shares: Array) -> tuple[Array, Array]:
    """Gradient of the mean ln q(above | below) by the weights upward and their bias."""
    miss = above - sigmoid(use.up(layer, below))
    miss *= shares[:, None]
    return below.T @ miss, miss.sum(axis=0)


def _top(
    top: RBMParams, units: Units, batch: Block, v: Array, n_steps: int, rng: np.random.Generator
) -> tuple[RBMParams, Array]:
    """The contrast of the top by a chain from the data, and the visible units where it ends."""
    data = positive_phase(top, Block(v, 0, batch.y, batch.weight))
    dream, labels, means = walk(units, top, bits(beginnings(top, data, rng), rng), n_steps, rng)
    model = Seen(dream, labels, means, data.shares)
    return contrast(data, model), dream


def validation_score(params: BeliefParams, units: Units, rows: Block) -> float:
    """Mean ln p(y | v) of rows with labels; without any, minus half a squared error.

    That error is one of going up to the top and down again, per column.
    """
    y = np.full(rows.n_rows, -1) if rows.y is None else np.asarray(rows.y)
    known = np.flatnonzero(y >= 0) if len(params.top.label_bias) else np.zeros(0, np.int64)
    chosen = known if len(known) else np.arange(rows.n_rows)
    found = np.empty(len(chosen))
    for i in range(0, len(chosen), TILE):
        some = chosen[i : i + TILE]
        v = np.asarray(rows.X[some], dtype=params.top.dtype)
        if len(known):
            scores = use.scores(params, v)
            found[i : i + TILE] = scores[np.arange(len(some)), y[some]] - normalise(scores)[0]
        else:
            found[i : i + TILE] = _reconstruction(params, units, v)
    weight = None if rows.weight is None else rows.weight[chosen]
    return float(np.average(found, weights=weight))


def _reconstruction(params: BeliefParams, units: Units, v: Array) -> Array:
    back = use.reconstruct_rows(params, units, v)
    return np.asarray(-0.5 * ((v - back) ** 2).mean(axis=1, dtype=np.float64))
