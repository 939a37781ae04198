"""The shell of a mixture: fitting and everything a fitted mixture can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.engine.loop import Plan
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.columns import column_positions
from mixfold.estimators.shell.component_labels import check_labels
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.models.mixtures.mixture import Mixture

# starts that are compared on the pilot: four of each kind
CANDIDATES = 12


class MixtureEstimator(DensityEstimator):
    """Base of the mixture estimators. Subclasses say which model and publish its parameters."""

    # parameters that may not change within a stream
    _shape_names: ClassVar[str]

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
        else:
            labels = check_labels(component_labels, self.n_components)
            source = self._open(X, reset=False, weight=sample_weight, y=labels)
        self._learn(source, self._shape_names, first)
        return self

    # ------------------------------------------------ asking

    def predict(self, X: Any) -> Array:
        """The most probable component of each row; missing entries are left out of account."""
        return self._ask(X, predictions.labels)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row, (n_samples, n_components)."""
        return self._ask(X, predictions.probabilities)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._ask(X, predictions.log_probabilities)

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
        rng = self._generator(n_samples, random_state)
        X, labels = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return X.astype(self._dtype), labels

    def condition(self, columns: Sequence[Any] | Any, values: Any) -> Self:
        """The distribution of the other columns, given values of some: again a fitted mixture.

        Parameters
        ----------
        columns : int or str, or a sequence of them
            The columns that are known, by position or, if the mixture was fitted to a table, by
            name.
        values : float or sequence of float
            Their values.

        Returns
        -------
        estimator of the same class
            Over the remaining columns, in their order.

        Examples
        --------
        >>> import numpy as np
        >>> from mixfold import GaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ [[1, 2], [0, 1]]
        >>> GaussianMixture().fit(X).condition(0, 1.5).means_.round(1)
        array([[3.]])
        """
        check_is_fitted(self)
        known = column_positions(self, columns)
        given = np.atleast_1d(np.asarray(values, dtype=float))
        if given.shape != known.shape:
            raise ValueError(
                f"values must have one number per column: {known.size} columns, values of shape "
                f"{given.shape}"
            )
        if not np.isfinite(given).all():
            raise ValueError("values must be finite; leave out the columns that are unknown")
        if known.size >= self.n_features_in_:
            raise ValueError(
                f"at least one of the {self.n_features_in_} columns must remain, got {known.size} "
                "known ones"
            )
        rest = np.setdiff1d(np.arange(self.n_features_in_), known)
        other = self._for_columns(rest)
        model, params = self._plug_in()
        other._params = other._adopted(model.condition(params, known, given))
        other.n_features_in_ = rest.size
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = self.feature_names_in_[rest]
        other._copy_fit(self)
        return other

    def _plug_in(self) -> tuple[Mixture, Any]:
        """The mixture whose conditionals are asked for, and its parameters."""
        return self._model(self.n_features_in_), self._params

    def _for_columns(self, rest: Array) -> Self:
        """An estimator with the same settings for some of the columns."""
        # starts prescribed for all columns mean nothing for some of them
        return type(self)(**self.get_params(deep=False))._without_start()

    def _adopted(self, params: Any) -> Any:
        """Parameters of conditionals as this estimator holds them."""
        return params

    def _without_start(self) -> Self:
        """Without parameters that prescribe a start."""
        return self

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # components are to predict_proba what classes are to a classifier's; scikit-learn's checks
        # of sparse input read it
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components > 2)
        return tags

    def _check_state(self) -> None:
        shape = (self.n_components, self.n_features_in_)
        means = self._params.components.means
        if means.shape != shape or self._params.weights.shape != shape[:1]:
            raise ValueError(f"parameters of shape {means.shape} where {shape} is declared")
        self._publish_params()
