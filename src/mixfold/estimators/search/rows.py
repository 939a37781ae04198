"""The rows of a search: given to every fit, and divided to be held out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Source


@dataclass(frozen=True, slots=True)
class Rows:
    """What ``fit`` takes: data, and weights and labels as arrays or as names of columns.

    ``labels`` are of components; ``y`` is what supervised models learn to predict.
    """

    X: Any
    weight: Any = None
    labels: Any = None
    y: Any = None

    def fit(self, estimator: Any) -> Any:
        sides = {"sample_weight": self.weight, "component_labels": self.labels, "y": self.y}
        return estimator.fit(self.X, **{k: v for k, v in sides.items() if v is not None})

    def part(self, rows: Array) -> Rows:
        return Rows(
            _take_rows(self.X, rows),
            _take_side(self.weight, rows),
            _take_side(self.labels, rows),
            _take_side(self.y, rows),
        )

    def weights(self) -> Array:
        """Weights as numbers; ones where none were given. Rows in memory only."""
        if self.weight is None:
            return np.ones(n_rows(self.X))
        named = isinstance(self.weight, str)
        return np.asarray(self.X[self.weight] if named else self.weight, dtype=float)


class Scores(NamedTuple):
    """Log-densities of rows that a fit has not seen, and their weights."""

    values: Array
    weights: Array


def check_in_memory(X: Any) -> None:
    """Raise unless rows of X can be picked by their numbers."""
    files = isinstance(X, list | tuple) and any(isinstance(x, str | os.PathLike) for x in X)
    away = isinstance(X, str | os.PathLike | Source) or hasattr(X, "__dask_graph__")
    if files or away:
        raise ValueError(
            "held-out rows are picked from data in memory (arrays, sparse matrices, pandas, polars "
            f"or Arrow tables); X is {X!r:.60} of type {type(X).__name__}. Read it into memory, or "
            "use criterion='bic', 'aic' or 'icl' with cv=None"
        )


def count_rows(X: Any) -> Any:
    """X, read once if it is a source that does not know its rows.

    The sample from which a fit starts depends on that number; otherwise the fits that begin first
    would start from another one, and how many those are depends on the number of threads.
    """
    if isinstance(X, Source) and not hasattr(X, "__dask_graph__") and X.n_samples is None:
        for _ in X.blocks():
            pass
    return X


def n_rows(X: Any) -> int:
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if not shape:
        raise ValueError(
            f"X is {X!r:.60} of type {type(X).__name__}, which has no rows; give a table of shape "
            "(n_samples, n_features)"
        )
    return int(shape[0])


def folds(X: Any, cv: Any, seed: int, classes: Array | None = None) -> list[tuple[Array, Array]]:
    """Numbers of the rows to fit and of those held out.

    ``cv`` is a number of folds, a share of the rows, or, as in scikit-learn, an object with a
    method ``split`` or the pairs themselves. With ``classes`` (n,) of the rows each part has as
    many of every class as can be, and the only row of a class is never held out.
    """
    check_in_memory(X)
    n = n_rows(X)
    if isinstance(cv, Real):
        order = np.random.default_rng(seed % 2**63).permutation(n)
        share = float(cv)
        if classes is not None:
            order, alone = _by_class(order, classes)
            held = _deal(order, share)
            held = [np.setdiff1d(part, alone) for part in held]
        else:
            held = [order[: round(share * n)]] if share < 1 else np.array_split(order, int(share))
        pairs = [(np.setdiff1d(order, part), np.sort(part)) for part in held]
    else:
        pairs = list(cv.split(np.empty((n, 1)), classes) if hasattr(cv, "split") else cv)
        if any(not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
            raise ValueError(
                f"cv={cv!r} is neither a number nor pairs of row numbers (those to fit, those held "
                "out); for 5 folds write cv=5"
            )
    if not pairs or any(len(train) < 2 or len(test) < 1 for train, test in pairs):
        raise ValueError(
            f"cv={cv!r} divides n_samples={n} rows into parts that are too small to fit or to "
            "score; use fewer folds, another share or more rows"
        )
    return [(np.asarray(train), np.asarray(test)) for train, test in pairs]


def _by_class(order: Array, classes: Array) -> tuple[Array, Array]:
    """Rows in random order, those of a class one after another; and rows alone in their class."""
    counts = np.bincount(classes[classes >= 0], minlength=1)
    alone = np.flatnonzero((classes >= 0) & (counts[classes] == 1))
    return order[np.argsort(classes[order], kind="stable")], alone


def _deal(order: Array, share: float) -> list[Array]:
    """So many parts, or one of this share, by dealing the rows out in turn."""
    if share >= 1:
        return [order[k :: int(share)] for k in range(int(share))]
    edges = np.floor(np.arange(len(order) + 1) * share + 0.5)
    return [order[np.diff(edges) > 0]]


def score_rows(model: Any, rows: Rows) -> Scores:
    """Rows without a single entry say nothing, and are left out as they are in fits."""
    outputs = {} if rows.y is None else {"y": rows.y}
    values = np.asarray(model.score_samples(rows.X, **outputs), dtype=float)
    weights = rows.weights()
    source = model._open(rows.X, reset=False)
    empty = np.concatenate([_find_empty(block.X) for block in source.blocks()])
    used = ~empty & (weights > 0)
    return Scores(values[used], weights[used])


def mean_and_error(parts: Iterator[Scores]) -> tuple[float, float]:
    """Mean log-density per row and its standard error; a row of weight 2 is two rows."""
    scores = list(parts)
    values = np.concatenate([s.values for s in scores])
    weights = np.concatenate([s.weights for s in scores])
    total = weights.sum()
    if total == 0:
        raise ValueError("no held-out row has both a positive weight and an observed entry")
    if not np.isfinite(values).all():  # a row that is impossible under the fit
        return float(np.average(values, weights=weights)), float("nan")
    mean = float(weights @ values / total)
    if total <= 1:
        return mean, float("nan")
    spread = weights @ (values - mean) ** 2 / (total - 1)
    return mean, float(np.sqrt(spread / total))


def _find_empty(X: Any) -> Array:
    if sparse.issparse(X):
        missing = X.copy()
        missing.data = np.isnan(X.data).astype(float)
        empty: Array = np.asarray(missing.sum(axis=1)).ravel() == X.shape[1]
    else:
        empty = np.isnan(X).all(axis=1)
    return empty


def _take_rows(X: Any, rows: Array) -> Any:
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "schema") and hasattr(X, "take"):  # an Arrow table
        return X.take(rows)
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def _take_side(side: Any, rows: Array) -> Any:
    return side if side is None or isinstance(side, str) else np.asarray(side)[rows]
