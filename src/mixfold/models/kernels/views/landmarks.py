"""The decomposition of a view in coordinates by products with landmarks (Nystroem)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.math.kernels import Kernel, LinearKernel
from mixfold.models.kernels.maps import GivenMap, LandmarkMap, inverse_root, landmark_map
from mixfold.models.kernels.views.primal import primal_thin
from mixfold.models.kernels.views.projections import LinearProjection
from mixfold.models.kernels.views.rows import whole_rows
from mixfold.models.kernels.views.thin_svd import ThinSVD


def landmark_thin(source: Source, executor: Executor, kernel: Kernel, landmarks: Any) -> ThinSVD:
    """Of all rows with their outputs (``Block.y``), by landmarks (m, D), dense or CSR."""
    landmarks = landmarks.astype(np.float64)
    if isinstance(kernel, LinearKernel):
        return _linear(source, executor, landmarks)
    features = landmark_map(kernel, landmarks)
    origin = np.asarray(features(landmarks).mean(axis=0))
    return primal_thin(source, executor, features, origin)


def thin_svd_of_kernel_matrix(source: Source, executor: Executor, places: Array) -> ThinSVD:
    """Of the rows of a kernel matrix; landmarks are those at ``places``."""
    rows = np.concatenate(list(executor.map_rows(_Chosen(places), source)))
    G = rows[:, places]
    features = GivenMap(places, inverse_root(G))
    return primal_thin(source, executor, features, (G @ features.root).mean(axis=0))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The rows of a block that are at ``places`` (in order); picklable."""

    places: Array

    def __call__(self, block: Block) -> Array:
        inside = (self.places >= block.rows.start) & (self.places < block.rows.stop)
        return np.asarray(whole_rows(block)[self.places[inside] - block.start])


def _linear(source: Source, executor: Executor, landmarks: Any) -> ThinSVD:
    """In the span of landmarks about their mean (of sparse ones about zero)."""
    moved = np.zeros(landmarks.shape[1])
    if not sparse.issparse(landmarks):
        moved = landmarks.mean(axis=0)
        landmarks = landmarks - moved
    features = landmark_map(LinearKernel(), landmarks)
    origin = np.asarray(features(landmarks).mean(axis=0))
    thin = primal_thin(source, executor, _Moved(features, moved), origin)
    reader: Any = thin.reader
    folded = _LinearReader(features, moved, reader.axes, reader.mean)
    return ThinSVD(thin.values, thin.outputs, thin.squares, thin.weight, folded)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Coordinates of rows about a point; picklable."""

    features: LandmarkMap
    moved: Array

    @property
    def size(self) -> int:
        return self.features.size

    def __call__(self, X: Any) -> Array:
        return self.features(X - self.moved if self.moved.any() else X)


@dataclass(frozen=True, slots=True)
class _LinearReader:
    """Projections as matrices: of landmarks only their span matters."""

    features: LandmarkMap
    moved: Array
    axes: Array
    mean: Array

    def __call__(self, R: Array) -> LinearProjection:
        span, root = self.features.landmarks.matrix, self.features.root
        matrix = np.asarray(span.T @ (root @ (self.axes @ R)))
        mean = np.asarray(span.T @ (root @ self.mean)) + self.moved
        return LinearProjection(matrix, mean)
