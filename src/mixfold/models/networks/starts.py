"""Starts of a recognition network: from a stack of codebooks, or random weights.

A codebook A generates, x = phi A + b; its pseudo-inverse recognises, phi = (x - b) A^+. Scaled so
that every unit has variance one before its map, this is a better start than the codes' own scale:
the weak directions are not lost in the flat middle of the units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mixfold.contracts import Array, Block, Stats
from mixfold.models.networks.recognition import logits
from mixfold.models.networks.records import Network

# singular values of a codebook below this share of the largest are none
RANK = 1e-8
# units that vary less than this share of the others are dead and stay as they are
DEAD = 1e-9


@dataclass(frozen=True)
class Spread(Stats):
    """Sums of inputs of units and of their squares, and the weight of the rows."""

    total: Array
    squares: Array
    weight: float

    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each unit, 1 for one that does not vary."""
        mean = self.total / self.weight
        spread = np.sqrt(np.maximum(self.squares / self.weight - mean**2, 0.0))
        alive = spread > DEAD * max(float(spread.max()), 1e-300)
        return mean, np.where(alive, spread, 1.0)


def block_spread(network: Network, block: Block) -> Spread:
    """Of the inputs of the top layer of ``network``."""
    scores = logits(network.cast(block.X.dtype), block.X).astype(np.float64)
    weight = block.weights()
    return Spread(weight @ scores, weight @ scores**2, float(weight.sum()))


def stacked_start(
    codebooks: list[tuple[Array, Array]],
    n_classes: int,
    spread: Callable[[Network], Spread],
    units: str = "tanh",
) -> Network:
    """A network whose layers undo codebooks (A, b), units scaled to variance one; a top of zeros.

    ``spread`` measures the inputs of the top layer of a network over all rows.
    """
    weights: list[Array] = []
    biases: list[Array] = []
    scale = np.ones(codebooks[0][0].shape[1])
    origin = codebooks[0][1]
    for codebook, _ in codebooks:
        # what comes from below is ``scale`` times the sources that this codebook generates
        inverse = np.linalg.pinv(codebook, rcond=RANK) / scale[:, None]
        trial = Network((*weights, inverse), (*biases, -origin @ inverse), units)
        mean, deviation = spread(trial).moments()
        weights.append(inverse / deviation)
        biases.append((-origin @ inverse - mean) / deviation)
        scale, origin = 1 / deviation, np.zeros(len(deviation))
    weights.append(np.zeros((len(scale), n_classes)))
    biases.append(np.zeros(n_classes))
    return Network(tuple(weights), tuple(biases), units)


def random_start(sizes: list[int], rng: np.random.Generator, units: str = "tanh") -> Network:
    """Uniform weights whose size keeps the variance from layer to layer; ``sizes`` with both ends.

    References
    ----------
    .. [1] Glorot, Bengio. Understanding the difficulty of training deep feedforward neural
       networks. AISTATS 2010.
    """
    weights = []
    for below, above in pairwise(sizes):
        reach = np.sqrt(6.0 / (below + above))
        weights.append(rng.uniform(-reach, reach, (below, above)))
    return Network(tuple(weights), tuple(np.zeros(n) for n in sizes[1:]), units)
