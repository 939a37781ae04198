"""Rows as coordinates of the space of features of a kernel, in which a model is fitted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import seed_from
from mixfold.engine.sources import open_source
from mixfold.engine.sources.features import FeatureSource
from mixfold.estimators.kernels.kernel_choice import KERNEL_RULES, check_square, kernel_of
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.latents import LatentEstimator
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


def of_columns(estimator: Any) -> bool:
    """Whether the model speaks of the columns of X themselves."""
    if not estimator._is_mapped:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with kernel={estimator.kernel!r} models features of the rows, "
        "which are nobody's columns: there is no way back to rows. Use kernel=None for that"
    )


class FeatureCoordinates(LatentEstimator):
    """Mixin of estimators with ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``landmarks``.

    It stands before the estimator whose model is fitted: what that one is given to fit, and is
    asked of, are the coordinates, not the columns. Without a kernel, or with the linear one, it
    does nothing.
    """

    _feature_stored: ClassVar[tuple[str, ...]] = ("_feature_map",)
    _feature_map: FeatureMap | None = None

    @property
    def _is_mapped(self) -> bool:
        return self.kernel is not None and not (
            isinstance(self.kernel, str) and self.kernel == "linear"
        )

    @property
    def _is_given(self) -> bool:
        """Whether X has products of rows, not rows."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _n_columns(self) -> int:
        return super()._n_columns if self._feature_map is None else self._feature_map.size

    # ------------------------------------------------ fitting

    def _fit(self, source: Source, max_iter: int | None = None) -> Any:
        self._feature_map = None
        if self._is_mapped:
            found = self._learned_map(source)
            self._feature_map, source = found, self._kept(_mapped(source, found))
        return super()._fit(source, max_iter)

    def _learned_map(self, source: Source) -> FeatureMap:
        executor = self._executor(source)
        size = _MOST if self.landmarks is None else int(self.landmarks)
        # products come with all rows, and are not drawn
        pilot = draw_pilot(source, executor, 1 if self._is_given else size, self._landmark_seed())
        self._check_map(pilot)
        if self._is_given:
            return self._given_map(collect_rows(source, executor))
        rows = pilot.block.X
        kernel = kernel_of(self.kernel, self.gamma, self.degree, self.coef0, rows)
        if len(pilot.block.weights()) < pilot.total_rows:
            return coordinates.sampled_map(kernel, rows)
        return coordinates.principal_map(kernel, rows, _uneven(pilot.block.weight))

    def _landmark_seed(self) -> int:
        # a fit that goes on from its checkpoint must find the same landmarks
        fixed = self.checkpoint is not None and not isinstance(self.random_state, Integral)
        return 0 if fixed or self.landmarks is None else seed_from(self.random_state)

    def _check_map(self, pilot: Pilot) -> None:
        if (pilot.observed < pilot.total_rows).any():
            raise ValueError(_INCOMPLETE)
        if self.landmarks is None and pilot.total_rows > _MOST:
            raise ValueError(
                f"kernel={self.kernel!r} with landmarks=None compares all pairs of rows, of at "
                f"most {_MOST} rows; X has {pilot.total_rows}. Set landmarks (1000, say): as many "
                "rows, drawn at random, then stand for all of them"
            )

    def _given_map(self, known: Collected) -> GivenMap:
        columns, n_rows = np.flatnonzero(known.chosen), len(known.chosen)
        if n_rows != known.X.shape[1]:
            check_square(np.empty((n_rows, known.X.shape[1])))
        G = known.X[:, columns]
        G = G.toarray() if sparse.issparse(G) else G
        check_square(G)
        if self.landmarks is None or self.landmarks >= len(G):
            return coordinates.given_map(G, columns, known.weight)
        rng = np.random.default_rng(self._landmark_seed() % 2**63)
        drawn = np.sort(rng.choice(len(G), int(self.landmarks), replace=False))
        return coordinates.sampled_given_map(G[np.ix_(drawn, drawn)], columns[drawn], str(G.dtype))

    def _kept(self, source: FeatureSource) -> Source:
        """Coordinates in memory, if they are not many: a fit visits them again and again."""
        rows = source.n_samples
        if rows is None or rows * source.n_features * source.dtype.itemsize > _KEPT:
            return source
        blocks: list[Block] = list(self._executor(source).map_rows(_itself, source))
        X = stacked([block.X for block in blocks])
        return open_source(X, weight=_side(blocks, "weight"), y=_side(blocks, "y"), complete=True)

    # ------------------------------------------------ asking

    def _open(self, X: Any, *, reset: bool, **sides: Any) -> Source:
        if self._is_mapped and isinstance(X, np.ndarray) and X.dtype.kind == "f":
            _check_complete(X)  # before anything else is wrong with it
        source = super()._open(X, reset=reset, **sides)
        if reset or self._feature_map is None:
            return source
        return _mapped(source, self._feature_map)

    def _executor(self, source: Source) -> Executor:
        executor = super()._executor(source)
        return FeatureExecutor(executor) if self._is_mapped else executor

    @available_if(of_columns)
    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X; not with a kernel, which needs complete rows.

        Parameters
        ----------
        X : as in ``predict``
        method : {'mean', 'draw'}, default='mean'
            Conditional expectation given the observed entries of the row, or one draw from the
            conditional distribution (several draws make multiple imputations).
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws, which do not depend on the number of threads.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        return super().impute(X, method, random_state)

    @available_if(of_columns)
    def reconstruct(self, X: Any, method: str = "posterior") -> Array:
        """The rows as the model sees them: complete, and without noise; not with a kernel.

        Parameters
        ----------
        X : as in ``fit``
            NaN entries are filled like the others.
        method : str, default='posterior'
            'posterior': the expected row given its latents. 'least-squares': the nearest point of
            the plane of the component.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        return super().reconstruct(X, method)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._is_mapped:
            tags.input_tags.allow_nan = False
            tags.input_tags.pairwise = self._is_given
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that holds data only, never code.

        Load it with ``mixfold.load(path)``. The file appears whole or not at all. A kernel that is
        a function of your own cannot be written.
        """
        if callable(self.kernel):
            raise ValueError(
                f"kernel={self.kernel!r} is a function, and a model file holds no code: it cannot "
                "be saved. Use a kernel that has a name, or kernel='precomputed'"
            )
        super().save(path)

    def _check_state(self) -> None:
        wanted: Any = GivenMap if self._is_given else LandmarkMap
        if not isinstance(self._feature_map, wanted if self._is_mapped else type(None)):
            raise ValueError("the map of the kernel is missing, or of another kind")
        if self._feature_map is not None and not _fits(self._feature_map, self.n_features_in_):
            raise ValueError("the map of the kernel is of another shape than X")
        super()._check_state()


@dataclass(frozen=True, slots=True)
class _Complete:
    """A map that refuses rows that lack entries; picklable."""

    found: FeatureMap

    def __call__(self, X: Any) -> Array:
        _check_complete(X)
        return np.asarray(self.found(X), dtype=X.dtype)


def _check_complete(X: Any) -> None:
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


def _mapped(source: Source, found: FeatureMap) -> FeatureSource:
    return FeatureSource(source, _Complete(found), found.size)


def _uneven(weight: Array | None) -> Array | None:
    """Weights, where they differ."""
    return None if weight is None or (weight == weight[0]).all() else weight


def _itself(block: Block) -> Block:
    return block


def _side(blocks: list[Block], name: str) -> Array | None:
    parts = [getattr(block, name) for block in blocks]
    return None if parts[0] is None else np.concatenate(parts)
