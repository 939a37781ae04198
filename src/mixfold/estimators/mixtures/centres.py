"""What a fitted set of centres can be asked, and what it publishes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Fit
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.fitting import FittingEstimator
from mixfold.math.centres import Centres
from mixfold.models.mixtures.kmeans import KMeansModel, KMeansParams, KMeansStats

# events that are part of the algorithm; what they leave behind is told in another way
_ORDINARY = ("reseed", "empty")


class CentresEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, FittingEstimator
):
    """Base of estimators of hard clusters around centres. Subclasses say how they are found."""

    # ------------------------------------------------ asking

    def _reading(self) -> tuple[KMeansModel, Centres]:
        check_is_fitted(self)
        model = KMeansModel(self._size)
        return model, model.prepare(self._params)

    def predict(self, X: Any) -> Array:
        """The cluster of each row, int32: that of the nearest centre, the first of several."""
        model, reading = self._reading()
        return self._stacked(X, partial(model.labels, reading))

    def transform(self, X: Any) -> Array:
        """Distances to the centres, (n_samples, n_clusters), over the observed entries of a row."""
        return self._stacked(X, partial(_distances, *self._reading()))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of X."""
        model, reading = self._reading()
        tasks = self._rows(X, partial(model.tally, reading), weight=sample_weight)
        squared = sum(stats.inertia for stats in tasks)
        return -float(squared) * float(reading.frame.scale[0]) ** 2

    def _label(self, source: Source) -> None:
        model, reading = self._reading()
        rows = self._executor(source).map_rows(partial(model.labels, reading), source)
        self.labels_ = np.concatenate(list(rows))

    def _too_few_rows(self, n_rows: int) -> str:
        return f"n_samples={n_rows} should be >= {self._size_name}={self._size}."

    # ------------------------------------------------ publishing

    def _publish_params(self) -> None:
        params: KMeansParams = self._params
        self.cluster_centers_ = params.frame.leave(params.centres).astype(self._dtype)

    def _publish_fit(self, fit: Fit, quiet: bool = False) -> None:
        model = KMeansModel(self._size)
        self.inertias_ = [model.inertia(fit.params, value) for value in fit.trace[1:]]
        self.inertia_ = model.inertia(fit.params, fit.objective)
        # as in scikit-learn, the iteration that found nothing to change counts
        self.n_iter_ = fit.n_iter + (fit.converged and fit.remaining == 0)
        self.n_passes_ = fit.n_passes
        self.converged_ = fit.converged
        self.stop_reason_ = fit.reason
        self.events_ = list(fit.events)

    def _publish_batch(self, model: KMeansModel, stats: KMeansStats) -> None:
        self.inertia_ = model.inertia(self._params, model.objective(self._params, stats))

    def _tell(self, fit: Fit) -> None:
        found = len(np.unique(self.labels_))
        if found < self._size:
            warn(
                f"Number of distinct clusters ({found}) found smaller than {self._size_name} "
                f"({self._size}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )
        super()._tell(replace(fit, events=tuple(e for e in fit.events if e.kind not in _ORDINARY)))

    @property
    def _n_features_out(self) -> int:
        """Columns of ``transform``, for ``get_feature_names_out``."""
        return self._size

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _summary(self) -> dict[str, Any]:
        return {
            "inertia": self.inertia_,
            "converged": getattr(self, "converged_", False),
            "iterations": self.n_iter_,
        }

    def _check_state(self) -> None:
        shape, params = (self._size, self.n_features_in_), self._params
        if not isinstance(params, KMeansParams) or params.centres.shape != shape:
            raise ValueError(f"centres of a shape other than {shape}, which is declared")
        if params.frame.origin.shape != shape[1:] or params.frame.scale.shape != shape[1:]:
            raise ValueError(f"a frame of other than {shape[1]} columns")
        self._publish_params()


def _distances(model: KMeansModel, reading: Centres, block: Block) -> Array:
    """float32 in, float32 out."""
    return model.distances(reading, block).astype(block.X.dtype, copy=False)
