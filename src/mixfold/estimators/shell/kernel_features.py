"""Kernels, landmarks, and rows seen as coordinates of the feature space of a kernel.

Every kernel estimator reads its parameters ``kernel``, ``gamma``, ``degree`` and ``coef0`` as a
``KernelChoice``, which makes the kernel of the rows that it is given. Rows become coordinates by a
feature map: by products with all rows of the fit, or with landmarks among them (Nystroem). A map is
handed to ``view_rows``, after which a model of columns is a model of features: SupervisedPPCA
learns its map by ``KernelFeatures``, KernelPCA and its streams sum over ``Coordinates``. MORP and
KernelCCA decompose the kernel matrix of each view (``kernel_views``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import seed_from
from mixfold.engine.sources import open_source
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
from mixfold.models.kernels import coordinates
from mixfold.models.kernels.known_rows import Collected, collect_rows, stack_blocks
from mixfold.models.kernels.maps import (
    FeatureMap,
    GivenMap,
    LandmarkMap,
    PlainMap,
    inverse_root,
    landmark_map,
)
from mixfold.models.kernels.primal import FeatureMoments, SumDiagonal

# rows that may all be landmarks, and bytes of coordinates that are kept while a model is fitted
_MOST, _KEPT = 4000, 2**28

# ------------------------------------------------------------------ the kernel

KERNELS = ("linear", "rbf", "poly", "cosine", "laplacian", "precomputed")
KERNEL_RULES: rule.Constraints = {
    "kernel": (rule.one_of(KERNELS), rule.function("of two matrices of rows")),
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


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The parameters of a kernel, which is made when rows are there.

    ``gamma`` None is one over the number of columns; 'scale' is divided by the variance of all
    entries, too.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float

    @property
    def is_precomputed(self) -> bool:
        """Whether X has products of rows, not rows."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def is_linear(self) -> bool:
        """Whether the features are the columns."""
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def make(self, X: Any) -> Kernel:
        """The kernel of the rows X (dense or CSR); not for a kernel matrix that is given."""
        if callable(self.kernel):
            return CallableKernel(self.kernel)
        chosen = _MAKERS[self.kernel](_gamma_of(self.gamma, X), self.degree, self.coef0)
        # far from zero a distance by scalar products would lose its digits
        return chosen if sparse.issparse(X) else chosen.centred(np.asarray(X.mean(axis=0)))


def _gamma_of(gamma: Any, X: Any) -> float:
    if gamma is None:
        found: float = 1.0 / X.shape[1]
        return found
    if gamma != "scale":
        return float(gamma)
    variance = _variance_of_entries(X)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance_of_entries(X: Any) -> float:
    if not sparse.issparse(X):
        return float(np.var(X, dtype=np.float64))
    mean = float(X.mean())
    return float(X.multiply(X).mean()) - mean**2


def refuse_to_save_function(estimator: Any, *names: str) -> None:
    """Refuse to write an estimator whose kernel (a parameter of these names) is a function."""
    for name in names:
        kernel = getattr(estimator, name)
        if callable(kernel):
            raise ValueError(
                f"{name}={kernel!r} is a function, and a model file holds no code: this "
                f"{type(estimator).__name__} cannot be saved. Use a kernel that has a name, or "
                "pickle"
            )


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


def check_complete(X: Any) -> None:
    """Refuse rows that lack entries."""
    if np.isnan(X.data if sparse.issparse(X) else X).any():
        raise ValueError(_INCOMPLETE)


def check_complete_array(X: Any) -> None:
    """Refuse an array that lacks entries, before anything else is found to be wrong with it."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        check_complete(X)


_INCOMPLETE = (
    "X contains NaN: a kernel needs complete rows. Fill the missing entries first, by "
    "mixfold.PPCA(n_components).fit(X).impute(X), say"
)


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


def draw_landmark_columns(chosen: Array, landmarks: int, seed: int) -> Array:
    """Landmarks of a kernel matrix that is given: numbers of rows drawn where ``chosen`` is true.

    They are in order; all of them, where there are no more than ``landmarks``.
    """
    places = np.flatnonzero(chosen)
    rng = np.random.default_rng(seed % 2**63)
    return np.sort(rng.choice(places, min(int(landmarks), len(places)), replace=False))


def draw_landmark_map(
    kernel: KernelChoice, source: Source, executor: Executor, landmarks: Any, seed: int
) -> tuple[Kernel | None, FeatureMap]:
    """The kernel of landmarks (None for products that are given), and the map by them."""
    if kernel.is_precomputed:
        rows = collect_rows(source, executor)
        select_weighted_square(rows)
        columns = draw_landmark_columns(rows.chosen, landmarks, seed)
        among = np.searchsorted(np.flatnonzero(rows.chosen), columns)
        G = np.asarray(rows.X[np.ix_(among, columns)], np.float64)
        return None, GivenMap(columns, inverse_root(G, rows.X.dtype.name))
    X = draw_landmarks(source, executor, landmarks, seed)
    made = kernel.make(X)
    return made, landmark_map(made, X)


# ------------------------------------------------------------------ rows as coordinates


def view_rows(source: Source, features: FeatureMap) -> FeatureSource:
    """The rows of a source as coordinates; rows that lack entries are refused when visited."""
    return FeatureSource(source, _Complete(features), features.size)


@dataclass(frozen=True, slots=True)
class _Complete:
    """A map that refuses rows that lack entries; picklable."""

    features: FeatureMap

    def __call__(self, X: Any) -> Array:
        check_complete(X)
        return np.asarray(self.features(X), dtype=X.dtype)


def keep_in_memory(source: FeatureSource, executor: Executor) -> Source:
    """Coordinates in memory, if they are not many: a fit visits them again and again."""
    rows = source.n_samples
    if rows is None or rows * source.n_features * source.dtype.itemsize > _KEPT:
        return source
    blocks: list[Block] = list(executor.map_rows(_itself, source))
    X = stack_blocks([block.X for block in blocks])
    return open_source(X, weight=_join(blocks, "weight"), y=_join(blocks, "y"), complete=True)


def _itself(block: Block) -> Block:
    return block


def _join(blocks: list[Block], name: str) -> Array | None:
    parts = [getattr(block, name) for block in blocks]
    return None if parts[0] is None else np.concatenate(parts)


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
        task = SumDiagonal(
            _diagonal_of_kernel_matrix if self.kernel is None else _OfKernel(self.kernel)
        )
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


def _diagonal_of_kernel_matrix(block: Block) -> Array:
    """k(x, x) of the rows of a block of a kernel matrix that was given."""
    rows = np.arange(block.n_rows)
    return np.asarray(block.X[rows, block.start + rows])


# ------------------------------------------------------------------ a model of columns on features

FEATURE_RULES: rule.Constraints = {
    **KERNEL_RULES,
    "kernel": (rule.nothing(), *KERNEL_RULES["kernel"]),
    "landmarks": (rule.nothing(), rule.integer(1)),
}


@dataclass(frozen=True, slots=True)
class KernelFeatures:
    """Features in which a model of columns is fitted: the kernel, and how many rows stand for all.

    ``resumable`` if the fit may go on from a checkpoint, and must then find the same landmarks.
    """

    choice: KernelChoice
    landmarks: int | None
    random_state: Any
    resumable: bool

    def learn_map(self, source: Source, executor: Executor) -> FeatureMap:
        """The map from rows to coordinates, by all rows or by landmarks among them."""
        given = self.choice.is_precomputed
        size = _MOST if self.landmarks is None else int(self.landmarks)
        # products come with all rows, and are not drawn
        pilot = draw_pilot(source, executor, 1 if given else size, self._draw_seed())
        self._check_pilot(pilot)
        if given:
            return self._learn_given_map(collect_rows(source, executor))
        rows = pilot.block.X
        kernel = self.choice.make(rows)
        if len(pilot.block.weights()) < pilot.total_rows:
            return coordinates.nystroem_map(kernel, rows)
        return coordinates.principal_map(kernel, rows, _uneven(pilot.block.weight))

    def _draw_seed(self) -> int:
        fixed = self.resumable and not isinstance(self.random_state, Integral)
        return 0 if fixed or self.landmarks is None else seed_from(self.random_state)

    def _check_pilot(self, pilot: Pilot) -> None:
        if (pilot.observed < pilot.total_rows).any():
            raise ValueError(_INCOMPLETE)
        if self.landmarks is None and pilot.total_rows > _MOST:
            raise ValueError(
                f"kernel={self.choice.kernel!r} with landmarks=None compares all pairs of rows, of "
                f"at most {_MOST} rows; X has {pilot.total_rows}. Set landmarks (1000, say): as "
                "many rows, drawn at random, then stand for all of them"
            )

    def _learn_given_map(self, known: Collected) -> GivenMap:
        columns, n_rows = np.flatnonzero(known.chosen), len(known.chosen)
        if n_rows != known.X.shape[1]:
            check_square(np.empty((n_rows, known.X.shape[1])))
        G = known.X[:, columns]
        G = G.toarray() if sparse.issparse(G) else G
        check_square(G)
        if self.landmarks is None or self.landmarks >= len(G):
            return coordinates.precomputed_map(G, columns, known.weight)
        drawn = draw_landmark_columns(known.chosen, self.landmarks, self._draw_seed())
        among = np.searchsorted(columns, drawn)
        return coordinates.sampled_given_map(G[np.ix_(among, among)], drawn, str(G.dtype))

    def check_stored(self, found: FeatureMap | None, n_features: int) -> None:
        """Refuse the map of a model file that does not go with the parameters."""
        wanted: Any = GivenMap if self.choice.is_precomputed else LandmarkMap
        if not isinstance(found, wanted):
            raise ValueError("the map of the kernel is missing, or of another kind")
        if not _fits_columns(found, n_features):
            raise ValueError("the map of the kernel is of another shape than X")


def _uneven(weight: Array | None) -> Array | None:
    """Weights, where they differ."""
    return None if weight is None or (weight == weight[0]).all() else weight


def _fits_columns(found: Any, n_features: int) -> bool:
    if isinstance(found, LandmarkMap):
        rows = found.landmarks
        return len(rows) == len(found.root) and rows.matrix.shape[1] == n_features
    inside = (found.columns >= 0) & (found.columns < n_features)
    return len(found.columns) == len(found.root) and bool(inside.all())
