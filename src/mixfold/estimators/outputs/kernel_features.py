"""Rows as coordinates of the space of features of a kernel, in which SupervisedPPCA is fitted.

``KernelFeatures.learn_map`` finds the map in a fit, ``map_rows`` applies it there and afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import seed_from
from mixfold.engine.sources import open_source
from mixfold.engine.sources.features import FeatureSource
from mixfold.estimators.kernels.kernel_maps import KERNEL_RULES, check_square, kernel_of
from mixfold.estimators.shell import constraints as rule
from mixfold.models.kernels import coordinates
from mixfold.models.kernels.known import Collected, collect_rows, stacked
from mixfold.models.kernels.maps import FeatureMap, GivenMap, LandmarkMap

# rows that may all be landmarks, and bytes of coordinates that are kept while a model is fitted
_MOST, _KEPT = 4000, 2**28

FEATURE_RULES: rule.Constraints = {
    **KERNEL_RULES,
    "kernel": (rule.nothing(), *KERNEL_RULES["kernel"]),
    "landmarks": (rule.nothing(), rule.integer(1)),
}


def uses_kernel(kernel: Any) -> bool:
    """Whether rows are replaced by coordinates; not by the linear kernel, whose are the columns."""
    return kernel is not None and not (isinstance(kernel, str) and kernel == "linear")


def is_precomputed(kernel: Any) -> bool:
    """Whether X has products of rows, not rows."""
    return isinstance(kernel, str) and kernel == "precomputed"


def has_columns(estimator: Any) -> bool:
    """Whether the model speaks of the columns of X themselves; for ``available_if``."""
    if not uses_kernel(estimator.kernel):
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with kernel={estimator.kernel!r} lives in the feature space "
        "of the kernel, so rows cannot be reconstructed or imputed. Use kernel=None for that"
    )


# ------------------------------------------------------------------ the map of a fit


@dataclass(frozen=True, slots=True)
class KernelFeatures:
    """The parameters of a kernel, and how many rows stand for all; ``learn_map`` is for ``fit``.

    ``resumable`` if the fit may go on from a checkpoint, and must then find the same landmarks.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    landmarks: int | None
    random_state: Any
    resumable: bool

    def learn_map(self, source: Source, executor: Executor) -> FeatureMap:
        """The map from rows to coordinates, by all rows or by landmarks among them."""
        given = is_precomputed(self.kernel)
        size = _MOST if self.landmarks is None else int(self.landmarks)
        # products come with all rows, and are not drawn
        pilot = draw_pilot(source, executor, 1 if given else size, self._draw_seed())
        self._check_rows(pilot)
        if given:
            return self._learn_given_map(collect_rows(source, executor))
        rows = pilot.block.X
        kernel = kernel_of(self.kernel, self.gamma, self.degree, self.coef0, rows)
        if len(pilot.block.weights()) < pilot.total_rows:
            return coordinates.sampled_map(kernel, rows)
        return coordinates.principal_map(kernel, rows, _uneven(pilot.block.weight))

    def _draw_seed(self) -> int:
        fixed = self.resumable and not isinstance(self.random_state, Integral)
        return 0 if fixed or self.landmarks is None else seed_from(self.random_state)

    def _check_rows(self, pilot: Pilot) -> None:
        if (pilot.observed < pilot.total_rows).any():
            raise ValueError(_INCOMPLETE)
        if self.landmarks is None and pilot.total_rows > _MOST:
            raise ValueError(
                f"kernel={self.kernel!r} with landmarks=None compares all pairs of rows, of at "
                f"most {_MOST} rows; X has {pilot.total_rows}. Set landmarks (1000, say): as many "
                "rows, drawn at random, then stand for all of them"
            )

    def _learn_given_map(self, known: Collected) -> GivenMap:
        columns, n_rows = np.flatnonzero(known.chosen), len(known.chosen)
        if n_rows != known.X.shape[1]:
            check_square(np.empty((n_rows, known.X.shape[1])))
        G = known.X[:, columns]
        G = G.toarray() if sparse.issparse(G) else G
        check_square(G)
        if self.landmarks is None or self.landmarks >= len(G):
            return coordinates.given_map(G, columns, known.weight)
        rng = np.random.default_rng(self._draw_seed() % 2**63)
        drawn = np.sort(rng.choice(len(G), int(self.landmarks), replace=False))
        return coordinates.sampled_given_map(G[np.ix_(drawn, drawn)], columns[drawn], str(G.dtype))


# ------------------------------------------------------------------ rows as coordinates


def map_rows(source: Source, found: FeatureMap) -> FeatureSource:
    """The rows of a source as coordinates; rows that lack entries are refused when visited."""
    return FeatureSource(source, _Complete(found), found.size)


def keep_in_memory(source: FeatureSource, executor: Executor) -> Source:
    """Coordinates in memory, if they are not many: a fit visits them again and again."""
    rows = source.n_samples
    if rows is None or rows * source.n_features * source.dtype.itemsize > _KEPT:
        return source
    blocks: list[Block] = list(executor.map_rows(_itself, source))
    X = stacked([block.X for block in blocks])
    return open_source(X, weight=_side(blocks, "weight"), y=_side(blocks, "y"), complete=True)


def check_stored_map(found: FeatureMap | None, kernel: Any, n_features: int) -> None:
    """Refuse the map of a model file that does not go with the parameters."""
    wanted: Any = GivenMap if is_precomputed(kernel) else LandmarkMap
    if not isinstance(found, wanted if uses_kernel(kernel) else type(None)):
        raise ValueError("the map of the kernel is missing, or of another kind")
    if found is not None and not _fits(found, n_features):
        raise ValueError("the map of the kernel is of another shape than X")


@dataclass(frozen=True, slots=True)
class _Complete:
    """A map that refuses rows that lack entries; picklable."""

    found: FeatureMap

    def __call__(self, X: Any) -> Array:
        check_complete(X)
        return np.asarray(self.found(X), dtype=X.dtype)


def check_complete(X: Any) -> None:
    """Refuse rows that lack entries."""
    if np.isnan(X.data if sparse.issparse(X) else X).any():
        raise ValueError(_INCOMPLETE)


_INCOMPLETE = (
    "X contains NaN: a kernel needs complete rows. Fill the missing entries first, by "
    "mixfold.PPCA(n_components).fit(X).impute(X), say"
)


def _fits(found: Any, n_features: int) -> bool:
    if isinstance(found, LandmarkMap):
        rows = found.landmarks
        return len(rows) == len(found.root) and rows.matrix.shape[1] == n_features
    inside = (found.columns >= 0) & (found.columns < n_features)
    return len(found.columns) == len(found.root) and bool(inside.all())


def _uneven(weight: Array | None) -> Array | None:
    """Weights, where they differ."""
    return None if weight is None or (weight == weight[0]).all() else weight


def _itself(block: Block) -> Block:
    return block


def _side(blocks: list[Block], name: str) -> Array | None:
    parts = [getattr(block, name) for block in blocks]
    return None if parts[0] is None else np.concatenate(parts)
