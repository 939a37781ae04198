"""The shell of Gaussian outputs as far as they are predicted: classes, labels and numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.sources import open_source
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.outputs.supervised import SupervisedEstimator
from mixfold.estimators.shell.output_coding import Coding
from mixfold.math.softmax import choose, normalise
from mixfold.models.outputs import gaussian_use, use
from mixfold.models.outputs.model import SupervisedModel, SupervisedReading


def _of_classes(estimator: Any) -> bool:
    """Whether there are probabilities: of classes or labels."""
    target = getattr(estimator, "_target", None)
    task = estimator.task if target is None else target.task
    if task != "regression":
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has probabilities of classes and labels only, not of numbers "
        "(task='regression'); predict(X, return_std=True) tells how sure it is"
    )


class OutputPredictions(SupervisedEstimator):
    """Base of estimators with Gaussian outputs: what is predicted, and how surely."""

    _coding: Coding

    def _predictive(self, X: Any, answer: Any, y: Any = None) -> list[Any]:
        return self._with_rows(X, partial(_answered, answer, *self._joint_reading()), y)

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
            return self._target.decoded(self._predicted(X, y))
        if self._target.task != "regression":
            raise ValueError(
                "return_std and return_cov are for regression; predict_proba tells how sure a "
                "class or label is"
            )
        answer = _with_spread if return_std else _with_covariance
        mean, spread = (np.concatenate(part) for part in zip(*self._predictive(X, answer, y),
                                                             strict=True))  # fmt: skip
        scale, flat = self._coding.scale, self._target.flat
        mean = self._target.decoded(self._unscaled(mean))
        if return_std:
            return mean, self._target.decoded(spread * scale)
        spread = spread * np.outer(scale, scale)
        return mean, spread[:, 0, 0] if flat else spread

    def _unscaled(self, outputs: Array) -> Array:
        out = outputs * self._coding.scale + self._coding.center
        return np.where(self._coding.seen, out, np.nan)

    def _predicted(self, X: Any, y: Any = None) -> Array:
        if self._target.task == "regression":
            return self._unscaled(np.concatenate(self._predictive(X, _expected, y)))
        if self._target.task == "classification":
            found = self._class_scores(X, y).argmax(axis=1)
        else:
            found = (self._label_probabilities(X, y) > 0.5).astype(np.int64)
        if y is None:
            return found
        known = self._target.encoded(self._asked_target(X, y))
        return np.where(known >= 0, known, found).astype(np.int64)  # (NaN is not >= 0)

    def _class_scores(self, X: Any, y: Any = None) -> Array:
        """ln P(class | row) (n, C)."""
        coding = self._coding
        # outputs are codes: each is as frequent as its class, not as a normal has it
        prior = np.log(coding.prior) - gaussian_use.prior_densities(self._turned(), coding.codes)
        answer = partial(_class_log_probabilities, coding.codes, prior)
        return np.concatenate(self._predictive(X, answer, y))

    def _label_probabilities(self, X: Any, y: Any = None) -> Array:
        level = (0.5 - self._coding.center) / self._coding.scale
        found = np.concatenate(self._predictive(X, partial(_above, level), y))
        return np.where(self._coding.seen, found, np.nan)

    @available_if(_of_classes)
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

    @available_if(_of_classes)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``."""
        check_is_fitted(self)
        if self._target.task == "classification":
            return self._class_scores(X)
        return np.log(np.maximum(self._label_probabilities(X), np.finfo(float).tiny))

    @available_if(_of_classes)
    def decision_function(self, X: Any) -> Array:
        """Log-odds (n_samples,) of the second of two classes, else log-probabilities of each.

        Of labels: by how much the expected output exceeds one half, (n_samples, n_labels).
        """
        check_is_fitted(self)
        if self._target.task == "multilabel":
            return self._unscaled(np.concatenate(self._predictive(X, _expected))) - 0.5
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
        X = model.sample(use.of_inputs(self._params), n_samples, rng)[0].astype(self._dtype)
        source = open_source(X)
        task = self._target.task
        if task == "classification":
            chosen = choose(np.exp(self._class_scores(source)), rng.random(n_samples))
            return X, self._target.decoded(chosen)
        if task == "multilabel":
            chances = self._label_probabilities(source)
            return X, self._target.decoded((rng.random(chances.shape) < chances).astype(np.int64))
        parts = self._predictive(source, _with_covariance)
        mean, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
        normals = rng.normal(size=mean.shape)
        drawn = mean + (np.linalg.cholesky(spread) @ normals[..., None])[..., 0]
        return X, self._target.decoded(self._unscaled(drawn))


def _answered(answer: Any, model: SupervisedModel, reading: SupervisedReading, block: Block) -> Any:
    return answer(gaussian_use.predictive(model, reading, block), block)


def _expected(rows: gaussian_use.Predictive, block: Block) -> Array:
    return shaped(rows.expected, block)


def _with_spread(rows: gaussian_use.Predictive, block: Block) -> tuple[Array, Array]:
    return shaped(rows.expected, block), shaped(np.sqrt(rows.variances()), block)


def _with_covariance(rows: gaussian_use.Predictive, block: Block) -> tuple[Array, Array]:
    return shaped(rows.expected, block), shaped(rows.covariances(), block)


def _above(level: Array, rows: gaussian_use.Predictive, block: Block) -> Array:
    return shaped(rows.above(level), block)


def _class_log_probabilities(
    codes: Array, prior: Array, rows: gaussian_use.Predictive, block: Block
) -> Array:
    scores = gaussian_use.code_densities(rows, codes) + prior
    return np.asarray(scores - normalise(scores)[0][:, None])
