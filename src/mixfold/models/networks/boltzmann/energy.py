"""Free energies and conditional laws of a restricted Boltzmann machine, labels included."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.softmax import choose, normalise
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.units import Units, sigmoid, softplus


def hidden_drive(params: RBMParams, v: Array, labels: Array | None = None) -> Array:
    """c + vW + (labels)U of shape (n, H); labels are shares (n, C)."""
    drive = v @ params.weights
    drive += params.hidden
    if labels is not None and labels.shape[1]:
        drive += labels @ params.label_weights
    return np.asarray(drive)


def hidden_means(params: RBMParams, v: Array, labels: Array | None = None) -> Array:
    """p(h = 1 | v, y) of shape (n, H)."""
    return sigmoid(hidden_drive(params, v, labels))


def visible_drive(params: RBMParams, h: Array) -> Array:
    """b + hW' of shape (n, D)."""
    drive = h @ params.weights.T
    drive += params.visible
    return np.asarray(drive)


def label_shares(params: RBMParams, h: Array) -> Array:
    """p(y | h) of shape (n, C)."""
    if not len(params.label_bias):
        return np.zeros((len(h), 0), h.dtype)
    return normalise(h @ params.label_weights.T + params.label_bias)[1]


def one_hot(labels: Array, n_classes: int, dtype: np.dtype[np.floating]) -> Array:
    """Shares (n, C) of known labels."""
    return np.eye(n_classes, dtype=dtype)[labels]


def draw_labels(shares: Array, rng: np.random.Generator) -> Array:
    """One label for each row, as shares of 0 and 1."""
    if not shares.shape[1]:
        return shares
    return one_hot(choose(shares, rng.random(len(shares))), shares.shape[1], shares.dtype)


def label_scores(params: RBMParams, v: Array) -> Array:
    """ln p(y | v) up to a constant of the row, (n, C): d_y + sum_j softplus(c_j + v'W_j + U_yj)."""
    drive = hidden_drive(params, v)
    return scores_of_drive(params, drive)


def scores_of_drive(params: RBMParams, drive: Array) -> Array:
    """The same, where c + vW is known."""
    scores = np.empty((len(drive), len(params.label_bias)))
    for y, row in enumerate(params.label_weights):  # one class at a time: (n, H) is large enough
        scores[:, y] = softplus(drive + row).sum(axis=1, dtype=np.float64)
    return np.asarray(scores + params.label_bias)


def free_energy(units: Units, params: RBMParams, v: Array, y: Array | None = None) -> Array:
    """F(v) = -ln sum_h exp(-E), (n,); summed over labels too unless ``y``, class numbers, is given.

    ln p(v) = -F(v) - ln Z.
    """
    alone = units.weigh(v, params.visible)
    drive = hidden_drive(params, v)
    if not len(params.label_bias):
        return np.asarray(-alone - softplus(drive).sum(axis=1, dtype=np.float64))
    scores = scores_of_drive(params, drive)
    if y is None:
        return np.asarray(-alone - normalise(scores)[0])
    return np.asarray(-alone - scores[np.arange(len(v)), y])
