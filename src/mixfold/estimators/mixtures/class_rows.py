"""Rows of X with their classes, and the rows of each class as its estimator takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import has_fit_parameter

from mixfold.contracts import Array, Block, Source
from mixfold.engine.sources import open_source
from mixfold.engine.sources.part import PartSource, part_of
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.targets import (
    check_one_entry_per_row,
    encode_required_classes,
    find_target,
)


@dataclass(frozen=True, slots=True)
class ClassRows:
    """All rows with the number of their class; rows in memory are copied by class, others visited.

    ``labels`` (n,) are class numbers, ``weights`` (n,) or None.
    """

    source: Source
    labels: Array
    weights: Array | None
    in_memory: bool

    def of_class(self, number: int, among: Array | None = None) -> Array:
        """Which rows are of a class (and of ``among``, if given)."""
        chosen = self.labels == number
        return np.asarray(chosen if among is None else chosen & among)

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
        return _stack(X), None if self.weights is None else self.weights[chosen]

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


class _WithoutLabels:
    """The rows of a source that has labels: a model of one class would take them for components."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.n_samples, self.n_features = source.n_samples, source.n_features
        self.feature_names, self.dtype = source.feature_names, source.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of the source, without labels."""
        return (replace(block, y=None) for block in self._source.blocks(max_rows))


def open_class_rows(
    classifier: Any, X: Any, y: Any, weight: Any, reset: bool = True
) -> tuple[ClassRows, Array]:
    """The rows of ``fit`` or ``partial_fit`` with class numbers, and the classes among them."""
    given = find_target(X, y, weight)
    source = given.open(classifier, reset=reset)
    labels, classes = encode_required_classes(classifier, given.y)
    check_one_entry_per_row(len(labels), source.n_samples)
    if next(iter(source.blocks())).y is not None:
        source = _WithoutLabels(source)
    weights = _read_weights(source)
    if weights is not None and (weights == 0).any():
        classes, labels = _drop_weightless(classes, labels, weights)
    return ClassRows(source, labels, weights, _is_in_memory(X)), classes


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
        return _stack([block.X for block in X.blocks()])
    return X


def score_rows(estimator: Any, X: Any) -> Array:
    """Log densities of rows, minus infinity where another package takes the log of zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(estimator.score_samples(rows_for(estimator, X)))


def rebuilds_rows(estimator: Any) -> bool:
    """Whether rows can be compared with what an estimator makes of them."""
    both = hasattr(estimator, "transform") and hasattr(estimator, "inverse_transform")
    return both or hasattr(estimator, "reconstruct")


def rebuild_errors(estimator: Any, X: Any) -> Array:
    """Mean squared error (n,) of what an estimator makes of rows, over their seen entries.

    Of models with planes it is that of the nearest point, as for PCA.
    """
    parts = (block.X for block in X.blocks()) if isinstance(X, Source) else [X]
    return np.concatenate([_errors_of_block(estimator, part) for part in parts])


def _errors_of_block(estimator: Any, X: Any) -> Array:
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)
    if isinstance(estimator, MixfoldEstimator):
        X = open_source(X)  # whose columns have been matched by name
    if not hasattr(estimator, "reconstruct"):
        found = estimator.inverse_transform(estimator.transform(X))
    elif "least-squares" in getattr(estimator, "_methods", ()):
        found = estimator.reconstruct(X, method="least-squares")
    else:
        found = estimator.reconstruct(X)
    squares = (rows - np.asarray(found)) ** 2
    seen = ~np.isnan(squares)
    return np.asarray(np.where(seen, squares, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1))


def _stack(parts: list[Any]) -> Any:
    """Rows of blocks as one matrix, dense or CSR."""
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts))
    return np.concatenate(parts)


def fit_rows(estimator: Any, rows: ClassRows, chosen: Array, method: str = "fit") -> Any:
    """Fit the rows at which ``chosen`` is true, with weights only if there are any."""
    # a part of a source may hold rows of weight zero, which an array of another package cannot
    ours = rows.in_memory or isinstance(estimator, MixfoldEstimator)
    X, weight = rows.at(chosen) if ours else rows.to_score(chosen)
    sides = {} if weight is None else {"sample_weight": weight}
    if sides and not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"{type(estimator).__name__}.fit takes no sample_weight: leave it out, or choose an "
            "estimator that takes weights, such as those of mixfold"
        )
    return getattr(estimator, method)(rows_for(estimator, X), **sides)
