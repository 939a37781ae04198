"""Rows as visible units, for RBM and DeepBeliefNetwork: complete, in memory, perhaps labelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, record
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import encode_classes, find_target
from mixfold.math.frame import Frame, frame_of, plain_frame
from mixfold.models.networks.boltzmann.units import Units

# of the rows and parameters that training works on
SINGLE = np.dtype(np.float32)
VISIBLE = ("bernoulli", "gaussian")


@record
@dataclass(frozen=True, slots=True)
class Entries:
    """What the columns of X are for the visible units: shares as they are, or in a frame.

    ``owner`` is the name of the estimator and ``names`` those of its columns, for messages.
    """

    visible: str
    frame: Frame
    owner: str
    names: tuple[str, ...] | None = None

    def enter(self, block: Block) -> Array:
        """The rows of a block as visible units, in the precision of the block; errors say where."""
        check_complete(self.owner, self.names, block)
        if self.visible == "bernoulli":
            _check_shares(self.names, block)
            return np.asarray(block.X)
        return np.asarray(self.frame.enter(block.X).astype(block.X.dtype))

    def leave(self, v: Array) -> Array:
        """Visible units as rows; real ones may be far from zero, and are in double precision."""
        return v if self.visible == "bernoulli" else self.frame.leave(v)

    @property
    def log_scale(self) -> float:
        """What a density of visible units has more than one of rows."""
        return float(self.frame.log_scale.sum())


def learn_entries(estimator: Any, rows: Block) -> Entries:
    """How the columns of these rows become visible units.

    Real columns are seen about their mean, in units of their standard deviation.
    """
    real = estimator.visible != "bernoulli"
    frame = frame_of(rows.X, rows.weights()) if real else plain_frame(rows.X.shape[1])
    return Entries(estimator.visible, frame, type(estimator).__name__, _column_names(estimator))


def _column_names(estimator: Any) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


# ------------------------------------------------ reading rows


def read_rows(
    estimator: Any, X: Any, y: Any, weight: Any, *, reset: bool, classes: Array | None = None
) -> tuple[Block, Array]:
    """All rows as one block, with class numbers (-1 unknown) if there are any; and the classes."""
    given = find_target(X, y, weight)
    source = given.open(estimator, reset=reset)
    estimator._executor(source)  # used after the fit only: an error is raised now
    blocks = list(source.blocks())
    for block in blocks:
        check_complete(type(estimator).__name__, _column_names(estimator), block)
    rows = np.concatenate([np.asarray(block.X) for block in blocks])
    weights = None
    if blocks[0].weight is not None:
        weights = np.concatenate([block.weights() for block in blocks])
    if given.y is None:
        return Block(rows, 0, None, weights), np.zeros(0, np.int64) if classes is None else classes
    numbers, classes = encode_classes(given.y, len(rows), weights, classes)
    return Block(rows, 0, numbers, weights), classes


def to_visible(entries: Entries, rows: Block) -> Block:
    """The rows as visible units in the precision of training."""
    return replace(rows, X=entries.enter(rows).astype(SINGLE))


def map_visible_rows(estimator: Any, X: Any, task: Callable[[Any, Array], Array]) -> Array:
    """``task(params, v)`` of the fitted parameters and the visible units of each block of X.

    The result has the precision of X; the blocks are visited by the executor of the estimator.
    """
    check_is_fitted(estimator)
    block_task = partial(_map_block, estimator._entries, estimator._params, task)
    return np.asarray(estimator._concatenate_rows(X, block_task))


def _map_block(
    entries: Entries, params: Any, task: Callable[[Any, Array], Array], block: Block
) -> Array:
    v = entries.enter(block)
    found = task(params.astype(v.dtype), v)
    return match_dtype(found, block)


def return_visible(params: Any, v: Array) -> Array:
    """The task of ``map_visible_rows`` that gives back the visible units themselves."""
    return v


# ------------------------------------------------ checks


def check_complete(owner: str, names: tuple[str, ...] | None, block: Block) -> None:
    """Energies have no term for an entry that nobody knows."""
    if block.complete:
        return
    lacks = np.argwhere(np.isnan(block.X))
    if len(lacks):
        row, column = lacks[0]
        raise ValueError(
            f"Input X contains NaN: {_column(names, column)}, row {block.start + row}. "
            f"{owner} needs complete rows; fill the gaps first, by "
            "mixfold.PPCA(...).fit(X).impute(X) say"
        )


def _check_shares(names: tuple[str, ...] | None, block: Block) -> None:
    if not block.n_rows or (block.X.min() >= 0 and block.X.max() <= 1):
        return
    row, column = np.argwhere((block.X < 0) | (block.X > 1))[0]
    raise ValueError(
        f"{_column(names, column)} must lie between 0 and 1, as visible='bernoulli' says; row "
        f"{block.start + row} has {block.X[row, column]:g}. Divide by the largest value (255 for "
        "pixels), or set visible='gaussian'"
    )


def _column(names: tuple[str, ...] | None, column: int) -> str:
    return f"column {names[column]!r}" if names is not None else f"column {column}"


# ------------------------------------------------ biases of the start


def label_biases(numbers: Array | None, n_classes: int, weight: Array | None) -> Array:
    """Biases of labels that alone give their shares, each class with one row more than it has."""
    if numbers is None or not n_classes:
        return np.zeros(n_classes)
    known = numbers >= 0
    counts = np.bincount(
        numbers[known], None if weight is None else weight[known], minlength=n_classes
    )
    return np.asarray(np.log((counts + 1.0) / (counts + 1.0).sum()))


def class_mean_biases(
    units: Units, X: Array, numbers: Array | None, n_classes: int, weight: Array | None
) -> Array:
    """Biases that alone give the means of the rows of each class (C, D), or of all rows (D,).

    Each class has one row more than it has, the mean of all.
    """
    mean = np.average(X, axis=0, weights=weight).astype(float)
    if numbers is None or not n_classes:
        return units.bias(mean)
    known = np.flatnonzero(numbers >= 0)
    shares = np.zeros((n_classes, len(known)))
    shares[numbers[known], np.arange(len(known))] = 1.0 if weight is None else weight[known]
    sums = shares.astype(X.dtype) @ X[known]
    return units.bias((sums + mean) / (shares.sum(axis=1, keepdims=True) + 1.0))
