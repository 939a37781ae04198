"""What MORP and KernelCCA share: two views of the rows, x and y, each with a kernel or landmarks.

``ViewChoice`` says how a view gets its coordinates; ``read_sides`` and ``exact_scores`` are steps
of both fits; ``ViewEstimator`` is the part of both classes that scikit-learn and files see.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import OutputSource, sides_beside, split_target
from mixfold.estimators.kernels.kernel_maps import KERNEL_RULES, KERNELS, check_square, kernel_of
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.predictions import shaped
from mixfold.math.kernels import Kernel
from mixfold.models.kernels.views import (
    Projection,
    Thin,
    dual_thin,
    given_thin,
    landmark_thin,
    primal_thin,
)
from mixfold.models.kernels.views.rows import whole_rows

OUTPUT_KERNELS = tuple(name for name in KERNELS if name != "precomputed")
VIEW_RULES: rule.Constraints = {
    **KERNEL_RULES,
    "output_kernel": (rule.one_of(OUTPUT_KERNELS), rule.function("of two matrices of rows")),
    "output_gamma": KERNEL_RULES["gamma"],
    "landmarks": (rule.nothing(), rule.integer(2)),
    "n_components": (rule.integer(1),),
    "solver": (rule.one_of(["auto", "primal", "dual"]),),
}


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """How a view gets its coordinates.

    ``make_kernel`` gives the kernel of rows; it is None where the rows are products already.
    """

    linear: bool
    make_kernel: Callable[[Any], Kernel] | None
    solver: str = "auto"
    landmarks: int | None = None
    seed: int = 0

    def thin(self, source: Source, executor: Executor) -> tuple[Thin, str]:
        """The decomposition of the centred kernel matrix, and the name of what found it."""
        if self.landmarks is not None:
            pilot = draw_pilot(source, executor, int(self.landmarks), self.seed)
            if pilot.total_rows > self.landmarks:
                return self._by_landmarks(source, executor, pilot.block), "landmarks"
        elif self._takes_columns(source):
            return primal_thin(source, executor), "primal"
        return dual_thin(source, executor, self.make_kernel), "dual"

    def _takes_columns(self, source: Source) -> bool:
        """Whether the matrix of the columns is decomposed, rather than that of pairs of rows."""
        if self.solver != "auto":
            return self.solver == "primal"
        return self.linear and (source.n_samples is None or source.n_features <= source.n_samples)

    def _by_landmarks(self, source: Source, executor: Executor, sample: Block) -> Thin:
        if self.make_kernel is not None:
            return landmark_thin(source, executor, self.make_kernel(whole_rows(sample)), sample.X)
        weight = np.concatenate(list(executor.map_rows(Block.weights, source)))
        rng = np.random.default_rng(self.seed)
        places = np.sort(rng.choice(np.flatnonzero(weight > 0), self.landmarks, replace=False))
        return given_thin(source, executor, places)


class Reweighted:
    """The rows of a source with other weights; those of weight zero are as good as absent."""

    def __init__(self, source: Source, weight: Array) -> None:
        self._source, self._weight = source, weight
        self.n_samples, self.n_features = source.n_samples, source.n_features
        self.feature_names, self.dtype = source.feature_names, source.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of the source."""
        for block in self._source.blocks(max_rows):
            yield replace(block, weight=self._weight[block.rows])


class ViewEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Base of MORP and KernelCCA: a projection of the rows, learned with the help of y."""

    _projection: Projection
    _stored: ClassVar[tuple[str, ...]] = ("_projection", "_dtype", "solver_")

    # ------------------------------------------------ steps of a fit

    def _input_choice(self, seed: int) -> ViewChoice:
        """How x gets its coordinates."""
        given, linear = self.kernel == "precomputed", self.kernel == "linear"
        if self.solver == "primal" and not linear:
            raise ValueError(
                "solver='primal' works on the columns of X and needs kernel='linear', got kernel="
                f"{self.kernel!r}; choose solver='auto', or set landmarks for very many rows"
            )
        settings = (self.kernel, self.gamma, self.degree, self.coef0)
        make_kernel = None if given else partial(kernel_of, *settings)
        return ViewChoice(linear, make_kernel, self.solver, self.landmarks, seed)

    def _output_choice(self, seed: int) -> ViewChoice:
        """How y, as it is coded, gets its coordinates; ``output_features`` asks for it."""
        settings = (self.output_kernel, self.output_gamma, self.degree, self.coef0)
        linear = self.output_kernel == "linear"
        return ViewChoice(linear, partial(kernel_of, *settings), "auto", self.landmarks, seed)

    def _open_with_outputs(
        self, X: Any, columns: list[str] | None, weight: Any, outputs: Array
    ) -> Source:
        """The rows of X with outputs beside them; ``columns`` as ``read_sides`` gives them."""
        if columns is not None:
            X = open_source(X, columns=columns, weight=weight, y=outputs)
            source = self._open(X, reset=True, min_rows=2)
        elif isinstance(X, Source):
            opened = self._open(X, reset=True, weight=weight, min_rows=2)
            source = OutputSource(opened, outputs)
        else:
            source = self._open(X, reset=True, weight=weight, y=outputs, min_rows=2)
        if self.kernel == "precomputed":
            check_square(np.concatenate([whole_rows(block) for block in source.blocks()]))
        self._dtype = source.dtype.name
        return source

    # ------------------------------------------------ asking

    @property
    def _n_features_out(self) -> int:
        return int(self._projection.size)

    def _scores(self, X: Any) -> Array:
        """Scores of the rows of X, in their type."""
        check_is_fitted(self)
        return self._stacked(X, _Scores(self._projection))

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that holds data only, never code.

        Load it with ``mixfold.load(path)``. A kernel that is a function cannot be saved.
        """
        for name in ("kernel", "output_kernel"):
            if callable(getattr(self, name)):
                raise ValueError(
                    f"a file holds no code, so that {type(self).__name__} with a function as {name}"
                    " cannot be saved; use one of the kernels that have names, or pickle"
                )
        super().save(path)


# ------------------------------------------------------------------ steps of a fit


def read_sides(
    name: str, X: Any, y: Any, weight: Any
) -> tuple[Any, list[str] | None, Array | None]:
    """What goes with the rows, read before they are opened: the estimator ``name`` requires y.

    y, the names of the features if y was one of the columns (None otherwise), and the weights as
    far as they can be read.
    """
    columns = None
    if isinstance(X, Source):
        beside = sides_beside(X)
        y, weights = beside.y if y is None else y, beside.weight
    else:
        weights = _readable_weights(X, weight)
    if isinstance(y, str):
        y, columns = split_target(X, y, weight)
    return require_y(name, y), columns, weights


def require_y(name: str, y: Any) -> Any:
    """Refuse None where the estimator ``name`` needs y."""
    if y is None:
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y "
            "is None; give what goes with the rows, marked by -1 or NaN where it is unknown"
        )
    return y


def _readable_weights(X: Any, weight: Any) -> Array | None:
    """Weights of the rows as an array, as far as they can be read; the source will check them."""
    if weight is None:
        return None
    values = np.asarray(split_target(X, weight)[0] if isinstance(weight, str) else weight)
    usable = values.ndim == 1 and values.dtype.kind in "fiub"
    return values.astype(float) if usable and (values >= 0).all() else None


def weights_or_ones(weights: Array | None, n_rows: int) -> Array:
    """Weights of so many rows; of another length they are refused when the rows are opened."""
    if weights is None or len(weights) != n_rows:
        return np.ones(n_rows)
    return weights


def exact_scores(source: Source, executor: Executor, projection: Projection) -> Array:
    """Scores (n, d) of all rows, in double precision."""
    return np.concatenate(list(executor.map_rows(_ExactScores(projection), source)))


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores of a block, in its type; picklable."""

    projection: Projection

    def __call__(self, block: Block) -> Array:
        return shaped(self.projection(whole_rows(block)), block)


@dataclass(frozen=True, slots=True)
class _ExactScores:
    """Scores of a block in double precision; picklable."""

    projection: Projection

    def __call__(self, block: Block) -> Array:
        return self.projection(whole_rows(block))
