"""Adam on mini-batches: the learner of a recognition network."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.math.rates import Linear, Position, Rate
from mixfold.models.networks.recognition import log_probabilities, value_and_gradient
from mixfold.models.networks.records import Network

# what mean ln q adds to the accuracy on rows that are held out: it decides between equals
TIE = 1e-3


@record
@dataclass(frozen=True, slots=True)
class AdamState:
    """A network, running means of its gradient and of the squares of that, and steps so far."""

    network: Network
    first: Network
    second: Network
    steps: int = 0


def adam_state(network: Network, dtype: type[np.floating] = np.float32) -> AdamState:
    """Where training begins; arrays are copies, since steps change them in place."""
    kind = np.dtype(dtype)

    def like(change: float) -> Network:
        weights = tuple((w * change).astype(kind) for w in network.weights)
        return Network(weights, tuple((b * change).astype(kind) for b in network.biases),
                       network.units)  # fmt: skip

    return AdamState(like(1.0), like(0.0), like(0.0))


@dataclass(frozen=True, slots=True)
class Adam:
    """Learns labelled rows by steps along running means of the gradient, each scaled by its size.

    ``l2`` is that of the objective of all rows: the mean loss and l2 / 2 |weights|^2.
    """

    rate: Rate = field(default_factory=lambda: Linear(1e-3, 1e-5))
    l2: float = 0.0
    momentum: float = 0.9
    memory: float = 0.999
    epsilon: float = 1e-8

    def step(
        self, state: AdamState, batch: Block, rng: np.random.Generator, position: Position
    ) -> AdamState:
        network = state.network
        labels = np.asarray(batch.y)
        X = batch.X.astype(network.weights[0].dtype, copy=False)
        _, gradient = value_and_gradient(network, X, labels, batch.weight)
        steps = state.steps + 1
        # running means that began at zero are too small by these factors
        size = self.rate.at(position) / (1 - self.momentum**steps)
        unbias = 1 / (1 - self.memory**steps)
        for name, l2 in (("weights", self.l2), ("biases", 0.0)):
            parts = zip(
                *(getattr(one, name) for one in (network, gradient, state.first, state.second)),
                strict=True,
            )
            for value, slope, first, second in parts:
                self._move(value, slope / batch.n_rows + l2 * value, first, second, size, unbias)
        return replace(state, steps=steps)

    def _move(
        self, value: Array, slope: Array, first: Array, second: Array, size: float, unbias: float
    ) -> None:
        first *= self.momentum
        first += (1 - self.momentum) * slope
        second *= self.memory
        second += (1 - self.memory) * slope * slope
        value -= size * first / (np.sqrt(unbias * second) + self.epsilon)

    def score(self, state: AdamState, rows: Block) -> float:
        """Share of the classes that are right; between equals mean ln q decides."""
        X = rows.X.astype(state.network.weights[0].dtype, copy=False)
        labels, weight = np.asarray(rows.y), rows.weights()
        logs = log_probabilities(state.network, X)
        right = logs.argmax(axis=1) == labels
        own = logs[np.arange(len(labels)), labels]
        return float(weight @ (right + TIE * own) / weight.sum())

    def describe_divergence(self, state: AdamState) -> str:
        finite = all(np.isfinite(w).all() for w in state.network.weights)
        return "" if finite else "weights of the network are no longer finite: lower learning_rate"
