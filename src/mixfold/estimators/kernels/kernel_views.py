"""What MORP and KernelCCA share: two views of the rows, x and y, each with a kernel or landmarks.

``ViewChoice`` says how a view is decomposed; ``decompose_outputs``, ``map_outputs`` and
``exact_scores`` are steps of both fits; ``ViewEstimator`` is the part of both classes that
scikit-learn and files see.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.kernel_features import (
    KERNEL_RULES,
    KERNELS,
    KernelChoice,
    check_square,
    draw_landmark_columns,
    refuse_to_save_function,
)
from mixfold.estimators.shell.parameters import rules_of
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.models.kernels.views import (
    Projection,
    ThinSVD,
    dual_thin,
    landmark_thin,
    primal_thin,
    thin_svd_of_kernel_matrix,
)
from mixfold.models.kernels.views.rows import whole_rows

OUTPUT_KERNELS = tuple(name for name in KERNELS if name != "precomputed")
VIEW_RULES: rule.Constraints = {
    **KERNEL_RULES,
    "output_kernel": (rule.one_of(OUTPUT_KERNELS), rule.function("of two matrices of rows")),
    "output_gamma": rules_of("gamma")["gamma"],
    "landmarks": (rule.nothing(), rule.integer(2)),
    "n_components": (rule.integer(1),),
    "solver": (rule.one_of(["auto", "primal", "dual"]),),
}

# where the rows of a source are visited
ExecutorOf = Callable[[Source], Executor]


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """How a view is decomposed: its kernel, by columns or pairs of rows, or by landmarks."""

    kernel: KernelChoice
    solver: str = "auto"
    landmarks: int | None = None
    seed: int = 0

    def thin(self, source: Source, executor: Executor) -> tuple[ThinSVD, str]:
        """The decomposition of the centred kernel matrix, and the name of what found it."""
        if self.landmarks is not None:
            pilot = draw_pilot(source, executor, int(self.landmarks), self.seed)
            if pilot.total_rows > self.landmarks:
                return self._by_landmarks(source, executor, pilot.block), "landmarks"
        elif self._takes_columns(source):
            return primal_thin(source, executor), "primal"
        make_kernel = None if self.kernel.is_precomputed else self.kernel.make
        return dual_thin(source, executor, make_kernel), "dual"

    def _takes_columns(self, source: Source) -> bool:
        """Whether the matrix of the columns is decomposed, rather than that of pairs of rows."""
        if self.solver != "auto":
            return self.solver == "primal"
        few = source.n_samples is None or source.n_features <= source.n_samples
        return self.kernel.is_linear and few

    def _by_landmarks(self, source: Source, executor: Executor, sample: Block) -> ThinSVD:
        if not self.kernel.is_precomputed:
            return landmark_thin(source, executor, self.kernel.make(whole_rows(sample)), sample.X)
        weight = np.concatenate(list(executor.map_rows(Block.weights, source)))
        assert self.landmarks is not None
        columns = draw_landmark_columns(weight > 0, self.landmarks, self.seed)
        return thin_svd_of_kernel_matrix(source, executor, columns)


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
        """How x is decomposed."""
        kernel = KernelChoice(self.kernel, self.gamma, self.degree, self.coef0)
        if self.solver == "primal" and not kernel.is_linear:
            raise ValueError(
                "solver='primal' works on the columns of X and needs kernel='linear', got kernel="
                f"{self.kernel!r}; choose solver='auto', or set landmarks for very many rows"
            )
        return ViewChoice(kernel, self.solver, self.landmarks, seed)

    def _output_choice(self, seed: int) -> ViewChoice:
        """How y, as it is coded, is decomposed."""
        kernel = KernelChoice(self.output_kernel, self.output_gamma, self.degree, self.coef0)
        return ViewChoice(kernel, "auto", self.landmarks, seed)

    # ------------------------------------------------ asking

    @property
    def _n_features_out(self) -> int:
        return int(self._projection.size)

    def _scores(self, X: Any) -> Array:
        """Scores of the rows of X, in their type."""
        check_is_fitted(self)
        return self._concatenate_rows(X, _Scores(self._projection))

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
        refuse_to_save_function(self, "kernel", "output_kernel")
        super().save(path)


# ------------------------------------------------------------------ steps of a fit


def check_kernel_matrix(source: Source) -> None:
    """Refuse the rows of a source that together are no kernel matrix."""
    check_square(np.concatenate([whole_rows(block) for block in source.blocks()]))


def map_outputs(
    view: ViewChoice, executor_of: ExecutorOf, tables: list[Array], weights: Array
) -> list[Array]:
    """Centred coordinates (n, r) of each set of outputs (n, L); 0 where they are unknown."""
    if view.kernel.is_linear:
        return [_centre(table, weights) for table in tables]
    return [_map_by_kernel(view, executor_of, table, weights) for table in tables]


def _centre(table: Array, weights: Array) -> Array:
    """Each column about the mean of what is known; 0 elsewhere."""
    known = ~np.isnan(table)
    count = weights @ known
    mean = weights @ np.where(known, table, 0.0) / np.where(count > 0, count, 1.0)
    return np.where(known, table - mean, 0.0)


def _map_by_kernel(
    view: ViewChoice, executor_of: ExecutorOf, table: Array, weights: Array
) -> Array:
    known = ~np.isnan(table).any(axis=1)
    thin = decompose_outputs(view, executor_of, table, weights * known)
    out = np.zeros((len(table), len(thin.values)))
    out[known] = thin.reader(np.eye(len(thin.values)))(table[known])
    return out


def decompose_outputs(
    view: ViewChoice, executor_of: ExecutorOf, table: Array, weights: Array
) -> ThinSVD:
    """The decomposition of outputs (n, L), which are known wherever weights are positive.

    Of equal rows one stands for all.
    """
    if not (weights > 0).any():
        raise ValueError(
            "no row (of positive weight) has all its outputs, which is needed here; fill them "
            "first, or, with MORP, use output_kernel='linear'"
        )
    rows, weights = table[weights > 0], weights[weights > 0]
    distinct, where = np.unique(rows, axis=0, return_inverse=True)
    if len(distinct) == 1:
        raise ValueError(
            f"y is the same in all of the {len(rows)} sample(s) of positive weight: nothing goes "
            "with it; give rows that differ in y"
        )
    source = open_source(distinct, weight=np.bincount(where.ravel(), weights))
    return view.thin(source, executor_of(source))[0]


def exact_scores(source: Source, executor: Executor, projection: Projection) -> Array:
    """Scores (n, d) of all rows, in double precision."""
    return np.concatenate(list(executor.map_rows(_ExactScores(projection), source)))


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores of a block, in its type; picklable."""

    projection: Projection

    def __call__(self, block: Block) -> Array:
        return match_dtype(self.projection(whole_rows(block)), block)


@dataclass(frozen=True, slots=True)
class _ExactScores:
    """Scores of a block in double precision; picklable."""

    projection: Projection

    def __call__(self, block: Block) -> Array:
        return self.projection(whole_rows(block))
