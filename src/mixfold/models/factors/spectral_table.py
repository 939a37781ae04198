"""A table whose principal axes are wanted, and the origin about which its sums are taken.

About zero no block is copied; so it is zero, unless the data lie so far from it that their variance
would drown in rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source, Stats
from mixfold.models.factors.spectral_sums import Products, SecondMoments

S = TypeVar("S", bound=Stats)

# |mean|^2 about the origin in units of the variance: beyond this, rounding of the sums counts.
AMPLIFICATION = {"float64": 1e4, "float32": 4.0}
# Relative residual of the axes; products in float32 have little more to say.
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
# Rows of the first block that tell where the data lie.
LOOK = 256


@dataclass(frozen=True, slots=True)
class Table:
    """What is decomposed, and about which origin its sums are taken."""

    source: Source
    executor: Executor
    center: bool
    origin: Array
    thin: bool  # sparse

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.source.dtype.name]

    def sum(self, task: Callable[[Block], S]) -> S:
        return self.executor.map_reduce(task, self.source)

    def is_far(self, totals: SecondMoments | Products) -> bool:
        """Whether the sums should be taken again about the mean."""
        # a mean for every column would fill a sparse table; about zero it does not matter
        if self.thin or not self.center:
            return False
        limit = AMPLIFICATION[self.source.dtype.name]
        return totals.sums.squared_shift > limit * totals.variance


def look(source: Source, executor: Executor, center: bool, origin: Array | None) -> Table:
    """The table with the origin given, or one chosen by the first rows."""
    blocks = source.blocks()
    X = next(blocks).X[:LOOK]
    close = getattr(blocks, "close", None)
    if close is not None:
        close()
    thin = sparse.issparse(X)
    if origin is None:
        find = _far_columns if thin else _far_mean
        origin = find(X, AMPLIFICATION[source.dtype.name]) if center else np.zeros(X.shape[1])
    return Table(source, executor, center, np.asarray(origin, np.float64), thin)


def _far_mean(X: Array, limit: float) -> Array:
    """The mean if variance would drown in rounding about zero; else zero, which costs nothing."""
    mean = X.mean(axis=0, dtype=np.float64)
    with np.errstate(over="ignore"):  # the sums themselves will tell of it
        variance = np.square(X - mean).mean(axis=0).sum()
        far = mean @ mean > limit * variance
    return np.asarray(mean if far else np.zeros_like(mean))


def _far_columns(X: Any, limit: float) -> Array:
    """The means of the far columns among those that hold no zero: others would be filled."""
    full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0])
    columns = X[:, full].toarray().astype(np.float64)
    mean = columns.mean(axis=0)
    far = mean**2 > limit * columns.var(axis=0)
    origin = np.zeros(X.shape[1])
    origin[full[far]] = mean[far]
    return origin
