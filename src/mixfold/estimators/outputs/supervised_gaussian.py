"""Factor models with Gaussian outputs: their model, and what is predicted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Event
from mixfold.engine.sources import open_source
from mixfold.estimators.outputs.supervised import SupervisedEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.output_coding import Coding, OutputSet, learn_output_set
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import (
    TASKS,
    GivenTarget,
    known_share,
    read_target,
    require_target,
)
from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.math.softmax import choose, log_shares, normalise
from mixfold.math.symmetric import LOG_2PI
from mixfold.models.factors.factor_starts import FactorStart
from mixfold.models.outputs import gaussian_predictions, joint_posterior
from mixfold.models.outputs.emphasis import Emphasis
from mixfold.models.outputs.gaussian_outputs import GaussianOutputParams, GaussianOutputs
from mixfold.models.outputs.gaussian_starts import GaussianStart
from mixfold.models.outputs.model import (
    GaussianModel,
    SupervisedModel,
    SupervisedParams,
    SupervisedReading,
)

_NO_OUTPUT_NOISE = (
    "the noise of the outputs reached its floor: the factors explain them wholly; use fewer "
    "n_components, or set output_noise to a number"
)


def _has_probabilities(estimator: Any) -> bool:
    """Whether there are probabilities: of classes or labels."""
    target = getattr(estimator, "_target", None)
    task = estimator.task if target is None else target.task
    if task != "regression":
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has probabilities of classes and labels only, not of numbers "
        "(task='regression'); predict(X, return_std=True) tells how sure it is"
    )


class GaussianOutputEstimator(SupervisedEstimator):
    """Base of SupervisedPPCA and SupervisedMixtureOfPPCA, which have a ``fit`` each."""

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "task": (rule.one_of(TASKS),),
        "output_noise": (rule.one_of(["shared", "each"]), rule.number(0, open_end=True)),
        "input_noise": (rule.nothing(), rule.number(0, open_end=True)),
        "output_weight": (rule.number(0, open_end=True),),
        "coding": (rule.one_of(["contrast", "one-of-c"]),),
        "standardize": (rule.one_of(["auto"]), rule.boolean()),
    }
    _stored: ClassVar[tuple[str, ...]] = (*SupervisedEstimator._stored, "_coding", "_known_weight")

    # the least noise of the outputs, of their mean variance
    _output_floor: ClassVar[float] = 1e-10
    # how y is coded, and the weight of the rows of a stream of which it is known
    _coding: Coding
    _known_weight: float
    # what output_weight='auto' chose in the last fit; None if a number is set
    _emphasis: Emphasis | None = None

    @abstractmethod
    def _joint_model(self) -> GaussianModel:
        """The model of rows and outputs, by ``make_gaussian_model``."""

    def _encode_outputs(self, y: Any) -> Array:
        return OutputSet(self._target, self._coding).encode(y)

    # ------------------------------------------------ y of a fit

    def _learn_outputs(self, given: GivenTarget, classes: Any = None) -> Array:
        """Learn what y is and how it is coded; the outputs (n, L), NaN where unknown.

        A warm start goes on with the parameters of the last fit, in the units of this y.
        """
        last = OutputSet(self._target, self._coding) if hasattr(self, "_params") else None
        weights = given.read_weights()
        learned, outputs = learn_output_set(
            require_target(self, given.y), self.task, weights, self.standardize,
            plain_codes=self.coding == "one-of-c", classes=classes,
        )  # fmt: skip
        self._target, self._coding = learned.target, learned.coding
        self._labelled = known_share(outputs, weights)
        self._known_weight = learned.count_known(outputs, weights)
        if self.warm_start and last is not None:
            self._take_over(last)
        return outputs

    def _take_over(self, last: OutputSet) -> None:
        """Parameters of the last fit in the units of the new y; forgotten if y is another."""
        old, new = last.coding, self._coding
        if not last.target.is_same(self._target) or not np.array_equal(old.codes, new.codes):
            del self._params
            return
        ratio, shift = old.scale / new.scale, (old.center - new.center) / new.scale
        if (ratio != 1).any() or shift.any():
            outputs = self._joint_model().outputs.rescaled(self._params.outputs, ratio, shift)
            self._params = replace(self._params, outputs=outputs)

    def _learn_batch_target(self, given: GivenTarget) -> Array:
        now, weights = OutputSet(self._target, self._coding), given.read_weights()
        encoded = self._target.encode(given.y)
        self._coding = now.follow(encoded, weights, self._known_weight).coding
        self._known_weight += now.count_known(encoded, weights)
        return now.code(encoded)

    # ------------------------------------------------ what a fit publishes

    def _warn_if_no_output_noise(self, model: GaussianModel) -> None:
        """Tell, by an event and a warning, if the factors explain the outputs wholly."""
        noise, floor = self._params.outputs.noise, model.outputs.floor
        if isinstance(self.output_noise, str) and (noise <= floor * (1 + 1e-9)).any():
            self.events_.append(Event("floor", _NO_OUTPUT_NOISE, self.n_iter_))
            # components with one class each are what one hopes for, and output_weight='auto' has
            # looked at labels that were held out
            if model.n_components == 1 and getattr(self, "_emphasis", None) is None:
                warn(f"{_NO_OUTPUT_NOISE}; see events_", DegenerateWarning)

    def _publish_target(self) -> None:
        """The attributes that say what y was."""
        if self._target.task != "regression":
            self.classes_ = self._target.classes
        self.n_outputs_ = self._target.n_outputs

    def _output_parameters(self, outputs: GaussianOutputParams) -> tuple[Array, Array, Array]:
        """Loadings (K, L, d), means and noise (K, L): numbers in their units, classes as coded."""
        coding = self._coding
        scale = coding.scale if self._target.task != "classification" else np.ones(1)
        shift = coding.center if self._target.task != "classification" else np.zeros(1)
        scales = np.broadcast_to(scale, outputs.means.shape)
        return (
            in_dtype(outputs.loadings * scales[..., None], self._dtype),
            in_dtype(outputs.means * scale + shift, self._dtype),
            in_dtype(outputs.noise * scale**2, self._dtype),
        )

    # ------------------------------------------------ asking

    def _canonical_joint(self) -> SupervisedParams:
        return joint_posterior.canonical(self._joint_model(), self._params)

    @property
    def _is_likelihood(self) -> bool:
        chosen = self._emphasis
        if chosen is None:
            return self._output_count == 1
        return chosen.weight == chosen.unlabelled == 1

    @property
    def _output_count(self) -> float:
        """The power of p(y | z); what 'auto' chooses is the noise of the columns beside it."""
        return 1.0 if self.output_weight == "auto" else float(self.output_weight)

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of the observed entries of each row, with its known outputs if y is given."""
        if y is None:
            return self._ask(X, predictions.log_density)
        task = partial(_log_density, *self._joint_reading())
        return np.concatenate(self._rows_with_outputs(X, task, y))

    def _predictive(self, X: Any, answer: Any, y: Any = None) -> list[Any]:
        """``answer`` of what is predicted of each block of X."""
        task = partial(_answer_block, answer, *self._joint_reading())
        return self._rows_with_outputs(X, task, y)

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, y: Any = None
    ) -> Any:
        """Classes, labels or numbers of the rows, in the form in which y was given to ``fit``.

        Parameters
        ----------
        X : as in ``fit``
        return_std, return_cov : bool, default=False
            Regression: also give how far off it may be, noise included.
        y : as in ``fit``, optional
            What is known of the outputs, NaN elsewhere: the others are predicted from it too.
            Classes and labels that are known stay as they are; for numbers that are known there
            is what another measurement of them is expected to be.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the same shape, only with ``return_std``
        cov : ndarray of shape (n_samples, n_outputs, n_outputs), only with ``return_cov``
            Of y in one dimension: variances of shape (n_samples,).
        """
        check_is_fitted(self)
        if not (return_std or return_cov):
            return self._target.decode(self._predict_codes(X, y))
        if self._target.task != "regression":
            raise ValueError(
                "return_std and return_cov are for regression; predict_proba tells how sure a "
                "class or label is"
            )
        answer = _with_spread if return_std else _with_covariance
        mean, spread = (np.concatenate(part) for part in zip(*self._predictive(X, answer, y),
                                                             strict=True))  # fmt: skip
        scale, flat = self._coding.scale, self._target.flat
        mean = self._target.decode(self._unscale_outputs(mean))
        if return_std:
            return mean, self._target.decode(spread * scale)
        spread = spread * np.outer(scale, scale)
        return mean, spread[:, 0, 0] if flat else spread

    def _unscale_outputs(self, outputs: Array) -> Array:
        out = outputs * self._coding.scale + self._coding.center
        return np.where(self._coding.seen, out, np.nan)

    def _predict_codes(self, X: Any, y: Any = None) -> Array:
        if self._target.task == "regression":
            return self._unscale_outputs(np.concatenate(self._predictive(X, _expected_outputs, y)))
        found: Array
        if self._target.task == "classification":
            found = self._class_scores(X, y).argmax(axis=1)
        else:
            found = (self._label_probabilities(X, y) > 0.5).astype(np.int64)
        if y is None:
            return found
        known = self._target.encode(read_target(X, y))
        return np.where(known >= 0, known, found).astype(np.int64)  # (NaN is not >= 0)

    def _class_scores(self, X: Any, y: Any = None) -> Array:
        """ln P(class | row) (n, C)."""
        coding, params = self._coding, self._canonical_joint()
        # outputs are codes: each is as frequent as its class, not as a normal has it
        # (a class that a stream has not shown yet has no rows)
        prior = np.log(np.maximum(coding.prior, np.finfo(float).tiny))
        answer: Any
        if self._emphasis is None:
            prior = prior - gaussian_predictions.prior_densities(params, coding.codes)
            answer = partial(_class_log_probabilities, coding.codes, prior)
        else:
            answer = partial(
                _calibrated_log_probabilities, coding.codes, prior, params, self._emphasis
            )
        return np.concatenate(self._predictive(X, answer, y))

    def _log_known_outputs(self, X: Any, y: Any, encoded: Array) -> Array:
        if self._target.task == "classification":
            return super()._log_known_outputs(X, y, encoded)
        known = ~np.isnan(encoded)
        if self._target.task == "multilabel":
            chances = np.asarray(self._label_probabilities(X), float)
            right = np.where(encoded == 1, chances, 1.0 - chances)
            logs = np.log(np.maximum(right, np.finfo(float).tiny))
            total = np.where(known, logs, 0.0).sum(axis=1)
        elif self._output_count == 1:
            total = np.asarray(self.score_samples(X, y), float) - self.score_samples(X)
        else:
            # p(y | z)^weight is no density: a normal law of what is predicted
            mean, spread = (
                np.concatenate(part)
                for part in zip(*self._predictive(X, _with_covariance), strict=True)
            )
            units = self._coding.scale
            away = encoded - (mean * units + self._coding.center)
            total = _log_normal(away, spread * np.outer(units, units))
        return np.where(known.any(axis=1), total, np.nan)

    def _squared_errors(self, X: Any, y: Any) -> Array | None:
        if self._target.task != "regression":
            return None
        encoded = self._target.encode(read_target(X, y))
        found = np.asarray(self._predict_codes(X), float)
        squares = ((encoded - found) / self._coding.scale) ** 2
        known = ~np.isnan(encoded)
        total = np.where(known, squares, 0.0).sum(axis=1)
        return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)

    def _label_probabilities(self, X: Any, y: Any = None) -> Array:
        level = (0.5 - self._coding.center) / self._coding.scale
        found = np.concatenate(self._predictive(X, partial(_above, level), y))
        return np.where(self._coding.seen, found, np.nan)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (n_samples, n_classes), or of labels being 1.

        A class is judged by the density that the model has for the row and the code of the class,
        in which codes are as frequent as the classes were; a label by the probability that its
        output is more than one half.
        """
        check_is_fitted(self)
        if self._target.task == "classification":
            return np.exp(self._class_scores(X))
        return self._label_probabilities(X)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``."""
        check_is_fitted(self)
        if self._target.task == "classification":
            return self._class_scores(X)
        return np.log(np.maximum(self._label_probabilities(X), np.finfo(float).tiny))

    @available_if(_has_probabilities)
    def decision_function(self, X: Any) -> Array:
        """Log-odds (n_samples,) of the second of two classes, else log-probabilities of each.

        Of labels: by how much the expected output exceeds one half, (n_samples, n_labels).
        """
        check_is_fitted(self)
        if self._target.task == "multilabel":
            return (
                self._unscale_outputs(np.concatenate(self._predictive(X, _expected_outputs))) - 0.5
            )
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows with their outputs.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray
            Drawn given the rows, in the form in which y was given to ``fit``.
        """
        rng = self._generator(n_samples, random_state)
        model = self._model(self._n_columns)
        X = in_dtype(
            model.sample(joint_posterior.take_columns(self._params), n_samples, rng)[0], self._dtype
        )
        source = open_source(X)
        task = self._target.task
        if task == "classification":
            chosen = choose(np.exp(self._class_scores(source)), rng.random(n_samples))
            return X, self._target.decode(chosen)
        if task == "multilabel":
            chances = self._label_probabilities(source)
            return X, self._target.decode((rng.random(chances.shape) < chances).astype(np.int64))
        parts = self._predictive(source, _with_covariance)
        mean, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
        normals = rng.normal(size=mean.shape)
        drawn = mean + (np.linalg.cholesky(spread) @ normals[..., None])[..., 0]
        return X, self._target.decode(self._unscale_outputs(drawn))


def _log_normal(away: Array, spread: Array) -> Array:
    """Log density (n,) of the known entries of differences (n, L) with covariances (n, L, L)."""
    out = np.zeros(len(away))
    for row, (difference, covariance) in enumerate(zip(away, spread, strict=True)):
        known = ~np.isnan(difference)
        part = covariance[np.ix_(known, known)]
        solved = np.linalg.solve(part, difference[known])
        size = known.sum() * LOG_2PI + np.linalg.slogdet(part)[1]
        out[row] = -0.5 * (size + difference[known] @ solved)
    return out


def make_gaussian_model(
    estimator: GaussianOutputEstimator,
    n_components: int,
    n_factors: int,
    first_shares: FactorStart | None = None,
) -> GaussianModel:
    """The model of an estimator, by its parameters and by what it knows of y and of the rows.

    ``first_shares`` is the rule by which rows are shared among several components at first.
    """
    coding, learned = estimator._coding, isinstance(estimator.output_noise, str)
    input_noise = None if estimator.input_noise is None else float(estimator.input_noise)
    chosen = estimator._emphasis
    if chosen is not None:
        input_noise = chosen.input_noise
    family = FactorFamily(
        floor=max(float(estimator.noise_floor), 1e-14),
        factors=(n_factors,),
        noise=IsotropicNoise(held=input_noise is not None),
        has_missing=estimator._holes,
        expand=False,
    )
    outputs = GaussianOutputs(
        weight=estimator._output_count,
        unlabelled=1.0 if chosen is None else chosen.unlabelled,
        each=estimator.output_noise == "each",
        fixed_noise=None if learned else float(estimator.output_noise),
        floor=estimator._output_floor * (float(coding.variances.mean()) or 1.0),
        n_outputs=len(coding.means),
        units=None if estimator._target.task == "classification" else tuple(coding.scale),
    )
    start = GaussianStart(coding.means, coding.variances, input_noise, rule=first_shares)
    return GaussianModel(n_components, family, outputs, start=start)


def _log_density(model: SupervisedModel, reading: SupervisedReading, block: Block) -> Array:
    return match_dtype(
        normalise(joint_posterior.infer_with_outputs(model, reading, block).log_joint)[0], block
    )


def _answer_block(
    answer: Any, model: SupervisedModel, reading: SupervisedReading, block: Block
) -> Any:
    return answer(gaussian_predictions.predictive(model, reading, block), block)


def _expected_outputs(rows: gaussian_predictions.Predictive, block: Block) -> Array:
    return match_dtype(rows.expected, block)


def _with_spread(rows: gaussian_predictions.Predictive, block: Block) -> tuple[Array, Array]:
    return match_dtype(rows.expected, block), match_dtype(np.sqrt(rows.variances()), block)


def _with_covariance(rows: gaussian_predictions.Predictive, block: Block) -> tuple[Array, Array]:
    return match_dtype(rows.expected, block), match_dtype(rows.covariances(), block)


def _above(level: Array, rows: gaussian_predictions.Predictive, block: Block) -> Array:
    return match_dtype(rows.above(level), block)


def _class_log_probabilities(
    codes: Array, prior: Array, rows: gaussian_predictions.Predictive, block: Block
) -> Array:
    scores = gaussian_predictions.code_densities(rows, codes) + prior
    return log_shares(scores)


def _calibrated_log_probabilities(
    codes: Array,
    prior: Array,
    params: SupervisedParams,
    chosen: Emphasis,
    rows: gaussian_predictions.Predictive,
    block: Block,
) -> Array:
    slope, intercept = gaussian_predictions.code_discriminants(rows, params, codes)
    return log_shares(prior + chosen.slope * slope + chosen.intercept * intercept)
