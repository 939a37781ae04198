"""The recognition network (feed-forward classifier) and its gradient.

    h_0 = x,   h_l = units(h_{l-1} R_l + r_l),   q = softmax(h_L R_top + r_top)

What is minimised is the mean of -ln q of the class, and l2 / 2 times the sum of squared weights.
Everything that trains a network (quasi-Newton steps over all rows, Adam on batches) gets value and
gradient from :func:`value_and_gradient`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Stats
from mixfold.math.link_functions import LINKS
from mixfold.math.softmax import log_shares, normalise
from mixfold.models.networks.records import Network, from_vector, to_vector


@dataclass(frozen=True)
class NetworkSums(Stats):
    """Sum of the losses of labelled rows, its gradient as a vector, and their weight."""

    loss: float
    gradient: Array
    weight: float


def activations(network: Network, X: Any) -> list[Any]:
    """What goes into each layer: the rows themselves, then the units of every hidden layer."""
    units = LINKS[network.units]
    out = [X]
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        out.append(units.value(np.asarray(out[-1] @ weight) + bias))
    return out


def logits(network: Network, X: Any) -> Array:
    """Scores (n, C) of the classes, before the softmax."""
    top = activations(network, X)[-1]
    return np.asarray(top @ network.weights[-1]) + network.biases[-1]


def log_probabilities(network: Network, X: Any) -> Array:
    """ln P(class | row), (n, C)."""
    return log_shares(logits(network, X))


def value_and_gradient(
    network: Network, X: Any, labels: Array, weight: Array | None = None
) -> tuple[float, Network]:
    """Weighted sum over rows of -ln q of their class, and its gradient.

    Parameters
    ----------
    network : Network
    X : ndarray or CSR matrix of shape (n, D)
    labels : int ndarray of shape (n,)
        Class numbers, all known.
    weight : ndarray of shape (n,), optional

    Returns
    -------
    value : float
    gradient : Network
        Derivatives in the place of the weights and biases.
    """
    units = LINKS[network.units]
    layers = activations(network, X)
    scores = np.asarray(layers[-1] @ network.weights[-1]) + network.biases[-1]
    total, delta = normalise(scores)
    rows = np.arange(len(labels))
    losses = total - scores[rows, labels]
    delta[rows, labels] -= 1
    if weight is not None:
        losses = losses * weight
        delta *= weight.astype(delta.dtype)[:, None]
    weights, biases = [], []
    for depth in range(len(layers) - 1, -1, -1):
        weights.append(np.asarray(layers[depth].T @ delta))
        biases.append(delta.sum(axis=0))
        if depth:
            delta = delta @ network.weights[depth].T
            delta *= units.slope(layers[depth])
    gradient = Network(tuple(weights[::-1]), tuple(biases[::-1]), network.units)
    return float(losses.sum(dtype=np.float64)), gradient


def block_sums(network: Network, block: Block) -> NetworkSums:
    """Statistics of the labelled rows of a block, in the precision of its entries."""
    labels = np.full(block.n_rows, -1) if block.y is None else np.asarray(block.y)
    known = labels >= 0 if block.weight is None else (labels >= 0) & (block.weight > 0)
    if not known.any():
        return NetworkSums(0.0, np.zeros(len(to_vector(network))), 0.0)
    X, weight = block.X, block.weight
    if not known.all():
        X, labels = X[known], labels[known]
        weight = None if weight is None else weight[known]
    value, gradient = value_and_gradient(network.cast(X.dtype), X, labels, weight)
    size = float(len(labels) if weight is None else weight.sum())
    return NetworkSums(value, to_vector(gradient), size)


def penalised_loss(network: Network, sums: NetworkSums, l2: float) -> tuple[float, Array]:
    """What is minimised, and its gradient as a vector: the mean loss and l2 / 2 |weights|^2."""
    size = max(sums.weight, 1e-300)
    value, slope = sums.loss / size, sums.gradient / size
    if l2:
        still = [np.zeros_like(b, dtype=np.float64) for b in network.biases]
        pull = Network(network.weights, tuple(still), network.units)
        slope = slope + l2 * to_vector(pull)
        squares = sum(float(np.sum(np.square(w, dtype=np.float64))) for w in network.weights)
        value += 0.5 * l2 * squares
    return value, slope


def objective(
    network: Network, vector: Array, block: Block, l2: float = 0.0
) -> tuple[float, Array]:
    """:func:`penalised_loss` for one block, as a function of the vector of all parameters."""
    here = from_vector(network, vector)
    return penalised_loss(here, block_sums(here, block), l2)
