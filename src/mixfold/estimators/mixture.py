"""The shell of a mixture: fitting and everything a fitted mixture can be asked."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Pilot, Source
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys, seed_from
from mixfold.estimators import answers
from mixfold.estimators.fitting import FIRST_BATCH_STEPS, FittingEstimator
from mixfold.estimators.sides import check_labels
from mixfold.models.mixture import Mixture, MixtureReading, MixtureStats

# starts that are compared on the pilot: four of each kind
CANDIDATES = 12
# the stream of random numbers of imputation, apart from that of fits
_IMPUTE_STREAM = 2


class MixtureEstimator(DensityMixin, FittingEstimator):
    """Base of the mixture estimators. Subclasses say which model and publish its parameters."""

    @abstractmethod
    def _model(self, n_features: int) -> Mixture: ...

    # ------------------------------------------------ fitting

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.
        component_labels : array-like of shape (n_samples,) or str, optional
            The component of each row, 0 to n_components - 1, or -1 where it is unknown.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._training_source(X, sample_weight, component_labels)
        self._fit(source)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then assign each row to its most probable component."""
        return self.fit(X, y, sample_weight, component_labels).predict(X)

    def _training_source(self, X: Any, weight: Any, labels: Any) -> Source:
        labels = check_labels(labels, self.n_components)
        return self._open(X, reset=True, weight=weight, y=labels, min_rows=2)

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        chosen = self.init_params == "kmeans" and self._model(self.n_features_in_).given.free
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=self.n_init,
            n_candidates=CANDIDATES if chosen and self.n_components > 1 else 1,
            acceleration=self._acceleration(),
            time_budget=self.time_budget,
            seed=seed,
        )

    def _acceleration(self) -> Acceleration | None:
        if self.acceleration is None:
            return None
        return ACCELERATIONS["quasi-newton" if self.acceleration == "auto" else self.acceleration]

    def _continued(self, model: Mixture, pilot: Pilot) -> dict[str, Any]:
        if not (self.warm_start and hasattr(self, "_params") and self._fits(model)):
            return {}
        start = model.reframed(self._params, pilot)
        same_frame = start is self._params
        return {"start": start, "earlier": getattr(self, "_climb", None) if same_frame else None}

    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand are of the shapes that the settings ask for."""
        components = self._params.components
        shape = (self.n_components, self.n_features_in_)
        wanted = model.family.scatter_shape(*shape)
        return components.means.shape == shape and components.scatter.shape == wanted

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        self._climb = result.climb if self.warm_start else None
        self._total: tuple[float, float, float] | None = (
            result.objective,
            result.weight,
            result.entropy,
        )
        super()._keep(result, source, seed, quiet)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Learn from one more batch (stepwise EM); the first one makes the start.

        Parameters are as in ``fit``. Batches may have any size after the first, which needs at
        least n_components rows; make it a typical one.
        """
        self._check_parameters()
        first = not hasattr(self, "_schedule")
        if first:
            source = self._training_source(X, sample_weight, component_labels)
            self._fit(source, min(self.max_iter, FIRST_BATCH_STEPS))
        else:
            if not self._fits(self._model(self.n_features_in_)):
                raise ValueError(
                    "n_components or covariance_type changed since the last batch; clone the "
                    "estimator to begin a new stream"
                )
            labels = check_labels(component_labels, self.n_components)
            source = self._open(X, reset=False, weight=sample_weight, y=labels)
        self._learn_batch(source, first)
        return self

    def _publish_batch(self, model: Mixture, stats: MixtureStats) -> None:
        batch = model.normalised(stats)
        self._total = None  # a stream is not kept
        self.lower_bound_ = batch.log_likelihood

    # ------------------------------------------------ asking

    def _reading(self) -> tuple[Mixture, MixtureReading]:
        check_is_fitted(self)
        model = self._model(self.n_features_in_)
        return model, model.prepare(self._params)

    def _ask(self, X: Any, answer: Any) -> Array:
        return self._stacked(X, partial(answer, *self._reading()))

    def predict(self, X: Any) -> Array:
        """The most probable component of each row; missing entries are left out of account."""
        return self._ask(X, answers.labels)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row, (n_samples, n_components)."""
        return self._ask(X, answers.probabilities)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._ask(X, answers.log_probabilities)

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row."""
        return self._ask(X, answers.log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row (per unit of weight)."""
        total, weight, _ = self._totals(X, sample_weight)
        return self._dtype_of(X)(total / weight)

    def _dtype_of(self, X: Any) -> Any:
        return np.float32 if getattr(X, "dtype", None) == np.float32 else float

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Log-likelihood, weight and entropy of responsibilities, of X or of the training data."""
        check_is_fitted(self)
        if X is None:
            if self._total is None:
                raise ValueError(
                    "the rows of a stream, or of a conditioned mixture, are not kept: give X"
                )
            return self._total
        model, reading = self._reading()
        parts = self._rows(X, partial(answers.block_totals, model, reading), weight=sample_weight)
        total = np.sum([part for part in parts], axis=0)
        if total[1] == 0:
            raise ValueError("X has no row of positive weight with an observed entry")
        return float(total[0]), float(total[1]), float(total[2])

    def _n_parameters(self) -> int:
        return self._model(self.n_features_in_).n_free(self.n_features_in_)

    def bic(self, X: Any = None, sample_weight: Any = None) -> float:
        """Bayesian information criterion, the lower the better. X=None: of the training data."""
        total, weight, _ = self._totals(X, sample_weight)
        return -2 * total + self._n_parameters() * float(np.log(weight))

    def aic(self, X: Any = None, sample_weight: Any = None) -> float:
        """Akaike information criterion, the lower the better. X=None: of the training data."""
        total, _, _ = self._totals(X, sample_weight)
        return -2 * total + 2 * self._n_parameters()

    def icl(self, X: Any = None, sample_weight: Any = None) -> float:
        """Integrated completed likelihood: BIC plus twice the entropy of the assignments.

        The lower the better; it prefers components that are apart. X=None: of the training data.
        """
        total, weight, entropy = self._totals(X, sample_weight)
        return -2 * total + self._n_parameters() * float(np.log(weight)) + 2 * entropy

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples}. At least one sample must be drawn."
            )
        if random_state is None:
            seed, calls = self._stream
            self._stream = (seed, calls + 1)
            rng = np.random.default_rng([seed % 2**63, calls, 3])
        else:
            rng = np.random.default_rng(seed_from(random_state))
        X, labels = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return X.astype(self._dtype), labels

    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X.

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
        if method not in ("mean", "draw"):
            raise ValueError(f"method must be 'mean' or 'draw', got {method!r}")
        model, reading = self._reading()
        keys = RowKeys(seed_from(random_state), 0, _IMPUTE_STREAM)
        return self._stacked(X, partial(model.impute, reading, rng=keys, draw=method == "draw"))

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # components are to predict_proba what classes are to a classifier's; scikit-learn's checks
        # of sparse input read it
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components > 2)
        return tags

    def _copy_fit(self, other: MixtureEstimator) -> None:
        """Take over how another fit ended; the parameters, and so their likelihood, are others."""
        for name in ("_dtype", "_stream", "converged_", "stop_reason_", "n_iter_", "events_"):
            setattr(self, name, getattr(other, name))
        self._total, self.lower_bound_ = None, float("nan")
        self._publish_params()

    def _summary(self) -> dict[str, Any]:
        return {
            "log-likelihood per row": self.lower_bound_,
            "training weight": None if self._total is None else self._total[1],
            "converged": getattr(self, "converged_", False),
            "iterations": self.n_iter_,
        }

    def _check_state(self) -> None:
        shape = (self.n_components, self.n_features_in_)
        means = self._params.components.means
        if means.shape != shape or self._params.weights.shape != shape[:1]:
            raise ValueError(f"parameters of shape {means.shape} where {shape} is declared")
        self._publish_params()
