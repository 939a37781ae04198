"""Gibbs chains of a restricted Boltzmann machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record
from mixfold.models.networks.boltzmann.energy import (
    draw_labels,
    hidden_means,
    label_shares,
    visible_drive,
)
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.statistics import Seen, even
from mixfold.models.networks.boltzmann.units import Units, bits


@record
@dataclass(frozen=True, slots=True)
class ContrastiveDivergence:
    """CD-k: k steps of Gibbs sampling from the data (Hinton, 2002).

    One step gives expectations of the visible units, which is less noisy; in longer chains they
    are drawn, so that the chain tends to the law of the model. Labels are always drawn: with their
    shares instead, weights of labels run away where most rows have none.
    """

    n_steps: int = 1

    n_chains = 0

    def negative(
        self, units: Units, params: RBMParams, data: Seen, chains: Array, rng: np.random.Generator
    ) -> tuple[Seen, Array]:
        """What the model gives, and the chains to go on from: none."""
        hidden = bits(beginnings(params, data, rng), rng)
        if self.n_steps == 1:
            v = units.mean(visible_drive(params, hidden))
            labels = draw_labels(label_shares(params, hidden), rng)
        else:
            v, labels, _ = walk(units, params, hidden, self.n_steps, rng)
        # a chain counts as much as the row that it began at
        return Seen(v, labels, hidden_means(params, v, labels), data.shares), chains


@record
@dataclass(frozen=True, slots=True)
class PersistentChains:
    """PCD-k: chains that go on from batch to batch (Tieleman, 2008)."""

    n_steps: int = 1
    n_chains: int = 100

    def negative(
        self, units: Units, params: RBMParams, data: Seen, chains: Array, rng: np.random.Generator
    ) -> tuple[Seen, Array]:
        """What the model gives, and the chains to go on from."""
        v, labels, means = walk(units, params, chains, self.n_steps, rng)
        shares = even(len(v), v.dtype) * data.shares.sum()
        return Seen(v, labels, means, shares), bits(means, rng)


Negative = ContrastiveDivergence | PersistentChains


def beginnings(params: RBMParams, data: Seen, rng: np.random.Generator) -> Array:
    """Means of hidden units where chains begin: of an unknown label one is drawn first.

    Given the row alone hidden units are not independent.
    """
    if data.label_hidden is None:
        return data.hidden
    return hidden_means(params, data.v, draw_labels(data.labels, rng))


def from_base(
    units: Units, params: RBMParams, base: Array, n: int, labels: Array | None,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Hidden states of n chains that begin at visible units drawn one by one.

    ``base`` are biases that alone give their means, (D,), or of rows of each class (C, D): chains
    hardly go from one class to another. Random hidden states would not do at all: most are far
    from all that the machine knows, and chains may never come back from there.
    """
    n_classes = len(params.label_bias)
    if labels is None:
        labels = draw_labels(np.full((n, n_classes), 1 / max(n_classes, 1), params.dtype), rng)
    rows = np.tile(base, (n, 1)) if base.ndim == 1 else base[labels.argmax(axis=1)]
    v = units.draw(rows.astype(params.dtype), rng)
    return bits(hidden_means(params, v, labels), rng)


def walk(
    units: Units, params: RBMParams, hidden: Array, n_steps: int, rng: np.random.Generator,
    labels: Array | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Visible units, labels and means of hidden units after ``n_steps`` from hidden states.

    ``labels`` (n, C), if given, are held.
    """
    v, own, means = _sweep(units, params, hidden, rng, labels)
    for _ in range(n_steps - 1):
        v, own, means = _sweep(units, params, bits(means, rng), rng, labels)
    return v, own, means


def _sweep(
    units: Units, params: RBMParams, hidden: Array, rng: np.random.Generator, held: Array | None
) -> tuple[Array, Array, Array]:
    v = units.draw(visible_drive(params, hidden), rng)
    labels = draw_labels(label_shares(params, hidden), rng) if held is None else held
    return v, labels, hidden_means(params, v, labels)
