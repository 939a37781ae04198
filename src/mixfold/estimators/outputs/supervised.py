"""Factor models with outputs: y in any form, the parts of a fit that they share, and scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import OutputSource, sides_beside, split_target
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.estimators.shell.latents import LatentEstimator
from mixfold.estimators.shell.target_scores import target_score
from mixfold.estimators.shell.targets import Target, learned
from mixfold.families.factor import FactorFamily
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.models.outputs import use
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams, SupervisedReading

# rules of the parameters that every supervised fit has: they are neither extrapolated nor continued
SUPERVISED_RULES: rule.Constraints = {
    name: rules
    for name, rules in FITTING_RULES.items()
    if name not in ("acceleration", "warm_start")
}
STORED = (
    "_params", "_holes", "_target", "_total", "_labelled", "converged_", "stop_reason_", "n_iter_",
    "n_passes_", "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream",
)  # fmt: skip


def _has_likelihood(estimator: Any) -> bool:
    """Whether there are criteria of information."""
    if estimator._is_likelihood:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with these settings maximises no likelihood (outputs count "
        "more, or less, than once), so that information criteria mean nothing"
    )


class SupervisedEstimator(LatentEstimator):
    """Base of MixtureOfFactorModels, SupervisedPPCA and SupervisedMixtureOfPPCA.

    Each of them has its own ``fit``, which finds y and opens the rows by the methods here, and
    says which model is fitted (``_joint_model``), what its columns are (``_family``) and what y
    may be (``_task``). Here is also what is asked of rows with known outputs.
    """

    _stored: ClassVar[tuple[str, ...]] = STORED
    # each fit begins anew
    warm_start = False

    @property
    @abstractmethod
    def _task(self) -> str:
        """'auto', or one of 'classification', 'multilabel', 'regression'."""

    @abstractmethod
    def _family(self) -> FactorFamily:
        """Of the columns; ``expand=False``, since the outputs move with the latents."""

    @abstractmethod
    def _joint_model(self) -> SupervisedModel:
        """The model of rows and outputs; ``_target`` and ``_labelled`` are known."""

    @abstractmethod
    def _canonical_joint(self) -> SupervisedParams:
        """The parameters in the latent coordinates in which all answers are given."""

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Outputs of the rows, in the form in which y was given."""

    def _encode_outputs(self, encoded: Array) -> Array:
        """``Block.y`` of encoded targets (``Target.encoded``)."""
        return encoded

    def _model(self, n_features: int) -> Mixture:
        """The mixture that is left where outputs are not looked at."""
        return Mixture(self._size, self._family())

    # ------------------------------------------------ parts of a fit

    def _find_target(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, Array | None, list[str] | None]:
        """Where y and the weights are: values, weights, and columns that are left for features.

        y may be given, name a column of X, or stand in a source; the columns are None if y is not
        one of them.
        """
        weights, columns = _read_weights(X, sample_weight), None
        if isinstance(y, str):
            y, columns = split_target(X, y, sample_weight)
        elif isinstance(X, Source):
            beside = sides_beside(X)
            y, weights = beside.y if y is None else y, beside.weight
        return self._require_target(y), weights, columns

    def _require_target(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None; rows without a label are marked in y (-1, or NaN)"
            )
        return y

    def _learn_target(self, y: Any, weights: Array | None) -> Array:
        """Learn what y is (``_target``), and the share of rows that have it; y encoded."""
        self._target, encoded = learned(y, self._task, weights)
        weights = weights_or_ones(weights, len(encoded))
        known = encoded >= 0 if encoded.ndim == 1 else ~np.isnan(encoded).all(axis=1)
        self._labelled = float(weights @ known / weights.sum())
        return encoded

    def _open_with_outputs(
        self, X: Any, outputs: Array, columns: list[str] | None, sample_weight: Any
    ) -> Source:
        """The rows of a fit, whose ``Block.y`` are the outputs."""
        if columns is not None:
            X = open_source(X, columns=columns, weight=sample_weight, y=outputs)
            return self._open(X, reset=True, min_rows=2)
        if isinstance(X, Source):
            source = self._open(X, reset=True, weight=sample_weight, min_rows=2)
            return OutputSource(source, outputs)
        return self._open(X, reset=True, weight=sample_weight, y=outputs, min_rows=2)

    @property
    def _tolerance(self) -> float:
        """``tol`` per labelled row: what labels gain must be seen beside what all columns gain."""
        return float(self.tol) * (self._labelled or 1.0)

    # ------------------------------------------------ asking

    _params: SupervisedParams

    def _canonical(self) -> MixtureParams:
        return use.of_inputs(self._canonical_joint())

    def _joint_reading(self) -> tuple[Any, SupervisedReading]:
        """The model of rows and outputs, ready to answer."""
        check_is_fitted(self)
        model = self._joint_model()
        return model, model.prepare(self._canonical_joint())

    def _map_rows_with_outputs(self, X: Any, task: Any, y: Any = None) -> list[Any]:
        """``task(block)`` of each block of X, whose ``y`` are the outputs that are known."""
        check_is_fitted(self)
        y = self._resolve_target(X, y)
        outputs = None if y is None else self._encode_outputs(self._target.encoded(y))
        source = self._open(X, reset=False, y=None if isinstance(X, Source) else outputs)
        if isinstance(X, Source) and outputs is not None:
            source = OutputSource(source, outputs)
        return list(self._executor(source).map_rows(task, source))

    def _resolve_target(self, X: Any, y: Any) -> Any:
        """y, which may be the name of a column of X."""
        return split_target(X, y)[0] if isinstance(y, str) else y

    @abstractmethod
    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of the observed entries of each row, with its known outputs if y is given."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes (of all labels of a row at once), or R^2 of the outputs.

        What is unknown of y, as in ``fit``, does not count.
        """
        check_is_fitted(self)
        y = self._resolve_target(X, self._require_target(y))
        return target_score(self._target, y, self.predict(X), sample_weight)

    @property
    def _is_likelihood(self) -> bool:
        """Whether the objective is the log-likelihood of rows and outputs."""
        return True

    @available_if(_has_likelihood)
    def bic(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Bayesian information criterion of rows with their outputs, the lower the better.

        X=None: of the training data.
        """
        total, weight = self._evidence(X, y, sample_weight)
        return -2 * total + self._n_parameters() * float(np.log(weight))

    @available_if(_has_likelihood)
    def aic(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Akaike information criterion of rows with their outputs, the lower the better."""
        return 2 * self._n_parameters() - 2 * self._evidence(X, y, sample_weight)[0]

    def _evidence(self, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
        """Log-likelihood and weight of rows with their outputs, or of the training data."""
        check_is_fitted(self)
        if X is None:
            if self._total is None:
                raise ValueError("the likelihood of the training rows is not known: give X and y")
            return self._total[:2]
        found = self.score_samples(X, y).astype(float)
        weight = np.ones(len(found)) if sample_weight is None else np.asarray(sample_weight, float)
        return float(weight @ found), float(weight.sum())

    def _n_parameters(self) -> int:
        return self._joint_model().n_free(self._n_columns)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        task = (
            self._target.task if self._task == "auto" and hasattr(self, "_target") else self._task
        )
        tags.target_tags.required = True
        tags.target_tags.multi_output = task in ("multilabel", "regression", "auto")
        tags.classifier_tags = ClassifierTags(multi_label=task == "multilabel")
        tags.regressor_tags = RegressorTags()
        # what an estimator will be that is yet to see y, nobody knows
        kinds = {"auto": None, "regression": "regressor"}
        tags.estimator_type = kinds.get(task, "classifier")
        return tags

    def _check_state(self) -> None:
        if not isinstance(self._target, Target) or not self._fits(self._model(self._n_columns)):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()


def weights_or_ones(weights: Array | None, n_rows: int) -> Array:
    """Weights of the rows; those of another length are refused later, when both are opened."""
    return np.ones(n_rows) if weights is None or len(weights) != n_rows else weights


def _read_weights(X: Any, weight: Any) -> Array | None:
    """Weights of the rows as an array, as far as they can be read; the source will check them."""
    if weight is None:
        return None
    values = np.asarray(split_target(X, weight)[0] if isinstance(weight, str) else weight)
    usable = values.ndim == 1 and values.dtype.kind in "fiub"
    return values.astype(float) if usable and (values >= 0).all() else None
