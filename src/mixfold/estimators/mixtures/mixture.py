"""The shell of a mixture: fitting and everything a fitted mixture can be asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.estimators.mixtures.combining import Combining
from mixfold.estimators.mixtures.set_aside import SettingAside
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.constraints import as_numbers
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.effective_rows import effective_totals, parameter_cost
from mixfold.estimators.shell.input_rows import check_component_labels, column_positions
from mixfold.models.mixtures.remaining_columns import MixtureOfRemainingColumns

# starts that race on the pilot, each with another view of the rows
CANDIDATES = 20


class MixtureEstimator(Combining, SettingAside, DensityEstimator):
    """Base of the mixture estimators. Subclasses say which model and publish its parameters."""

    # parameters that may not change within a stream
    _shape_names: ClassVar[str]
    # densities that are compared know the same categories: codes (one array per column) of rows
    # that are not fitted
    _codes_elsewhere: tuple[Array, ...] | None = None

    # ------------------------------------------------ fitting

    @abstractmethod
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit the mixture."""

    def _note_codes(self, source: Source, earlier: Sequence[Any]) -> None:
        """Remember the codes of a source and of ``earlier`` fits, before a fit to some rows of it.

        They are categories of the fit, too. Most mixtures have no columns of codes.
        """

    @abstractmethod
    def _fit_rows(self, source: Source, first_batch: bool = False) -> Any:
        """Look at the rows, make the model, run it and publish; a first batch gets few steps."""

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then assign each row to its most probable component."""
        return self.fit(X, y, sample_weight, component_labels).predict(X)

    def _open_rows(
        self, X: Any, sample_weight: Any, component_labels: Any, *, reset: bool = True
    ) -> Source:
        """The rows with their weights and known components; ``reset`` for those of a new fit."""
        labels = check_component_labels(component_labels, self.n_components)
        min_rows = 2 if reset else 1
        return self._open(X, reset=reset, weight=sample_weight, y=labels, min_rows=min_rows)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Learn from one more batch (stepwise EM); the first one makes the start.

        Parameters are as in ``fit``. Batches may have any size after the first, which needs at
        least n_components rows; make it a typical one. After ``fit`` a new stream begins.
        """
        self._check_parameters()
        first = not hasattr(self, "_schedule")
        source = self._open_rows(X, sample_weight, component_labels, reset=first)
        if first:
            self._fit_rows(source, first_batch=True)
        else:
            self._check_same_stream(self._model(self.n_features_in_), self._shape_names)
        self._learn_batch(source, first)
        return self

    def _learn_batch(self, source: Source, first: bool) -> None:
        """One step from the statistics of a batch; for ``partial_fit``."""
        self._learn_batch_by_em(self._model(self.n_features_in_), source, first)

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

    def icl(
        self, X: Any = None, sample_weight: Any = None, n_effective: float | None = None
    ) -> float:
        """Integrated completed likelihood: BIC plus twice the entropy of the assignments.

        The lower the better; it prefers components that are apart. X=None: of the training data.
        Weights and ``n_effective`` are as in ``bic``.
        """
        totals = self._totals(X, sample_weight)
        total, weight, entropy = effective_totals(totals, n_effective)
        return -2 * total + self._n_parameters() * parameter_cost(weight) + 2 * entropy

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
        return in_dtype(X, self._dtype), labels

    def condition(self, columns: Sequence[Any] | Any, values: Any) -> Self:
        """The distribution of the other columns, given values of some: again a fitted mixture.

        Its density is that of ``score_samples``, joint over marginal: with a prior, parameters are
        averaged out on both sides. Of mixtures that were fitted by draws (``inference='gibbs'`` or
        ``'collapsed'``) it is that of the point estimate instead.

        Parameters
        ----------
        columns : int or str, or a sequence of them
            The columns that are known, by position or, if the mixture was fitted to a table, by
            name.
        values : float or sequence of float
            Their values.

        Returns
        -------
        estimator
            Over the remaining columns, in their order; of the same class, save that a
            BayesianGaussianMixture gives a Mixture.

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
        given = np.atleast_1d(as_numbers(values, "values"))
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
        other: Self = self._condition(known, given)
        other.n_features_in_ = rest.size
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = self.feature_names_in_[rest]
        other._copy_fit(self)
        return other

    def _condition(self, known: Array, values: Array) -> Self:
        """An estimator of the other columns with their parameters, given values of the known."""
        other = self._for_columns(np.setdiff1d(np.arange(self.n_features_in_), known))
        model, params = self._model(self.n_features_in_).plug_in(self._params)
        if isinstance(model, MixtureOfRemainingColumns):
            left = model.columns_given(known, values)
            if left is not None:
                other._dependent = left
        other._params = other._adopt_params(model.condition(params, known, values))
        return other

    def _for_columns(self, rest: Array) -> Self:
        """An estimator with the same settings for some of the columns."""
        # starts prescribed for all columns mean nothing for some of them
        return type(self)(**self.get_params(deep=False))._without_start()

    def _adopt_params(self, params: Any) -> Any:
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

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        # a file says what was counted only if anything was
        return {k: v for k, v in state.items() if v is not None or k not in ("_occurring", "_only")}

    def _check_state(self) -> None:
        shape = (self.n_components, self._n_modelled)
        means = self._params.components.means
        if means.shape != shape or self._params.weights.shape != shape[:1]:
            raise ValueError(f"parameters of shape {means.shape} where {shape} is declared")
        self._publish_params()
