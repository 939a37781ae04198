"""The shell of factor models with outputs: y in any form, and everything asked of x alone."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import OutputSource, sides_beside, split_target
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.estimators.shell.latents import LatentEstimator
from mixfold.estimators.shell.target_scores import target_score
from mixfold.estimators.shell.targets import Target, learned
from mixfold.families.factor import FactorFamily
from mixfold.math.softmax import normalise
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


def _of_likelihood(estimator: Any) -> bool:
    """Whether there are criteria of information."""
    if estimator._is_likelihood:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with these settings maximises no likelihood (outputs count "
        "more, or less, than once), so that information criteria mean nothing"
    )


class SupervisedEstimator(LatentEstimator):
    """Base of factor models with outputs.

    A subclass says which model is fitted (``_joint``), what its columns are (``_family``), how
    many components it has (``_n_mixed``), what y may be (``_task``), how encoded targets become
    ``Block.y`` (``_outputs``), and predicts (``_predicted``).
    """

    _stored: ClassVar[tuple[str, ...]] = STORED
    # steps are not extrapolated, and each fit begins anew
    acceleration: str | None = None
    warm_start = False

    @property
    @abstractmethod
    def _n_mixed(self) -> int:
        """Number of components K."""

    @property
    @abstractmethod
    def _task(self) -> str:
        """'auto', or one of 'classification', 'multilabel', 'regression'."""

    @abstractmethod
    def _family(self) -> FactorFamily:
        """Of the columns; ``expand=False``, since the outputs move with the latents."""

    @abstractmethod
    def _joint(self, n_features: int) -> SupervisedModel:
        """The model that is fitted; ``_target`` and ``_labelled`` are known."""

    @abstractmethod
    def _predicted(self, X: Any) -> Array:
        """Class numbers (n,), or outputs (n, L)."""

    def _outputs(self, encoded: Array) -> Array:
        """``Block.y`` of encoded targets (``Target.encoded``)."""
        return encoded

    @property
    def _size(self) -> int:
        return self._n_mixed

    def _model(self, n_features: int) -> Mixture:
        """The mixture that is left where outputs are not looked at."""
        return Mixture(self._n_mixed, self._family())

    def _fits(self, model: Mixture) -> bool:
        components = self._params.components
        return bool(components.loadings.shape[:2] == (self._n_mixed, self._n_columns))

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Classes, labels or numbers. NaN and None are unknown, and so is -1 among classes and
            labels that are integers. For tables and files also the name of a column, which is
            then not a feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._fit(self._training_source(X, y, sample_weight))
        return self

    def _training_source(self, X: Any, y: Any, weight: Any) -> Source:
        columns, weights = None, _weights(X, weight)
        if isinstance(y, str):
            y, columns = split_target(X, y, weight)
        elif isinstance(X, Source):
            beside = sides_beside(X)
            y, weights = beside.y if y is None else y, beside.weight
        outputs = self._learned_outputs(self._required(y), weights)
        if columns is not None:
            X = open_source(X, columns=columns, weight=weight, y=outputs)
            return self._open(X, reset=True, min_rows=2)
        if isinstance(X, Source):
            return OutputSource(self._open(X, reset=True, weight=weight, min_rows=2), outputs)
        return self._open(X, reset=True, weight=weight, y=outputs, min_rows=2)

    def _required(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None; rows without a label are marked in y (-1, or NaN)"
            )
        return y

    def _learned_outputs(self, y: Any, weight: Array | None) -> Array:
        """``Block.y``, once it is known what y is."""
        self._target, encoded = learned(y, self._task, weight)
        if weight is None or len(weight) != len(encoded):  # which is told when both are opened
            weight = np.ones(len(encoded))
        known = encoded >= 0 if encoded.ndim == 1 else ~np.isnan(encoded).all(axis=1)
        self._labelled = float(weight @ known / weight.sum())
        self._learn_scale(encoded, weight)
        return self._outputs(encoded)

    def _learn_scale(self, encoded: Array, weight: Array) -> None:
        """What ``_outputs`` has to know of all targets before the fit; by default nothing."""

    def _fit(self, source: Source, max_iter: int | None = None) -> Fit:
        executor, seed, pilot = self._survey(source)
        model: Any = self._joint(source.n_features)
        result = self._climbed(model, source, executor, pilot, self._plan(seed, max_iter))
        self._keep(result, source, seed, quiet=max_iter is not None)
        return result

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return Plan(
            # what the labels gain must be seen beside what all the columns gain
            tol=self.tol * (self._labelled or 1.0),
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=self.n_init,
            n_candidates=1,
            time_budget=self.time_budget,
            seed=seed,
        )

    # ------------------------------------------------ asking

    _params: SupervisedParams

    def _turned(self) -> SupervisedParams:
        """The parameters in the latent coordinates in which all answers are given."""
        return use.canonical(self._joint(self._n_columns), self._params)

    def _canonical(self) -> MixtureParams:
        return use.of_inputs(self._turned())

    def _joint_reading(self) -> tuple[SupervisedModel, SupervisedReading]:
        check_is_fitted(self)
        model = self._joint(self._n_columns)
        return model, model.prepare(self._turned())

    def _with_rows(self, X: Any, task: Any, y: Any = None, weight: Any = None) -> list[Any]:
        """``task(block)`` of each block of X, whose ``y`` are the outputs that are known."""
        check_is_fitted(self)
        y = self._asked_target(X, y)
        outputs = None if y is None else self._outputs(self._target.encoded(y))
        source = self._open(X, reset=False, y=None if isinstance(X, Source) else outputs,
                            weight=weight)  # fmt: skip
        if isinstance(X, Source) and outputs is not None:
            source = OutputSource(source, outputs)
        return list(self._executor(source).map_rows(task, source))

    def _asked_target(self, X: Any, y: Any) -> Any:
        """y, which may be the name of a column of X."""
        return split_target(X, y)[0] if isinstance(y, str) else y

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of the observed entries of each row, with its known outputs if y is given."""
        if y is None:
            return super().score_samples(X)
        model, reading = self._joint_reading()
        return np.concatenate(self._with_rows(X, partial(_log_density, model, reading), y))

    def predict(self, X: Any) -> Array:
        """The class, labels (0 or 1) or outputs of each row, in the form in which y was given."""
        check_is_fitted(self)
        return self._target.decoded(self._predicted(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes (of all labels of a row at once), or R^2 of the outputs.

        What is unknown of y, as in ``fit``, does not count.
        """
        check_is_fitted(self)
        y = self._asked_target(X, self._required(y))
        return target_score(self._target, y, self.predict(X), sample_weight)

    @property
    def _is_likelihood(self) -> bool:
        """Whether the objective is the log-likelihood of rows and outputs."""
        return True

    @available_if(_of_likelihood)
    def bic(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Bayesian information criterion of rows with their outputs, the lower the better.

        X=None: of the training data.
        """
        total, weight = self._evidence(X, y, sample_weight)
        return -2 * total + self._n_parameters() * float(np.log(weight))

    @available_if(_of_likelihood)
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
        return self._joint(self._n_columns).n_free(self._n_columns)

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


def _log_density(model: SupervisedModel, reading: SupervisedReading, block: Block) -> Array:
    return shaped(normalise(use.with_outputs(model, reading, block).log_joint)[0], block)


def _weights(X: Any, weight: Any) -> Array | None:
    """Weights of the rows as an array, as far as they can be read; the source will check them."""
    if weight is None:
        return None
    values = np.asarray(split_target(X, weight)[0] if isinstance(weight, str) else weight)
    usable = values.ndim == 1 and values.dtype.kind in "fiub"
    return values.astype(float) if usable and (values >= 0).all() else None
