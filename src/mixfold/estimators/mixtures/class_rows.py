"""Rows of X with their classes, and the rows of each class as its estimator takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mixfold.contracts import Array, Block, Source
from mixfold.engine.sources import open_source
from mixfold.engine.sources.part import PartSource, part_of
from mixfold.engine.sources.targets import sides_beside, split_target
from mixfold.estimators.shell.base import MixfoldEstimator


@dataclass(frozen=True, slots=True)
class ClassRows:
    """All rows with the number of their class; rows in memory are copied by class, others visited.

    ``labels`` (n,) are class numbers, ``weights`` (n,) or None.
    """

    source: Source
    labels: Array
    weights: Array | None
    in_memory: bool

    def of_class(self, number: int, among: Array | None = None) -> tuple[Any, Array | None]:
        """Rows of a class (and of ``among``, if given) and their weights."""
        chosen = self.labels == number
        return self.at(chosen if among is None else chosen & among)

    def at(self, chosen: Array) -> tuple[Any, Array | None]:
        """The rows at which ``chosen`` is true, and their weights (None: those of the source)."""
        part = part_of(self.source, chosen)
        if not self.in_memory:
            return part, None
        X = [
            block.X
            for block, some in zip(part.blocks(), self._blocks_with(chosen), strict=True)
            if some
        ]
        rows = sparse.csr_array(sparse.vstack(X)) if sparse.issparse(X[0]) else np.concatenate(X)
        return rows, None if self.weights is None else self.weights[chosen]

    def to_score(self, chosen: Array) -> tuple[Any, Array | None]:
        """The same rows to be scored: exactly these, and their weights, wherever they are."""
        weight = None if self.weights is None else self.weights[chosen]
        return (self.at(chosen)[0] if self.in_memory else _ChosenRows(self.source, chosen)), weight

    def _blocks_with(self, chosen: Array) -> list[bool]:
        """Which blocks have a chosen row: the part has one row of the others, of no weight."""
        return [bool(chosen[block.rows].any()) for block in self.source.blocks()]

    def weigh_classes(self, n_classes: int, among: Array | None = None) -> Array:
        """Weight of each class (of its rows in ``among``, if given)."""
        weight = np.ones(len(self.labels)) if self.weights is None else self.weights
        if among is not None:
            weight = weight * among
        return np.bincount(self.labels, weight, minlength=n_classes).astype(float)


class _ChosenRows(PartSource):
    """The chosen rows and no others: blocks without any of them are left out."""

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        before = 0
        for block in self._source.blocks(max_rows):
            rows = np.flatnonzero(self._chosen[block.rows])
            if rows.size:
                X, weight = block.X[rows], None if block.weight is None else block.weight[rows]
                yield replace(block, X=X, start=before, y=None, weight=weight)
                before += rows.size


def open_class_rows(
    classifier: Any, X: Any, y: Any, weight: Any, reset: bool = True
) -> tuple[ClassRows, Array]:
    """The rows of ``fit`` or ``partial_fit`` with class numbers, and the classes among them."""
    in_memory = _is_in_memory(X)
    if isinstance(y, str):
        y, columns = split_target(X, y, weight)
        X = open_source(X, columns=columns, weight=weight)
        weight = None
    source = classifier._open(X, reset=reset, weight=weight)
    if y is None and isinstance(X, Source):
        y = sides_beside(X).y
    classes, labels = np.unique(_check_labels(classifier, y), return_inverse=True)
    if source.n_samples is not None and source.n_samples != len(labels):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has "
            f"{source.n_samples} rows and y {len(labels)}; give one entry per row, in the same "
            "order"
        )
    weights = _read_weights(source)
    if weights is not None and (weights == 0).any():
        classes, labels = _drop_weightless(classes, labels, weights)
    return ClassRows(source, labels, weights, in_memory), classes


def _check_labels(classifier: Any, y: Any) -> Array:
    """The class of each row; y must be given and have no missing entry."""
    if y is None:
        raise ValueError(
            f"This {type(classifier).__name__} estimator requires y to be passed, but the target y "
            "is None; give the class of each row"
        )
    given = np.asarray(y)
    if given.dtype.kind in "Of" and any(map(_is_missing, given.ravel().tolist())):
        raise ValueError(
            "Input y contains NaN: every row needs a class; leave rows without one out, or use "
            "MixtureOfFactorModels or SupervisedPPCA, which learn from them"
        )
    check_classification_targets(y)
    return np.asarray(column_or_1d(y, warn=True))


def _is_missing(label: Any) -> bool:
    """None, NaN, or the missing value of pandas, which cannot be compared."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label


def _read_weights(source: Source) -> Array | None:
    """The weight of each row, None if the rows have none."""
    parts = [block.weight for block in source.blocks()]
    return None if parts[0] is None else np.concatenate([p for p in parts if p is not None])


def _drop_weightless(classes: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """Classes of positive weight; rows of the others, which weigh nothing, join the first."""
    kept = np.bincount(labels, weights) > 0
    if not kept.any():
        raise ValueError("all sample weights are zero: give at least one row a positive weight")
    numbers = np.cumsum(kept) - 1
    return classes[kept], np.where(kept[labels], numbers[labels], 0)


def number_classes(values: Array, classes: Array) -> Array:
    """The place of each value in the list of all classes; an unknown one is an error."""
    numbers = np.searchsorted(classes, values)
    found = classes[np.minimum(numbers, len(classes) - 1)] == values
    if not np.all(found):
        raise ValueError(
            f"{values[~found].tolist()[0]!r} is no known class; the classes are "
            f"{', '.join(map(repr, classes.tolist()))} (partial_fit takes all of them in its first "
            "call, classes=...)"
        )
    return numbers


def _is_in_memory(X: Any) -> bool:
    """Whether rows of X can be copied by class without reading a file."""
    files = isinstance(X, list | tuple) and any(isinstance(x, str | os.PathLike) for x in X)
    return not (
        files
        or isinstance(X, str | os.PathLike | Source | np.memmap)
        or hasattr(X, "__dask_graph__")
    )


def rows_for(estimator: Any, X: Any) -> Any:
    """X as an estimator takes it: one that is not of mixfold gets an array."""
    if isinstance(X, Source) and not isinstance(estimator, MixfoldEstimator):
        return np.concatenate([np.asarray(block.X) for block in X.blocks()])
    return X


def fit_rows(estimator: Any, X: Any, weight: Array | None, method: str = "fit") -> Any:
    """Fit one class, with weights only if there are any."""
    sides = {} if weight is None else {"sample_weight": weight}
    return getattr(estimator, method)(rows_for(estimator, X), **sides)
