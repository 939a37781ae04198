"""Kernel models in coordinates: which landmarks, and moments of what they make of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources.features import FeatureSource
from mixfold.math.kernels import Kernel, LaplacianKernel, RbfKernel
from mixfold.models.factors.spectral import (
    ORDINARY,
    Spectrum,
    choose_solver,
    from_moments,
    principal_axes,
)
from mixfold.models.factors.spectral import second_moments as sum_squares
from mixfold.models.factors.spectral_sums import MissingEntries, SumSquares
from mixfold.models.kernels.known import Collected
from mixfold.models.kernels.maps import GivenMap, PlainMap, inverse_root
from mixfold.models.kernels.primal import FeatureMoments, PrimalAxes, SumDiagonal, primal_axes

# kernels of which k(x, x) = 1
_UNIT = (RbfKernel, LaplacianKernel)


def drawn_landmarks(source: Source, executor: Executor, landmarks: Any, seed: int) -> Any:
    """The rows given, or a uniform sample of those of positive weight, in one pass."""
    if is_given(landmarks):
        return given_landmarks(landmarks, source)
    block = draw_pilot(source, executor, int(landmarks), seed).block
    if not block.complete:
        raise MissingEntries("some rows lack entries")
    return block.X


def is_given(landmarks: Any) -> bool:
    """Whether they are rows, rather than a number of them."""
    return sparse.issparse(landmarks) or np.ndim(landmarks) == 2


def given_landmarks(landmarks: Any, source: Source) -> Any:
    """Rows that a user chose, in the type of the data."""
    X = check_array(landmarks, accept_sparse="csr", dtype=source.dtype, input_name="landmarks")
    if X.shape[1] != source.n_features:
        raise ValueError(
            f"landmarks must have the columns of X, {source.n_features}; got {X.shape[1]} columns"
        )
    return sparse.csr_array(X) if sparse.issparse(X) else X


def given_map(rows: Collected, landmarks: int, seed: int) -> GivenMap:
    """The map of a kernel matrix that was given, by a sample of its rows of positive weight."""
    n = rows.X.shape[0]
    rng = np.random.default_rng(seed % 2**63)
    drawn = np.sort(rng.choice(n, min(landmarks, n), replace=False))
    columns = np.flatnonzero(rows.chosen)[drawn]
    G = np.asarray(rows.X[np.ix_(drawn, columns)], np.float64)
    return GivenMap(columns, inverse_root(G, rows.X.dtype.name))


# ------------------------------------------------------------------ fitting


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Rows to be seen through a map, where, and the kernel that it stands for.

    ``kernel`` is None where the rows are products already.
    """

    source: Source
    executor: Executor
    features: Any
    kernel: Kernel | None

    @property
    def plain(self) -> bool:
        """Whether the coordinates are all that there is."""
        return isinstance(self.features, PlainMap)

    def mapped(self) -> tuple[Source, Executor]:
        if self.plain:
            return self.source, self.executor
        mapped = FeatureSource(self.source, self.features, self.features.size)
        return mapped, FeatureExecutor(self.executor)

    def moments(self, earlier: FeatureMoments | None = None) -> FeatureMoments:
        """Of all rows, about the origin of ``earlier`` ones."""
        source, executor = self.mapped()
        if earlier is None:
            moments = sum_squares(source, executor)
        else:
            moments = executor.map_reduce(SumSquares(earlier.moments.sums.origin), source)
        return FeatureMoments(moments, self.diagonal(moments.weight))

    def diagonal(self, weight: float) -> float:
        """The sum of k(x, x) over the rows, which together have this weight."""
        if self.plain:
            return 0.0
        if isinstance(self.kernel, _UNIT):
            return weight
        task = SumDiagonal(_given_diagonal if self.kernel is None else _OfKernel(self.kernel))
        return self.executor.map_reduce(task, self.source).total

    def spectrum(self, size: int, rng: np.random.Generator) -> Spectrum:
        source, executor = self.mapped()
        return principal_axes(source, executor, size, rng=rng)

    def by_moments(self, size: int) -> bool:
        """Whether one matrix of moments is the cheapest way, and small."""
        if self.features.size > ORDINARY:
            return False
        # a map costs more than a decomposition: one pass rather than several
        n = self.source.n_samples
        return not self.plain or choose_solver(n, self.features.size, size) == "covariance"


def axes_of_moments(
    sums: FeatureMoments, plain: bool, size: int, dimension: int | None, noise: float | None
) -> tuple[PrimalAxes, Spectrum]:
    """Axes of all rows that the moments stand for."""
    spectrum = from_moments(sums.moments, size)
    diagonal = None if plain else sums.diagonal / sums.weight
    return primal_axes(spectrum, diagonal, dimension, noise), spectrum


@dataclass(frozen=True, slots=True)
class _OfKernel:
    kernel: Kernel

    def __call__(self, block: Block) -> Array:
        return self.kernel.diagonal(block.X)


def _given_diagonal(block: Block) -> Array:
    rows = np.arange(block.n_rows)
    return np.asarray(block.X[rows, block.start + rows])
