"""Kernels and landmarks: which kernel parameters mean, which rows it takes, and its coordinates.

Every kernel estimator reads its parameters ``kernel``, ``gamma``, ``degree`` and ``coef0`` by
``KERNEL_RULES`` and ``kernel_of``. KernelPCA also takes its landmarks from here, and sees the rows
through them as ``Coordinates``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources.features import FeatureSource
from mixfold.estimators.shell import constraints as rule
from mixfold.math.kernels import (
    CallableKernel,
    CosineKernel,
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RbfKernel,
)
from mixfold.models.factors.spectral import ORDINARY, Spectrum, choose_solver, principal_axes
from mixfold.models.factors.spectral import second_moments as sum_squares
from mixfold.models.factors.spectral_sums import MissingEntries, SumSquares
from mixfold.models.kernels.known import Collected
from mixfold.models.kernels.maps import FeatureMap, GivenMap, PlainMap, inverse_root
from mixfold.models.kernels.primal import FeatureMoments, SumDiagonal

# ------------------------------------------------------------------ the kernel

KERNELS = ("linear", "rbf", "poly", "cosine", "laplacian", "precomputed")
KERNEL_RULES: rule.Constraints = {
    "kernel": (rule.one_of(KERNELS), rule.function("of two matrices of rows")),
    "gamma": (rule.nothing(), rule.one_of(["scale"]), rule.number(0, open_end=True)),
    "degree": (rule.integer(1),),
    "coef0": (rule.number(0),),
}
_MAKERS: dict[str, Callable[[float, int, float], Kernel]] = {
    "linear": lambda gamma, degree, coef0: LinearKernel(),
    "rbf": lambda gamma, degree, coef0: RbfKernel(gamma),
    "poly": lambda gamma, degree, coef0: PolynomialKernel(int(degree), gamma, float(coef0)),
    "cosine": lambda gamma, degree, coef0: CosineKernel(),
    "laplacian": lambda gamma, degree, coef0: LaplacianKernel(gamma),
}
# kernels of which k(x, x) = 1
_UNIT = (RbfKernel, LaplacianKernel)


def kernel_of(
    kernel: str | Callable[[Any, Any], Any], gamma: Any, degree: int, coef0: float, X: Any
) -> Kernel:
    """The kernel of the rows X (dense or CSR).

    ``gamma`` None is one over the number of columns; 'scale' is divided by the variance of all
    entries, too. Not for a kernel matrix that is given ('precomputed').
    """
    if callable(kernel):
        return CallableKernel(kernel)
    chosen = _MAKERS[kernel](_gamma_of(gamma, X), degree, coef0)
    # far from zero a distance by scalar products would lose its digits
    return chosen if sparse.issparse(X) else chosen.centred(np.asarray(X.mean(axis=0)))


def _gamma_of(gamma: Any, X: Any) -> float:
    if gamma is None:
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    variance = _variance_of_entries(X)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance_of_entries(X: Any) -> float:
    if not sparse.issparse(X):
        return float(np.var(X, dtype=np.float64))
    mean = float(X.mean())
    return float(X.multiply(X).mean()) - mean**2


# ------------------------------------------------------------------ rows that a kernel can take


@contextmanager
def explain_missing_entries() -> Iterator[None]:
    """Say what to do about missing entries, wherever a pass meets them."""
    try:
        yield
    except MissingEntries as error:
        raise ValueError(
            f"X contains NaN ({error}), and a kernel needs complete rows. Fill them first, for "
            "example by mixfold.PPCA(n_components).fit(X).impute(X)."
        ) from None


def check_square(G: Array) -> None:
    """Refuse what is no kernel matrix."""
    if G.shape[0] != G.shape[1]:
        raise ValueError(
            "with kernel='precomputed' X is the kernel matrix of all pairs of rows and must be "
            f"square; got shape {G.shape}"
        )
    if not _is_symmetric(G):
        raise ValueError(
            "the kernel matrix is not symmetric: give k(x_i, x_j) for all pairs, or (G + G.T) / 2"
        )


def _is_symmetric(G: Array, tile: int = 512) -> bool:
    """Up to rounding; a tile at a time, without copies of the whole."""
    largest = max(float(G.max(initial=0.0)), -float(G.min(initial=0.0)))
    for i in range(0, len(G), tile):
        for j in range(0, i + 1, tile):
            below, above = G[i : i + tile, j : j + tile], G[j : j + tile, i : i + tile].T
            if not np.allclose(below, above, rtol=1e-5, atol=1e-8 * largest):
                return False
    return True


def select_weighted_square(rows: Collected) -> Collected:
    """The kernel matrix that was given, among its rows of positive weight; refused if it is none.

    Rows of weight zero are left out by those who collect them; here their columns are, too.
    """
    G = rows.X
    if len(rows.chosen) == G.shape[1]:
        G = G[:, rows.chosen]
    check_square(G)
    return Collected(G, rows.weight, rows.chosen, rows.total)


# ------------------------------------------------------------------ landmarks


def landmarks_are_rows(landmarks: Any) -> bool:
    """Whether a user gave the landmarks themselves, rather than a number of them."""
    return sparse.issparse(landmarks) or np.ndim(landmarks) == 2


def check_landmarks(landmarks: Any, source: Source) -> Any:
    """Rows that a user chose as landmarks, in the type of the data."""
    X = check_array(landmarks, accept_sparse="csr", dtype=source.dtype, input_name="landmarks")
    if X.shape[1] != source.n_features:
        raise ValueError(
            f"landmarks must have the columns of X, {source.n_features}; got {X.shape[1]} columns"
        )
    return sparse.csr_array(X) if sparse.issparse(X) else X


def draw_landmarks(source: Source, executor: Executor, landmarks: Any, seed: int) -> Any:
    """The rows given, or a uniform sample of those of positive weight, in one pass."""
    if landmarks_are_rows(landmarks):
        return check_landmarks(landmarks, source)
    block = draw_pilot(source, executor, int(landmarks), seed).block
    if not block.complete:
        raise MissingEntries("some rows lack entries")
    return block.X


def draw_given_map(rows: Collected, landmarks: int, seed: int) -> GivenMap:
    """The map of a kernel matrix that was given, by a sample of its rows of positive weight."""
    n = rows.X.shape[0]
    rng = np.random.default_rng(seed % 2**63)
    drawn = np.sort(rng.choice(n, min(landmarks, n), replace=False))
    columns = np.flatnonzero(rows.chosen)[drawn]
    G = np.asarray(rows.X[np.ix_(drawn, columns)], np.float64)
    return GivenMap(columns, inverse_root(G, rows.X.dtype.name))


# ------------------------------------------------------------------ rows as coordinates


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Rows to be seen through a map, where, and the kernel that it stands for.

    ``kernel`` is None where the rows are products already.
    """

    source: Source
    executor: Executor
    features: FeatureMap
    kernel: Kernel | None

    @property
    def plain(self) -> bool:
        """Whether the coordinates are the columns, and so all that there is."""
        return isinstance(self.features, PlainMap)

    def mapped(self) -> tuple[Source, Executor]:
        """A source whose rows are coordinates, and who visits them."""
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
        """The leading axes by several passes, without a matrix of moments."""
        source, executor = self.mapped()
        return principal_axes(source, executor, size, rng=rng)

    def by_moments(self, size: int) -> bool:
        """Whether one matrix of moments is the cheapest way, and small."""
        if self.features.size > ORDINARY:
            return False
        # a map costs more than a decomposition: one pass rather than several
        n = self.source.n_samples
        return not self.plain or choose_solver(n, self.features.size, size) == "covariance"


@dataclass(frozen=True, slots=True)
class _OfKernel:
    """k(x, x) of the rows of a block; picklable."""

    kernel: Kernel

    def __call__(self, block: Block) -> Array:
        return self.kernel.diagonal(block.X)


def _given_diagonal(block: Block) -> Array:
    """k(x, x) of the rows of a block of a kernel matrix that was given."""
    rows = np.arange(block.n_rows)
    return np.asarray(block.X[rows, block.start + rows])
