"""The shell of models of kernel views: which coordinates the rows get, and rows projected."""

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
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
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
    """How a view gets its coordinates; ``choice`` names the kernel of rows, None if it is given."""

    linear: bool
    choice: Callable[[Any], Kernel] | None
    solver: str = "auto"
    landmarks: int | None = None
    seed: int = 0

    def thin(self, source: Source, executor: Executor) -> tuple[Thin, str]:
        """The decomposition, and the name of what found it."""
        if self.landmarks is not None:
            pilot = draw_pilot(source, executor, int(self.landmarks), self.seed)
            if pilot.total_rows > self.landmarks:
                return self._by_landmarks(source, executor, pilot.block), "landmarks"
        elif self._is_primal(source):
            return primal_thin(source, executor), "primal"
        return dual_thin(source, executor, self.choice), "dual"

    def _is_primal(self, source: Source) -> bool:
        if self.solver != "auto":
            return self.solver == "primal"
        return self.linear and (source.n_samples is None or source.n_features <= source.n_samples)

    def _by_landmarks(self, source: Source, executor: Executor, sample: Block) -> Thin:
        if self.choice is not None:
            return landmark_thin(source, executor, self.choice(whole_rows(sample)), sample.X)
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

    # ------------------------------------------------ fitting

    def _input_choice(self, seed: int) -> ViewChoice:
        given, linear = self.kernel == "precomputed", self.kernel == "linear"
        if self.solver == "primal" and not linear:
            raise ValueError(
                "solver='primal' works on the columns of X and needs kernel='linear', got kernel="
                f"{self.kernel!r}; choose solver='auto', or set landmarks for very many rows"
            )
        settings = (self.kernel, self.gamma, self.degree, self.coef0)
        choice = None if given else partial(kernel_of, *settings)
        return ViewChoice(linear, choice, self.solver, self.landmarks, seed)

    def _output_choice(self, seed: int) -> ViewChoice:
        settings = (self.output_kernel, self.output_gamma, self.degree, self.coef0)
        linear = self.output_kernel == "linear"
        return ViewChoice(linear, partial(kernel_of, *settings), "auto", self.landmarks, seed)

    def _beside(self, X: Any, y: Any, weight: Any) -> tuple[Any, list[str] | None, Array | None]:
        """y, names of the features if y was one of the columns, and weights as far as readable."""
        columns = None
        if isinstance(X, Source):
            beside = sides_beside(X)
            y, weights = beside.y if y is None else y, beside.weight
        else:
            weights = _weights(X, weight)
        if isinstance(y, str):
            y, columns = split_target(X, y, weight)
        return self._required(y), columns, weights

    def _required(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None; give what goes with the rows, marked by -1 or NaN where it is unknown"
            )
        return y

    def _with_outputs(
        self, X: Any, columns: list[str] | None, weight: Any, outputs: Array
    ) -> Source:
        """The rows with outputs beside them."""
        if columns is not None:
            X = open_source(X, columns=columns, weight=weight, y=outputs)
            return self._checked(self._open(X, reset=True, min_rows=2))
        if isinstance(X, Source):
            source = self._open(X, reset=True, weight=weight, min_rows=2)
            return self._checked(OutputSource(source, outputs))
        return self._checked(self._open(X, reset=True, weight=weight, y=outputs, min_rows=2))

    def _checked(self, source: Source) -> Source:
        if self.kernel == "precomputed":
            check_square(np.concatenate([whole_rows(block) for block in source.blocks()]))
        self._dtype = source.dtype.name
        return source

    # ------------------------------------------------ asking

    @property
    def _n_features_out(self) -> int:
        return int(self._projection.size)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._stacked(X, _Projected(self._projection))

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


@dataclass(frozen=True, slots=True)
class _Projected:
    """Scores of a block; picklable."""

    projection: Projection

    def __call__(self, block: Block) -> Array:
        return shaped(self.projection(whole_rows(block)), block)


@dataclass(frozen=True, slots=True)
class Exact:
    """Scores of a block in double precision; picklable."""

    projection: Projection

    def __call__(self, block: Block) -> Array:
        return self.projection(whole_rows(block))


def exact_scores(source: Source, executor: Executor, projection: Projection) -> Array:
    """Scores (n, d) of all rows."""
    return np.concatenate(list(executor.map_rows(Exact(projection), source)))


def _weights(X: Any, weight: Any) -> Array | None:
    """Weights of the rows as an array, as far as they can be read; the source will check them."""
    if weight is None:
        return None
    values = np.asarray(split_target(X, weight)[0] if isinstance(weight, str) else weight)
    usable = values.ndim == 1 and values.dtype.kind in "fiub"
    return values.astype(float) if usable and (values >= 0).all() else None
