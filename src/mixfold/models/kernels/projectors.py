"""Fitted kernel axes with what is needed to project new rows; saved in model files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Array, record
from mixfold.math.kernels import LinearKernel
from mixfold.models.kernels.axes import KernelAxes
from mixfold.models.kernels.centred import Centre
from mixfold.models.kernels.feature_gaussian import FeatureGaussian
from mixfold.models.kernels.known_rows import KnownRows
from mixfold.models.kernels.maps import PlainMap
from mixfold.models.kernels.primal import PrimalAxes

# products of new rows with known ones that are made at a time (32 MB in double precision)
_ENTRIES = 2**22


class Projector(Protocol):
    """Rows (dense or CSR) to scores, and to distances from the mean of the features."""

    @property
    def axes(self) -> FeatureGaussian: ...

    @property
    def rows(self) -> KnownRows | None:
        """Rows whose scores are known to be among all scores; None if rows are not kept."""
        ...

    def scores(self, X: Any) -> Array: ...

    def scores_and_squares(self, X: Any, diagonal: Array | None) -> tuple[Array, Array]:
        """Scores (n, d) and |phi(x) - mean|^2 (n,); ``diagonal`` is k(x, x), None: computed."""
        ...

    def plane(self) -> tuple[Array, Array] | None:
        """Axes (D, d) and mean (D,) in the space of the rows, if that is the space of features."""
        ...


@record
@dataclass(frozen=True, slots=True)
class DualProjector:
    """Products with all known rows; without a kernel the rows given are those products."""

    kernel: Any
    rows: KnownRows | None
    axes: KernelAxes

    def scores(self, X: Any) -> Array:
        return np.concatenate([self.axes.scores(K) for _, K in self._products(X)])

    def scores_and_squares(self, X: Any, diagonal: Array | None) -> tuple[Array, Array]:
        if diagonal is None:
            diagonal = self.kernel.diagonal(X)
        parts = []
        for rows, K in self._products(X):
            squares = self.axes.centre.squares(K, diagonal[rows])
            parts.append((self.axes.scores(K), squares))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _products(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """A few rows at a time, as an array that may be overwritten."""
        step = max(1, _ENTRIES // len(self.axes.coefficients))
        known = None if self.rows is None else self.rows.matrix
        for first in range(0, X.shape[0], step):
            rows = slice(first, min(first + step, X.shape[0]))
            part = X[rows]
            yield rows, part.copy() if known is None else self.kernel.block(part, known)

    def plane(self) -> tuple[Array, Array] | None:
        if self.rows is None or not isinstance(self.kernel, LinearKernel):
            return None
        X, axes = self.rows.matrix, self.axes
        mean = np.asarray(axes.centre.shares @ X)
        vectors = X.T @ axes.coefficients - np.outer(mean, axes.coefficients.sum(axis=0))
        return np.asarray(vectors), mean


def spread_columns(axes: KernelAxes, chosen: Array) -> KernelAxes:
    """Axes of the ``chosen`` among all columns of a kernel matrix; the others count for nothing."""
    if chosen.all():
        return axes
    old = axes.centre
    coefficients = np.zeros((len(chosen), len(axes.values)))
    shares, means = np.zeros(len(chosen)), np.zeros(len(chosen))
    coefficients[chosen], shares[chosen], means[chosen] = axes.coefficients, old.shares, old.means
    return replace(axes, coefficients=coefficients, centre=Centre(shares, means, old.mean))


@record
@dataclass(frozen=True, slots=True)
class PrimalProjector:
    """Coordinates by a map; ``kernel`` is None where rows are products already."""

    kernel: Any
    features: Any
    axes: PrimalAxes

    @property
    def rows(self) -> KnownRows | None:
        landmarks: KnownRows | None = getattr(self.features, "landmarks", None)
        return landmarks

    def scores(self, X: Any) -> Array:
        return self.axes.scores(self.features(X))

    def scores_and_squares(self, X: Any, diagonal: Array | None) -> tuple[Array, Array]:
        if diagonal is None:
            diagonal = self.kernel.diagonal(X)
        F = self.features(X)
        return self.axes.scores(F), self.axes.squares(F, diagonal)

    def plane(self) -> tuple[Array, Array] | None:
        return (self.axes.vectors, self.axes.mean) if isinstance(self.features, PlainMap) else None
