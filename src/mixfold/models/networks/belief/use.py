"""Upward and downward passes of a deep belief network, and its predictions."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.models.networks.belief.records import BeliefParams, Directed
from mixfold.models.networks.boltzmann.energy import (
    free_energy,
    hidden_means,
    label_scores,
    visible_drive,
)
from mixfold.models.networks.boltzmann.gibbs import from_base, walk
from mixfold.models.networks.boltzmann.units import Bernoulli, Units, bits, sigmoid, softplus

BITS = Bernoulli()


def up(layer: Directed, below: Array) -> Array:
    """Logits of the units above."""
    drive = below @ layer.up
    drive += layer.up_bias
    return np.asarray(drive)


def down(layer: Directed, above: Array) -> Array:
    """Drive of the units below."""
    drive = above @ layer.down
    drive += layer.down_bias
    return np.asarray(drive)


def up_means(layers: tuple[Directed, ...], v: Array) -> Array:
    """Expected units of the highest of these layers, each layer by the means of the one below."""
    for layer in layers:
        v = sigmoid(up(layer, v))
    return v


def units_at(units: Units, layer: int) -> Units:
    """The kind of units on which a layer stands: ``units`` are those of the data."""
    return units if layer == 0 else BITS


def top_units(params: BeliefParams, units: Units) -> Units:
    """The kind of visible units of the top."""
    return units_at(units, len(params.layers))


def scores(params: BeliefParams, v: Array) -> Array:
    """ln p(y | v) up to a constant of the row, (n, C), by one pass upward."""
    return label_scores(params.top, up_means(params.layers, v))


def features(params: BeliefParams, v: Array) -> Array:
    """Expected units of the highest layer, without a look at labels."""
    return hidden_means(params.top, up_means(params.layers, v))


def fall(
    params: BeliefParams, units: Units, above: Array, rng: np.random.Generator | None,
    last_drawn: bool = False,
) -> Array:  # fmt: skip
    """Rows from states of the visible units of the top, downward.

    Layers between are drawn by ``rng``, or means if it is None; the lowest is one of means unless
    ``last_drawn``.
    """
    for number in reversed(range(len(params.layers))):
        drive = down(params.layers[number], above)
        kind = units_at(units, number)
        drawn = rng is not None and (number > 0 or last_drawn)
        above = kind.draw(drive, rng) if drawn and rng is not None else kind.mean(drive)
    return above


def reconstruct_rows(params: BeliefParams, units: Units, v: Array) -> Array:
    """Rows up to the top by means, and down again."""
    hidden = hidden_means(params.top, up_means(params.layers, v))
    back = top_units(params, units).mean(visible_drive(params.top, hidden))
    return fall(params, units, back, None)


def generate_rows(
    params: BeliefParams, units: Units, base: Array, labels: Array | None, n: int, n_steps: int,
    rng: np.random.Generator, probabilities: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """n rows, each from a chain of its own in the top, and their labels as shares.

    Chains begin at visible units of the top that are drawn one by one from their means, of which
    ``base`` are the biases. ``labels`` (n, C) are held while the chain runs.
    """
    top, kind = params.top, top_units(params, units)
    hidden = from_base(kind, top, base, n, labels, rng)
    v, labels, means = walk(kind, top, hidden, n_steps, rng, labels)
    if not params.layers and probabilities:  # as below a layer: expectations of the last draw
        v = kind.mean(visible_drive(top, bits(means, rng)))
    return fall(params, units, v, rng, not probabilities), labels


def bounds(
    params: BeliefParams, units: Units, v: Array, log_partition: float, seed: int,
    n_draws: int = 10, y: Array | None = None,
) -> Array:  # fmt: skip
    """E_q[ln p(v, h)] + entropy of q <= ln p(v), of each row, by draws from the pass upward.

    With ``y`` (class numbers) it is one of ln p(v, y). The entropy of a layer given the one below
    is exact; so without layers this is ln p(v) itself. What is drawn for a row depends on the row
    and the seed alone, not on the rows beside it.
    """
    rng = np.random.default_rng(seed)
    turns = _turns(v)
    total = np.zeros(len(v))
    n_draws = n_draws if params.layers else 1
    for _ in range(n_draws):
        below = v
        for number, layer in enumerate(params.layers):
            logits = up(layer, below)
            shares = sigmoid(logits.copy())
            total += (softplus(logits) - shares * logits).sum(axis=1, dtype=np.float64)
            drawn = (rng.random(shares.shape[1]) + turns) % 1.0
            above = (drawn < shares).astype(v.dtype)
            kind = units_at(units, number)
            total += kind.log_density(below, down(layer, above))
            below = above
        total -= free_energy(top_units(params, units), params.top, below, y) + log_partition
    return total / n_draws


def _turns(v: Array) -> Array:
    """A number in [0, 1) of each row, by which it turns random numbers that all rows share."""
    mixed = (v.astype(np.float64) * np.sqrt(2.0 + np.arange(v.shape[1]))).sum(axis=1)
    return np.asarray((1e3 * mixed) % 1.0)[:, None]
