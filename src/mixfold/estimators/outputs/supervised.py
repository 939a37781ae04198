"""What factor models with outputs share: criteria, scores, answers about rows with known y."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.engine.kept_rows import KeptRows, keep_rows
from mixfold.engine.loop import Fit, pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys
from mixfold.engine.schedules import Accumulated, Stepwise
from mixfold.engine.sources.targets import OutputSource
from mixfold.estimators.shell.base import restore_on_error
from mixfold.estimators.shell.fitting import Survey, WarmStart, learn_one_batch
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
    "_kept",
)  # fmt: skip


# steps by all rows that are kept, whenever they have grown enough
_LOOK_STEPS = 30
# of stepwise EM after the rows have become too many to be kept: near a maximum, little is forgotten
_LATE_DECAY = 0.9


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


def _forgetting(schedule: Accumulated) -> Stepwise:
    """Stepwise EM that goes on from sums over all rows so far."""
    if schedule.stats is None:
        return Stepwise()
    mean = schedule.stats.scale(1.0 / schedule.weight)
    return Stepwise(mean, schedule.n_batches, decay=_LATE_DECAY, weight=schedule.weight)


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
    # the rows of a stream, while they are few
    _kept: KeptRows | None = None

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
        """Learn from one more batch; the first one makes the start.

        Each batch is a step of EM by the sums of all batches. While the rows are few, up to about
        a million numbers, they are kept, also in a file, and looked at again as they grow;
        afterwards earlier batches are slowly forgotten.

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
        with restore_on_error(self):
            self._learn_batch(given, classes)
        return self

    def _learn_batch(self, given: GivenTarget, classes: Any) -> None:
        first = not hasattr(self, "_schedule")
        if first:
            source = self._fit_rows(given, classes, first_batch=True)
        else:
            names = "n_components, n_factors or what y is coded by"
            self._check_same_stream(self._model(self._n_columns), names)
            self._check_same_classes(classes)
            outputs = None if given.y is None else self._learn_batch_target(given)
            source = given.open(self, outputs, reset=False)
        earlier = None if first else getattr(self, "_kept", None)
        kept = None
        if first or earlier is not None:
            unknown = self._joint_model().outputs.unknown
            kept = keep_rows(earlier, source, unknown, self._compress_rows)
        schedule: Any = Accumulated() if first else self._schedule
        if kept is None and isinstance(schedule, Accumulated):
            schedule = _forgetting(schedule)
        # a prior of the parameters counts once, against the weight of all rows so far
        model = self._joint_model().for_stream()
        learned = learn_one_batch(self, model, source, schedule, total_weight=None)
        self._kept = kept
        if learned is None:
            return
        if kept is not None and kept.wants_look:
            self._look_again(kept)
        self._publish_batch(learned)

    def _check_same_classes(self, classes: Any) -> None:
        """Refuse classes that are not those of the first call."""
        if classes is None:
            return
        known = self._target.classes
        if self._target.task != "classification" or not np.array_equal(np.unique(classes), known):
            raise ValueError(
                f"classes={list(classes)!r} are not those of the first call of partial_fit, "
                f"{known.tolist()}; leave classes out, or clone the estimator to begin a new stream"
            )

    def _compress_rows(self, kept: KeptRows) -> KeptRows:
        """Fewer rows that say the same to the model, where there are such."""
        return kept

    def _relearn_outputs(self, kept: KeptRows) -> KeptRows:
        """How outputs are coded, by all rows that are kept; parameters and rows in that code."""
        return kept

    def _look_again(self, kept: KeptRows) -> None:
        """Climb from where the stream is by all rows that are kept, and perhaps from a start."""
        kept = self._relearn_outputs(kept)
        source, model = kept.source(), self._joint_model()
        executor, seed = self._executor(source), self._stream[0]
        pilot = draw_pilot(source, executor, pilot_size(source, model.n_components), seed)
        survey = Survey(source, executor, seed, pilot)
        self._holes = survey.has_missing
        model = self._joint_model()
        here = WarmStart(model.change_frame(self._params, pilot))
        found = self._run(model, survey, min(self.max_iter, _LOOK_STEPS), here, resumable=False)
        started = kept.wants_start and kept.n_started > 0
        if started:
            other = self._run(model, survey, self.max_iter, WarmStart(), resumable=False)
            found = other if other.objective > found.objective else found
        self._params = found.params
        stream = model.for_stream()
        visit = partial(stream.expect, stream.prepare(found.params), rng=RowKeys(seed, 0))
        stats = stream.additive(executor.map_reduce(visit, source))
        self._schedule = replace(self._schedule, stats=stats, weight=stream.row_weight(stats))
        self._kept = kept.after_look(started or kept.n_started == 0)

    @abstractmethod
    def _run(
        self,
        model: Any,
        survey: Survey,
        max_iter: int,
        warm: WarmStart,
        *,
        resumable: bool = True,
    ) -> Fit:
        """The climb of a fit of these rows, from a start of its own or a warm one."""

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

    def _log_predictive(self, X: Any, y: Any) -> Array:
        """ln p(known outputs | row) of each row, (n,); NaN where none is known."""
        encoded = self._target.encode(read_target(X, require_target(self, y)))
        return self._log_known_outputs(X, y, encoded)

    def _log_known_outputs(self, X: Any, y: Any, encoded: Array) -> Array:
        """The same of outputs as ``Target.encode`` gives them: here of classes."""
        logs = np.asarray(self.predict_log_proba(X), float)
        found = logs[np.arange(len(logs)), np.maximum(encoded, 0)]
        return np.where(encoded >= 0, found, np.nan)

    def _squared_errors(self, X: Any, y: Any) -> Array | None:
        """Of numbers, mean over the known outputs of a row (n,), NaN where none is known."""
        return None

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
        kept = self._kept
        if kept is not None:
            wide = self._joint_model().outputs.unknown(1)
            if kept.X.shape[1] != self._n_columns or kept.y.shape[1:] != wide.shape[1:]:
                raise ValueError("rows of a stream of another shape than the settings declare")
            if not isinstance(getattr(self, "_schedule", None), Accumulated):
                raise ValueError("rows of a stream without the sums over them")
        self._publish_params()
