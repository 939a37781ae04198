"""The rows of each class, as the estimator of that class takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Source
from mixfold.engine.sources.part import PartSource, part_of
from mixfold.estimators.shell.base import MixfoldEstimator


class HeldRows(PartSource):
    """The chosen rows and no others: blocks without any of them are left out."""

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        before = 0
        for block in self._source.blocks(max_rows):
            rows = np.flatnonzero(self._chosen[block.rows])
            if rows.size:
                X, weight = block.X[rows], None if block.weight is None else block.weight[rows]
                yield replace(block, X=X, start=before, y=None, weight=weight)
                before += rows.size


@dataclass(frozen=True, slots=True)
class ClassRows:
    """All rows with the number of their class; rows in memory are copied by class, others visited.

    ``labels`` (n,) are class numbers, ``weights`` (n,) or None.
    """

    source: Source
    labels: Array
    weights: Array | None
    in_memory: bool

    def of(self, number: int, among: Array | None = None) -> tuple[Any, Array | None]:
        """Rows of a class (and of ``among``, if given) and their weights."""
        chosen = self.labels == number
        return self.at(chosen if among is None else chosen & among)

    def at(self, chosen: Array) -> tuple[Any, Array | None]:
        """The rows at which ``chosen`` is true, and their weights (None: those of the source)."""
        part = part_of(self.source, chosen)
        if not self.in_memory:
            return part, None
        X = [block.X for block, some in zip(part.blocks(), self._full(chosen), strict=True) if some]
        rows = sparse.csr_array(sparse.vstack(X)) if sparse.issparse(X[0]) else np.concatenate(X)
        return rows, None if self.weights is None else self.weights[chosen]

    def scored(self, chosen: Array) -> tuple[Any, Array | None]:
        """The same rows to be scored: exactly these, and their weights, wherever they are."""
        weight = None if self.weights is None else self.weights[chosen]
        return (self.at(chosen)[0] if self.in_memory else HeldRows(self.source, chosen)), weight

    def _full(self, chosen: Array) -> list[bool]:
        """Which blocks have a chosen row: the part has one row of the others, of no weight."""
        return [bool(chosen[block.rows].any()) for block in self.source.blocks()]

    def weigh(self, n_classes: int, among: Array | None = None) -> Array:
        """Weight of each class (of its rows in ``among``, if given)."""
        weight = np.ones(len(self.labels)) if self.weights is None else self.weights
        if among is not None:
            weight = weight * among
        return np.bincount(self.labels, weight, minlength=n_classes).astype(float)


def is_in_memory(X: Any) -> bool:
    """Whether rows of X can be copied by class without reading a file."""
    files = isinstance(X, list | tuple) and any(isinstance(x, str | os.PathLike) for x in X)
    return not (
        files
        or isinstance(X, str | os.PathLike | Source | np.memmap)
        or hasattr(X, "__dask_graph__")
    )


def fit_rows(estimator: Any, X: Any, weight: Array | None, method: str = "fit") -> Any:
    """Fit one class; a foreign estimator gets an array, and weights only if there are any."""
    if isinstance(X, Source) and not isinstance(estimator, MixfoldEstimator):
        X = np.concatenate([np.asarray(block.X) for block in X.blocks()])
    sides = {} if weight is None else {"sample_weight": weight}
    return getattr(estimator, method)(X, **sides)
