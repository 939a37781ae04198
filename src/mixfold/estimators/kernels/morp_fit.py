"""The shell of MORP as far as it is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Executor, Source
from mixfold.engine.random import seed_from
from mixfold.estimators.kernels.kernel_views import (
    ViewEstimator,
    exact_scores,
    read_sides,
    weights_or_ones,
)
from mixfold.estimators.kernels.morp_search import candidates, search
from mixfold.estimators.outputs.output_features import output_features
from mixfold.estimators.outputs.output_sets import OutputSets, each_of, learn_sets
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.math.signs import signs
from mixfold.models.kernels.morp import MorpAxes, check_spanned, inverse_form, max_form
from mixfold.models.kernels.readout import Readout, fit_readout
from mixfold.models.kernels.views import LinearProjection, Thin

# of the mean variance, by default: what was found to work
_SHARE = 0.3


class MorpFit(ViewEstimator):
    """Base of MORP: from rows and outputs to a projection."""

    _sets: OutputSets
    _readout: Readout
    _chosen: dict[str, Any]
    cv_results_: dict[str, Any] | None

    def _fitted_scores(self, X: Any, y: Any, sample_weight: Any) -> Array:
        seed = seed_from(self.random_state)
        y, columns, weights = read_sides(type(self).__name__, X, y, sample_weight)
        self._sets, coded = learn_sets(y, self.task, weights, self.standardize)
        weights = weights_or_ones(weights, len(coded[0]))
        total, self._shares = self._betas()
        outputs = output_features(self, coded, weights, seed)
        self._sizes = [table.shape[1] for table in outputs]
        source = self._open_with_outputs(X, columns, sample_weight, np.hstack(outputs))
        executor, view = self._executor(source), self._input_choice(seed)
        self._chosen, self.cv_results_ = {"beta": total}, None
        if total is None:
            self._search(source, executor, coded, weights, seed)
        thin, self.solver_ = view.thin(source, executor)
        return self._publish(source, executor, thin, np.hstack(coded), weights)

    def _betas(self) -> tuple[float | None, Array]:
        """Beta of all outputs together (None if it is to be chosen), and shares of the sets."""
        count = len(self._sets.sets)
        if isinstance(self.beta, str):
            return None, np.full(count, 1 / count)
        if np.ndim(self.beta) == 0 and not isinstance(self.beta, dict):
            return float(self.beta), np.full(count, 1 / count)
        given = list(self.beta) if isinstance(self.beta, np.ndarray) else self.beta
        if self._sets.single:
            raise ValueError(
                f"beta={self.beta!r} is for several sets of outputs (y a list or dict of arrays), "
                "but y is one; give one number"
            )
        each = np.array(each_of(given, self._sets, "beta"), float)
        total = float(each.sum())
        if total > 1 + 1e-12:
            raise ValueError(f"the entries of beta must sum to at most 1, got {self.beta!r}")
        return min(total, 1.0), each / total if total > 0 else np.full(count, 1 / count)

    def _balanced(self, thin: Thin) -> tuple[Array, Array, Array]:
        """Eigenvalues of Gx, V'Y and squares of Y; YY' is the sum of all Gy as much as they count.

        Each kernel matrix is divided by its trace, if so wished.
        """
        which = np.repeat(np.arange(len(self._shares)), self._sizes)
        scale = self._shares[which]
        w = thin.values
        if self.balance:
            traces = np.bincount(which, thin.squares, minlength=len(self._shares))
            scale = scale / np.where(traces > 0, traces, 1.0)[which]
            w = w / thin.trace
        return w, thin.outputs * np.sqrt(scale), thin.squares * scale

    def _solved(self, thin: Thin, beta: float, regularization: float | None = None) -> MorpAxes:
        """The axes at these settings, in coordinates of the features as they are."""
        w, C, squares = self._balanced(thin)
        usual = _SHARE * w.sum() / thin.weight
        given = self.regularization if regularization is None else regularization
        if self.form == "max":
            self.regularization_ = float(usual if given is None else given)
            return max_form(w, C, beta, self.regularization_, self.n_components)
        if beta >= 1:
            raise ValueError(
                f"form='inverse' needs beta < 1, got {beta:g}; use form='max', or a smaller beta"
            )
        if beta > 0:
            check_spanned(C, squares)
        self.regularization_ = float(given or 0.0)
        ridge = usual if self.smoothing is None else float(self.smoothing)
        return inverse_form(w, C, beta, self.regularization_, ridge, self.n_components)

    def _search(
        self, source: Source, executor: Executor, coded: list[Array], weights: Array, seed: int
    ) -> None:
        tried, view = candidates(self.cv_grid), self._input_choice(seed)
        table = search(
            source, executor, view, self._solved, coded, weights, tried, self.cv, float(self.ridge)
        )
        self._chosen = tried[int(np.argmax(table["mean_test_score"]))]
        self.cv_results_ = table

    def _publish(
        self, source: Source, executor: Executor, thin: Thin, coded: Array, weights: Array
    ) -> Array:
        axes, self.beta_ = self._solved(thin, **self._chosen), float(self._chosen["beta"])
        projection = thin.reader(axes.weights)
        scores = exact_scores(source, executor, projection)
        turn = signs(scores * (weights > 0)[:, None])[0]
        self._projection, scores = projection.times(turn), scores * turn
        self._readout = fit_readout(scores, coded, weights, float(self.ridge))
        self.eigenvalues_ = axes.values
        self.explained_variance_ratio_ = axes.inputs
        self.explained_output_ratio_ = axes.outputs * _spanned(*self._balanced(thin)[1:])
        if len(axes.values) < self.n_components:
            warn(
                f"there are only {len(axes.values)} directions to project on, fewer than "
                f"n_components={self.n_components}; scores have that many columns",
                DegenerateWarning,
            )
        self._publish_axes()
        return scores

    def _publish_axes(self) -> None:
        projection = self._projection
        if isinstance(projection, LinearProjection):
            self.components_ = projection.matrix.T.astype(self._dtype)
            self.mean_ = projection.mean.astype(self._dtype)
        first = self._sets.sets[0].target
        if self._sets.single and first.task != "regression":
            self.classes_ = first.classes


def _spanned(C: Array, squares: Array) -> float:
    """The share of the outputs that functions of x can have at all."""
    total = float(squares.sum())
    return float((C**2).sum()) / total if total > 0 else 0.0
