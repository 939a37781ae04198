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
from mixfold.engine.kept_rows import KeptRows
from mixfold.engine.sources import open_source
from mixfold.estimators.factors.factor_priors import loadings_prior_of, noise_prior_of
from mixfold.estimators.outputs.supervised import SupervisedEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.output_coding import (
    Coding,
    OutputSet,
    learn_output_set,
    learn_score_output,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import (
    SCORE_TASKS,
    TASKS,
    GivenTarget,
    check_counts,
    known_share,
    read_target,
    require_target,
)
from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.math.output_likelihoods import Counts, OrderedProbit
from mixfold.math.softmax import choose, log_shares, normalise
from mixfold.math.symmetric import LOG_2PI
from mixfold.models.factors.factor_starts import FactorStart
from mixfold.models.outputs import gaussian_predictions, joint_posterior, score_outputs
from mixfold.models.outputs.emphasis import Emphasis
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs
from mixfold.models.outputs.gaussian_starts import GaussianStart
from mixfold.models.outputs.model import (
    GaussianModel,
    SupervisedModel,
    SupervisedParams,
    SupervisedReading,
)
from mixfold.models.outputs.score_outputs import ScoreModel, ScoreOutputs, ScoreStart

_NO_OUTPUT_NOISE = (
    "the noise of the outputs reached its floor: the factors explain them wholly; use fewer "
    "n_components, or set output_noise to a number"
)


def _has_probabilities(estimator: Any) -> bool:
    """Whether there are probabilities: of classes or labels."""
    target = getattr(estimator, "_target", None)
    task = estimator.task if target is None else target.task
    if task not in ("regression", "count"):
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has probabilities of classes and labels only, not of numbers "
        f"(task={task!r}); predict(X, return_std=True) tells how sure it is"
    )


class GaussianOutputEstimator(SupervisedEstimator):
    """Base of SupervisedPPCA and SupervisedMixtureOfPPCA, which have a ``fit`` each."""

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "task": (rule.one_of((*TASKS, *SCORE_TASKS)),),
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
    def _joint_model(self) -> Any:
        """The model of rows and outputs, by ``make_gaussian_model`` or ``make_score_model``."""

    @property
    def _has_score(self) -> bool:
        """Whether y is no linear function of the factors but has a likelihood of one."""
        return self.task in SCORE_TASKS

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._has_score:
            return
        if self.output_weight != 1:
            raise ValueError(
                f"output_weight must be 1.0 with task={self.task!r}, whose outputs count once; got "
                f"{self.output_weight!r}. Use task='classification' or 'regression' to stress them"
            )
        if self.task == "ordered" and self.output_noise != "shared":
            raise ValueError(
                "output_noise must be 'shared' with task='ordered', where the noise of the score "
                f"is one by definition; got {self.output_noise!r}. Leave it out"
            )

    def _why_no_stream(self) -> str:
        if not self._has_score:
            return ""
        return (
            f"task={self.task!r}: its steps are tried and taken back by the objective of all rows, "
            "which a stream does not keep. Use fit, which reads files larger than memory and goes "
            "on with warm_start=True"
        )

    def _encode_outputs(self, y: Any) -> Array:
        found = OutputSet(self._target, self._coding).encode(y)
        if self.task == "count":
            check_counts(found)
        return found

    # ------------------------------------------------ y of a fit

    def _learn_outputs(self, given: GivenTarget, classes: Any = None) -> Array:
        """Learn what y is and how it is coded; the outputs (n, L), NaN where unknown.

        A warm start goes on with the parameters of the last fit, in the units of this y.
        """
        last = OutputSet(self._target, self._coding) if hasattr(self, "_params") else None
        weights = given.read_weights()
        y = require_target(self, given.y)
        if self._has_score:
            learned, outputs = learn_score_output(y, self.task, weights)
        else:
            learned, outputs = learn_output_set(
                y, self.task, weights, self.standardize,
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

    def _relearn_outputs(self, kept: KeptRows) -> KeptRows:
        last = OutputSet(self._target, self._coding)
        X, y = kept.with_holes()
        learned, y = last.relearn(y, kept.weight, self.standardize)
        self._coding = learned.coding
        self._take_over(last)
        return kept.replace_rows(X, y, kept.weight)

    # ------------------------------------------------ what a fit publishes

    def _warn_if_no_output_noise(self, model: Any) -> None:
        """Tell, by an event and a warning, if the factors explain the outputs wholly."""
        if self._has_score:
            return
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
        if self.task == "ordered":
            outputs = self._params.outputs
            levels = self._joint_model().outputs.likelihood.bounds(outputs.shape)
            self.thresholds_ = in_dtype(levels[1:-1], self._dtype)
        self.n_outputs_ = self._target.n_outputs

    def _excess(self) -> float:
        """Of counts: their variance is mean + excess mean^2."""
        likelihood = self._joint_model().outputs.likelihood
        return float(likelihood.excess(self._params.outputs.shape))

    def _output_parameters(self, outputs: Any) -> tuple[Array, Array, Array]:
        """Loadings (K, L, d), means and noise (K, L): numbers in their units, classes as coded."""
        if self._has_score:
            noise = np.ones(outputs.means.shape)
            if self.task == "count":
                noise = np.full(outputs.means.shape, self._excess())
            parts = (outputs.loadings, outputs.means, noise)
            return tuple(in_dtype(part, self._dtype) for part in parts)  # type: ignore[return-value]
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

    def _ask_score(self, X: Any, answer: Any, y: Any = None) -> list[Any]:
        """``answer`` of model, reading, latents and shares of components of each block of X."""
        task = partial(_answer_score, answer, *self._joint_reading())
        return self._rows_with_outputs(X, task, y)

    def _count_moments(self, X: Any, y: Any = None) -> tuple[Array, Array]:
        """Mean and variance (n, 1) of the counts of rows."""
        answer = partial(score_outputs.count_moments, excess=self._excess())
        mean, variance = (
            np.concatenate(part) for part in zip(*self._ask_score(X, answer, y), strict=True)
        )
        return mean[:, None], variance[:, None]

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
        if self._has_score:
            mean, variance = self._count_moments(X, y)
            spread = np.sqrt(variance) if return_std else variance
            return self._target.decode(mean), self._target.decode(spread)
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
        if self.task == "count":
            return self._count_moments(X, y)[0]
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
        if self._has_score:
            found = np.concatenate(self._ask_score(X, score_outputs.chances, y))
            return np.asarray(np.log(np.maximum(found, np.finfo(float).tiny)))
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
        if self._has_score:
            seed = int(rng.integers(2**63))
            answer = partial(score_outputs.draw_outputs, rng=np.random.default_rng(seed))
            return X, self._target.decode(np.concatenate(self._ask_score(source, answer))[:, None])
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
        loadings_prior=loadings_prior_of(getattr(estimator, "loadings_prior", None)),
        noise_prior=noise_prior_of(getattr(estimator, "noise_prior", None)),
    )
    outputs = GaussianOutputs(
        weight=estimator._output_count,
        unlabelled=1.0 if chosen is None else chosen.unlabelled,
        each=estimator.output_noise == "each",
        fixed_noise=None if learned else float(estimator.output_noise),
        floor=estimator._output_floor * (float(coding.variances.mean()) or 1.0),
        n_outputs=len(coding.means),
        units=None if estimator._target.task == "classification" else tuple(coding.scale),
        variance=float(coding.variances.mean()) or 1.0,
    )
    start = GaussianStart(coding.means, coding.variances, input_noise, rule=first_shares)
    return GaussianModel(n_components, family, outputs, start=start)


def make_score_model(
    estimator: GaussianOutputEstimator,
    n_components: int,
    n_factors: int,
    first_shares: FactorStart | None = None,
) -> ScoreModel:
    """As ``make_gaussian_model``, for ordered categories and counts."""
    coding = estimator._coding
    held = None if estimator.input_noise is None else float(estimator.input_noise)
    family = FactorFamily(
        floor=max(float(estimator.noise_floor), 1e-14),
        factors=(n_factors,),
        noise=IsotropicNoise(held=held is not None),
        has_missing=estimator._holes,
        expand=False,
    )
    likelihood: Any
    if estimator.task == "ordered":
        likelihood = OrderedProbit(len(coding.codes))
        mean, shape = score_outputs.start_of_categories(coding.prior)
    else:
        learned = isinstance(estimator.output_noise, str)
        likelihood = Counts(None if learned else float(estimator.output_noise))
        mean, shape = score_outputs.start_of_counts(
            float(coding.means[0]), float(coding.variances[0])
        )
        shape = shape if learned else shape[:0]
    start = ScoreStart(mean, coding.variances, held, rule=first_shares, shape=tuple(shape))
    return ScoreModel(n_components, family, ScoreOutputs(likelihood), start=start)


def _answer_score(answer: Any, model: Any, reading: SupervisedReading, block: Block) -> Any:
    seen = joint_posterior.infer_with_outputs(model, reading, block)
    found = answer(model, reading, seen.latent, normalise(seen.log_joint)[1])
    if isinstance(found, tuple):
        return tuple(match_dtype(part, block) for part in found)
    return match_dtype(found, block)


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
