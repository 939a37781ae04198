"""Functions of a row that a fit has found, as a model file holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, record


class Projection(Protocol):
    """Rows (n, D) to scores (n, d)."""

    @property
    def size(self) -> int: ...

    def __call__(self, X: Any) -> Array: ...

    def times(self, factor: Array) -> Self:
        """The same with each score times its factor (d,)."""
        ...


@record
@dataclass(frozen=True, slots=True)
class LinearProjection:
    """(x - mean)' matrix, with matrix (D, d)."""

    matrix: Array
    mean: Array

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    def __call__(self, X: Any) -> Array:
        if sparse.issparse(X):
            return np.asarray(X @ self.matrix - self.mean @ self.matrix)
        return np.asarray((X - self.mean) @ self.matrix)

    def times(self, factor: Array) -> Self:
        return replace(self, matrix=self.matrix * factor)


@record
@dataclass(frozen=True, slots=True)
class KernelProjection:
    """A map by products with known rows (LandmarkMap or GivenMap), less an offset (d,)."""

    features: Any
    offset: Array

    @property
    def size(self) -> int:
        return len(self.offset)

    def __call__(self, X: Any) -> Array:
        return np.asarray(self.features(X) - self.offset)

    def times(self, factor: Array) -> Self:
        features = replace(self.features, root=self.features.root * factor)
        return replace(self, features=features, offset=self.offset * factor)
