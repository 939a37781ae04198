"""Rows for machines of visible and hidden units: complete, in memory, with labels or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from mixfold.contracts import Array, Block, Source, record
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import sides_beside, split_target
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.target_values import as_target, of_one_kind, unknown
from mixfold.math.frame import Frame, frame_of, plain_frame
from mixfold.models.networks.boltzmann.units import Units

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


def entries_of(owner: Any, rows: Block) -> Entries:
    """Real columns are seen about their mean, in units of their standard deviation."""
    names = _names(owner)
    if owner.visible == "bernoulli":
        return Entries(owner.visible, plain_frame(rows.X.shape[1]), type(owner).__name__, names)
    frame = frame_of(rows.X, rows.weights())
    return Entries(owner.visible, frame, type(owner).__name__, names)


def _names(owner: Any) -> tuple[str, ...] | None:
    names = getattr(owner, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def gathered(
    owner: Any, X: Any, y: Any, weight: Any, *, reset: bool, classes: Array | None = None
) -> tuple[Block, Array]:
    """All rows as one block, with class numbers (-1 unknown) if there are any; and the classes."""
    if isinstance(y, str):
        y, columns = split_target(X, y, weight)
        X = open_source(X, columns=columns, weight=weight)
        weight = None
    source = owner._open(X, reset=reset, weight=weight)
    owner._executor(source)  # rows are visited by it after the fit: what it cannot be is told now
    if y is None and isinstance(X, Source):
        y = sides_beside(X).y
    blocks = list(source.blocks())
    for block in blocks:
        check_complete(type(owner).__name__, _names(owner), block)
    rows = np.concatenate([np.asarray(block.X) for block in blocks])
    weights = None
    if blocks[0].weight is not None:
        weights = np.concatenate([block.weights() for block in blocks])
    if y is None:
        return Block(rows, 0, None, weights), np.zeros(0, np.int64) if classes is None else classes
    numbers, classes = class_codes(y, len(rows), weights, classes)
    return Block(rows, 0, numbers, weights), classes


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


# ------------------------------------------------ labels


def class_codes(
    y: Any, n_rows: int, weight: Array | None, classes: Array | None
) -> tuple[Array, Array]:
    """Class numbers with -1 where unknown, and the classes, which may be known already."""
    values = _flat(as_target(y))
    if len(values) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and "
            f"y {len(values)}; give one entry per row, in the same order"
        )
    lacks = unknown(values)
    if weight is not None:
        lacks = lacks | (weight == 0)
    known = of_one_kind(values[~lacks])
    if known.dtype.kind == "f" and (known != np.round(known)).any():
        raise ValueError(
            "Unknown label type: 'continuous'. Classes must be whole numbers or text, but y holds "
            f"{known[known != np.round(known)][0]:g}; leave y out to learn from X alone"
        )
    numbers = np.full(n_rows, -1, dtype=np.int64)
    if classes is None:
        classes, numbers[~lacks] = np.unique(known, return_inverse=True)
        return numbers, classes
    numbers[~lacks] = numbers_of(known, classes)
    return numbers, classes


def numbers_of(known: Array, classes: Array) -> Array:
    """Where labels stand among the classes."""
    if not len(known):
        return np.zeros(0, np.int64)
    at = np.searchsorted(classes, known)
    at = np.minimum(at, max(len(classes) - 1, 0))
    wrong = np.ones(len(known), bool) if not len(classes) else classes[at] != known
    if wrong.any():
        raise ValueError(
            f"{known[wrong].tolist()[0]!r} is no known class; the classes are "
            f"{', '.join(map(repr, classes.tolist())) or 'none: the fit had no labels'} "
            "(partial_fit takes all of them in its first call, classes=...)"
        )
    return np.asarray(at)


def _flat(values: Array) -> Array:
    if values.ndim == 1:
        return values
    if values.shape[1] > 1:
        raise ValueError(f"classes have one column, got y of shape {values.shape}")
    warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of "
        "y to (n_samples,), for example using ravel().",
        DataConversionWarning,
    )
    return values.ravel()


def label_law(numbers: Array | None, n_classes: int, weight: Array | None) -> Array:
    """Biases of labels that alone give their shares, each class with one row more than it has."""
    if numbers is None or not n_classes:
        return np.zeros(n_classes)
    known = numbers >= 0
    counts = np.bincount(
        numbers[known], None if weight is None else weight[known], minlength=n_classes
    )
    return np.asarray(np.log((counts + 1.0) / (counts + 1.0).sum()))


def beginnings(
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
