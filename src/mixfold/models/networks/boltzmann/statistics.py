"""Gradients of the log-likelihood: positive phase minus negative phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.softmax import normalise
from mixfold.models.networks.boltzmann.energy import hidden_drive, one_hot, scores_of_drive
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.units import sigmoid


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows with expected hidden units: what one phase of learning has seen.

    ``labels`` (n, C) are shares. ``shares`` (n,) of the rows sum to about one: the mean that a
    gradient is of; ``label_hidden`` (C, H) is that mean of labels times hidden units, None where
    the two are independent given the row.
    """

    v: Array
    labels: Array
    hidden: Array
    shares: Array
    label_hidden: Array | None = None


def even(n: int, dtype: np.dtype[np.floating], weight: Array | None = None) -> Array:
    """Shares of n rows in a mean; weights average 1 over all rows, if not over these."""
    if weight is None:
        return np.full(n, 1.0 / n, dtype)
    return (weight / n).astype(dtype)


def positive_phase(params: RBMParams, batch: Block) -> Seen:
    """The positive phase: rows of data with their labels, where known, and hidden units."""
    v = np.asarray(batch.X, dtype=params.dtype)
    shares = even(len(v), v.dtype, batch.weight)
    drive = hidden_drive(params, v)
    n_classes = len(params.label_bias)
    if not n_classes:
        return Seen(v, np.zeros((len(v), 0), v.dtype), sigmoid(drive), shares)
    y = np.full(len(v), -1) if batch.y is None else batch.y
    if (y >= 0).all():
        labels = one_hot(y, n_classes, params.dtype)
        drive += params.label_weights[y]
        return Seen(v, labels, sigmoid(drive), shares)
    return _partly_labelled(params, v, drive, y, shares)


def _partly_labelled(params: RBMParams, v: Array, drive: Array, y: Array, shares: Array) -> Seen:
    """An unknown label is summed over: each class with its probability given the row."""
    lacks = y < 0
    labels = one_hot(np.where(lacks, 0, y), len(params.label_bias), params.dtype)
    labels[lacks] = normalise(scores_of_drive(params, drive[lacks]))[1]
    hidden = np.zeros_like(drive)
    joint = np.empty_like(params.label_weights)
    for k, row in enumerate(params.label_weights):
        some = labels[:, k] > 0
        part = sigmoid(drive[some] + row) * labels[some, k, None]
        hidden[some] += part
        joint[k] = shares[some] @ part
    return Seen(v, labels, hidden, shares, joint)


def contrast(data: Seen, model: Seen) -> RBMParams:
    """Mean of v h', v, h, y h', y in the data less that in the model: ascends ln p.

    The large product is one, over the rows of both phases.
    """
    shares = np.concatenate([data.shares, -model.shares])
    v = np.concatenate([data.v, model.v])
    hidden = np.concatenate([data.hidden, model.hidden])
    hidden *= shares[:, None]
    visible = shares @ v
    labels = data.shares @ data.labels - model.shares @ model.labels
    joint = _label_hidden(data) - _label_hidden(model)
    return RBMParams(v.T @ hidden, visible, hidden.sum(axis=0), joint, labels)


def _label_hidden(found: Seen) -> Array:
    if found.label_hidden is not None:
        return found.label_hidden
    return np.asarray((found.labels * found.shares[:, None]).T @ found.hidden)
