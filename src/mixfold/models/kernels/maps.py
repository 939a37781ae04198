"""Maps of rows into coordinates of the space of features, in which primal models are fitted.

Products with m landmarks, times the root of the inverse of their own products: scalar products of
the coordinates are those of the features, as far as these lie in the span of the landmarks (all
of them, if all rows are landmarks).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Array, record
from mixfold.math.kernels import Kernel
from mixfold.models.kernels.known_rows import KnownRows

# directions of the landmarks with less than this share of the largest eigenvalue are rounding
_RANK = {"float64": 1e-10, "float32": 1e-5}


class FeatureMap(Protocol):
    """Rows (n, D) to coordinates (n, size)."""

    @property
    def size(self) -> int: ...

    def __call__(self, X: Any) -> Any: ...


@record
@dataclass(frozen=True, slots=True)
class PlainMap:
    """The rows themselves: the linear kernel."""

    size: int

    def __call__(self, X: Any) -> Any:
        return X


@record
@dataclass(frozen=True, slots=True)
class LandmarkMap:
    """k(x, landmarks) root, with root (m, size)."""

    kernel: Any
    landmarks: KnownRows
    root: Array

    @property
    def size(self) -> int:
        return int(self.root.shape[1])

    def __call__(self, X: Any) -> Array:
        K = self.kernel.block(X, self.landmarks.matrix)
        return np.asarray(K @ self.root.astype(K.dtype))


@record
@dataclass(frozen=True, slots=True)
class GivenMap:
    """Of rows that are products with the known rows already: those with landmarks, times root."""

    columns: Array
    root: Array

    @property
    def size(self) -> int:
        return int(self.root.shape[1])

    def __call__(self, X: Any) -> Array:
        return np.asarray(X[:, self.columns] @ self.root.astype(X.dtype))


def landmark_map(kernel: Kernel, landmarks: Any) -> LandmarkMap:
    """The map of these rows (dense or CSR)."""
    G = np.asarray(kernel.block(landmarks, landmarks), np.float64)
    return LandmarkMap(kernel, KnownRows.of(landmarks), inverse_root(G, str(landmarks.dtype)))


def inverse_root(G: Array, dtype: str = "float64") -> Array:
    """T (m, r) with T T' the (pseudo-)inverse of G, columns in decreasing order of eigenvalues."""
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    kept = values > _RANK.get(dtype, 1e-10) * max(float(values[-1]), 0.0)
    if not kept.any():
        raise ValueError(
            "the kernel is zero (or not positive) for all pairs of rows; choose another kernel, or "
            "rows that differ"
        )
    return np.ascontiguousarray((vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1])
