"""Parameters of a deep belief network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from mixfold.contracts import Array, record
from mixfold.models.networks.boltzmann.records import RBMParams


@record
@dataclass(frozen=True, slots=True)
class Directed:
    """Two neighbouring layers: below given above (``down``), and what recognises above (``up``).

    Attributes
    ----------
    up : ndarray of shape (D, H)
    up_bias : ndarray of shape (H,)
    down : ndarray of shape (H, D)
    down_bias : ndarray of shape (D,)
    """

    up: Array
    up_bias: Array
    down: Array
    down_bias: Array

    def arrays(self) -> tuple[Array, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))

    def map(self, change: Callable[[Array], Array]) -> Self:
        return type(self)(*(change(array) for array in self.arrays()))


@record
@dataclass(frozen=True, slots=True)
class BeliefParams:
    """p(v, h1, ..) = p(v | h1) p(h1 | h2) .. p_top(h_{L-1}, h_L, y).

    ``layers`` from the data upward, the top is not among them; the visible units of ``top`` are the
    hidden units of the last layer (or the data, of a network without layers).
    """

    layers: tuple[Directed, ...]
    top: RBMParams

    def arrays(self) -> tuple[Array, ...]:
        below = (array for layer in self.layers for array in layer.arrays())
        return (*below, *self.top.arrays())

    def map(self, change: Callable[[Array], Array]) -> Self:
        return type(self)(tuple(one.map(change) for one in self.layers), self.top.map(change))

    def astype(self, dtype: np.dtype[np.floating]) -> Self:
        """The same numbers in another precision; itself if it is that already."""
        if self.top.dtype == dtype:
            return self
        return self.map(lambda array: array.astype(dtype, copy=False))

    @property
    def n_features(self) -> int:
        return len(self.layers[0].down_bias) if self.layers else len(self.top.visible)


@record
@dataclass(frozen=True, slots=True)
class BeliefState:
    """Between two batches: parameters, and the step before (for momentum)."""

    params: BeliefParams
    velocity: BeliefParams


def untie_weights(machine: RBMParams) -> Directed:
    """A trained machine as a directed layer; both directions may then go their own ways."""
    down = np.ascontiguousarray(machine.weights.T)
    return Directed(machine.weights.copy(), machine.hidden.copy(), down, machine.visible.copy())


def tie_weights(below: RBMParams, fresh: RBMParams) -> RBMParams:
    """A start for the machine above ``below``: that one upside down, where ``fresh`` has the room.

    The law of the data is then unchanged (units beyond those of ``below`` start nearly without
    weights), so that from there each gain of the machine is one of a bound of the whole.
    """
    n_below, n_new = below.weights.shape[0], fresh.weights.shape[1]
    if n_new < n_below:
        return fresh
    turned = below.transpose_layers()
    weights, hidden = fresh.weights.copy(), fresh.hidden.copy()
    weights[:, :n_below], hidden[:n_below] = turned.weights, turned.hidden
    return RBMParams(weights, turned.visible, hidden, fresh.label_weights, fresh.label_bias)
