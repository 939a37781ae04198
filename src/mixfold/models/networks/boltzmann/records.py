"""Parameters of a restricted Boltzmann machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from mixfold.contracts import Array, record


@record
@dataclass(frozen=True, slots=True)
class RBMParams:
    """E(v, y, h) = bias terms - v'Wh - U_y h - c'h; also used for its gradients.

    Attributes
    ----------
    weights : ndarray of shape (D, H)
    visible : ndarray of shape (D,)
    hidden : ndarray of shape (H,)
    label_weights : ndarray of shape (C, H)
        C is 0 where there are no labels.
    label_bias : ndarray of shape (C,)
    """

    weights: Array
    visible: Array
    hidden: Array
    label_weights: Array
    label_bias: Array

    @property
    def shape(self) -> tuple[int, int, int]:
        """Visible units, hidden units, classes."""
        return self.weights.shape[0], self.weights.shape[1], len(self.label_bias)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.weights.dtype

    def arrays(self) -> tuple[Array, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))

    def map(self, change: Callable[[Array], Array]) -> Self:
        return type(self)(*(change(array) for array in self.arrays()))

    def astype(self, dtype: np.dtype[np.floating]) -> Self:
        """The same numbers in another precision; itself if it is that already."""
        if all(array.dtype == dtype for array in self.arrays()):
            return self
        return self.map(lambda array: array.astype(dtype, copy=False))

    def transpose_layers(self) -> RBMParams:
        """The machine with its sides swapped, without labels: a tied layer above this one."""
        n_visible = self.weights.shape[0]
        none = np.zeros((0, n_visible), self.dtype)
        weights = np.ascontiguousarray(self.weights.T)
        return RBMParams(weights, self.hidden.copy(), self.visible.copy(), none, none[:, 0])


@record
@dataclass(frozen=True, slots=True)
class RBMState:
    """Between two batches: parameters, the step before (for momentum), and the chains of PCD.

    ``chains`` (n_chains, H) are hidden states; there are none where each batch starts its own.
    """

    params: RBMParams
    velocity: RBMParams
    chains: Array


def first_params(
    visible: Array, n_hidden: int, label_bias: Array, rng: np.random.Generator,
    dtype: np.dtype[np.floating], spread: float = 0.01,
) -> RBMParams:  # fmt: skip
    """Small random weights; biases of the visible units and labels that alone fit the data."""
    weights = spread * rng.standard_normal((len(visible), n_hidden))
    labels = spread * rng.standard_normal((len(label_bias), n_hidden))
    params = RBMParams(weights, visible, np.zeros(n_hidden), labels, label_bias)
    return params.astype(dtype)


def first_state(params: RBMParams, n_chains: int, rng: np.random.Generator) -> RBMState:
    """At rest, with fair coins in the chains."""
    coins = rng.integers(0, 2, (n_chains, len(params.hidden))).astype(params.dtype)
    return RBMState(params, params.map(np.zeros_like), coins)
