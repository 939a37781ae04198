"""A feed-forward network as a value, and as one vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record


@record
@dataclass(frozen=True, slots=True)
class Network:
    """Layers h_l = units(h_{l-1} weights[l] + biases[l]); the last pair feeds a softmax.

    ``weights[l]`` is (inputs, outputs), ``biases[l]`` (outputs,); ``units`` is 'tanh' or
    'logistic', as in :data:`mixfold.math.link_functions.LINKS`.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    units: str = "tanh"

    @property
    def n_inputs(self) -> int:
        return int(self.weights[0].shape[0])

    @property
    def n_classes(self) -> int:
        return int(self.weights[-1].shape[1])

    @property
    def n_hidden(self) -> int:
        """Number of layers below the softmax."""
        return len(self.weights) - 1

    def cast(self, dtype: np.dtype[np.floating]) -> Network:
        """The same network in another precision."""
        return Network(
            tuple(w.astype(dtype, copy=False) for w in self.weights),
            tuple(b.astype(dtype, copy=False) for b in self.biases),
            self.units,
        )


def to_vector(network: Network) -> Array:
    """All weights and biases in one float64 vector."""
    parts = [*network.weights, *network.biases]
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def from_vector(network: Network, vector: Array) -> Network:
    """The inverse of :func:`to_vector`; ``network`` lends the shapes."""
    parts, at = [], 0
    for like in (*network.weights, *network.biases):
        parts.append(vector[at : at + like.size].reshape(like.shape))
        at += like.size
    n = len(network.weights)
    return Network(tuple(parts[:n]), tuple(parts[n:]), network.units)


def check_network(network: Network) -> None:
    """Refuse layers that do not fit each other."""
    if not network.weights or len(network.weights) != len(network.biases):
        raise ValueError(
            f"a network needs one bias for each of its weights; it has {len(network.weights)} "
            f"weights and {len(network.biases)} biases"
        )
    width = network.n_inputs
    for number, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        if weight.ndim != 2 or weight.shape[0] != width or bias.shape != weight.shape[1:]:
            raise ValueError(
                f"layer {number} of the network has weights {weight.shape} and biases "
                f"{bias.shape}; its inputs are {width}"
            )
        width = weight.shape[1]
