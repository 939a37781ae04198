"""What factor models with outputs share: criteria, scores, answers about rows with known y."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.engine.loop import Fit
from mixfold.engine.schedules import Stepwise
from mixfold.engine.sources.targets import OutputSource
from mixfold.estimators.shell.fitting import learn_one_batch
from mixfold.estimators.shell.latents import LatentEstimator
from mixfold.estimators.shell.targets import (
    GivenTarget,
    Target,
    find_target,
    read_target,
    require_target,
    score_predictions,
    tag_target,
)
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.models.outputs import joint_posterior
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams, SupervisedReading

STORED = (
    "_params", "_holes", "_target", "_total", "_labelled", "converged_", "stop_reason_", "n_iter_",
    "n_passes_", "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
)  # fmt: skip


def _has_likelihood(estimator: Any) -> bool:
    """Whether there are criteria of information."""
    if estimator._is_likelihood:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with these settings maximises no likelihood (outputs count "
        "more, or less, than once), so that information criteria mean nothing"
    )


def _can_stream(estimator: Any) -> bool:
    """Whether these settings can learn batch by batch."""
    reason = estimator._why_no_stream()
    if not reason:
        return True
    raise AttributeError(f"{type(estimator).__name__} has no partial_fit with {reason}")


class SupervisedEstimator(LatentEstimator):
    """Base of MixtureOfFactorModels, SupervisedPPCA and SupervisedMixtureOfPPCA.

    Each of them has its own ``fit``, which learns what y is (``_target``) and how much of it is
    known (``_labelled``), and says which model is fitted (``_joint_model``). Here is what is asked
    of rows with known outputs.
    """

    _stored: ClassVar[tuple[str, ...]] = STORED
    # what y may be: a parameter, or the same for all estimators of a class
    task: str
    # what y was, the share of rows that have it, and whether rows lack entries
    _target: Target
    # share of the rows whose outputs are known, by weight
    _labelled: float
    _holes: bool = False
    _params: SupervisedParams

    @abstractmethod
    def _joint_model(self) -> SupervisedModel:
        """The model of rows and outputs; its family does not expand, as outputs move with latents.

        What y is, and whether rows lack entries, is known.
        """

    @abstractmethod
    def _canonical_joint(self) -> SupervisedParams:
        """The parameters in the latent coordinates in which all answers are given."""

    @abstractmethod
    def _encode_outputs(self, y: Any) -> Array:
        """``Block.y`` of y as in a fit."""

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Outputs of the rows, in the form in which y was given."""

    def _model(self, n_features: int) -> Mixture:
        """The mixture that is left where outputs are not looked at."""
        model = self._joint_model()
        return Mixture(model.n_components, model.family)

    @property
    def _tolerance(self) -> float:
        """``tol`` per labelled row: what labels gain must be seen beside what all columns gain."""
        return float(self.tol) * (self._labelled or 1.0)

    # ------------------------------------------------ streams

    @available_if(_can_stream)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from one more batch (stepwise EM); the first one makes the start.

        Parameters
        ----------
        X : as in ``fit``
            Batches may have any size after the first, which needs more rows than there are
            factors and components; make it a typical one. What y is (its classes, its columns,
            their units) is learned from the first batch.
        y : as in ``fit``
            After the first batch None if nothing is known of the rows.
        classes : array-like, optional
            All classes that may come; needed in the first call unless its rows have all of them.
        sample_weight : as in ``fit``

        Returns
        -------
        self
        """
        self._check_parameters()
        given = find_target(X, y, sample_weight)
        first = not hasattr(self, "_schedule")
        if first:
            source = self._fit_rows(given, classes, first_batch=True)
        else:
            names = "n_components, n_factors or what y is coded by"
            self._check_same_stream(self._model(self._n_columns), names)
            outputs = None if given.y is None else self._learn_batch_target(given)
            source = given.open(self, outputs, reset=False)
        model = self._joint_model().for_stream()
        schedule = Stepwise() if first else self._schedule
        # a prior of the parameters counts once, against the weight of all rows so far
        learned = learn_one_batch(self, model, source, schedule, total_weight=None)
        if learned is not None:
            self._publish_batch(learned)
        return self

    @abstractmethod
    def _fit_rows(
        self, given: GivenTarget, classes: Any = None, first_batch: bool = False
    ) -> Source:
        """Fit the rows and publish; a first batch gets few steps. Returns the opened rows."""

    def _why_no_stream(self) -> str:
        """The settings whose steps cannot be made batch by batch, and why; empty if they can."""
        return ""

    def _learn_batch_target(self, given: GivenTarget) -> Array:
        """``Block.y`` of a batch after the first."""
        return self._encode_outputs(given.y)

    # ------------------------------------------------ asking

    def _canonical(self) -> MixtureParams:
        return joint_posterior.take_columns(self._canonical_joint())

    def _joint_reading(self) -> tuple[Any, SupervisedReading]:
        """The model of rows and outputs, ready to answer."""
        check_is_fitted(self)
        model = self._joint_model()
        return model, model.prepare(self._canonical_joint())

    def _rows_with_outputs(self, X: Any, task: Any, y: Any = None) -> list[Any]:
        """``task(block)`` of each block of X, whose ``y`` are the outputs that are known."""
        check_is_fitted(self)
        y = read_target(X, y)
        outputs = None if y is None else self._encode_outputs(y)
        if outputs is not None and isinstance(X, Source):
            X, outputs = OutputSource(X, outputs), None
        return list(self._rows(X, task, y=outputs))

    @abstractmethod
    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of the observed entries of each row, with its known outputs if y is given."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes (of all labels of a row at once), or R^2 of the outputs.

        What is unknown of y, as in ``fit``, does not count.
        """
        check_is_fitted(self)
        y = read_target(X, require_target(self, y))
        return score_predictions(self._target, y, self.predict(X), sample_weight)

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
        """Of the factors in use: the others are not part of the model that was found."""
        model = self._joint_model()
        used = int(model.used_factors(self._params).any(axis=0).sum())
        if used < model.family.size:
            model = replace(model, family=replace(model.family, factors=(used,)))
        return model.n_free(self._n_columns)

    def _settle(self, model: Any, result: Fit) -> Fit:
        """The fit without the factors that a prior of the loadings has made vanish."""
        return replace(result, params=model.without_unused(result.params))

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learned = self._target.task if hasattr(self, "_target") else "auto"
        return tag_target(tags, learned if self.task == "auto" else self.task)

    def _check_state(self) -> None:
        if not isinstance(self._target, Target) or not self._fits(self._model(self._n_columns)):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()
