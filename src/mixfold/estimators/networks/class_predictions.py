"""Predictions of classes, and classes that rows are scored or drawn with, for the networks.

RBM, DeepBeliefNetwork and DeepFactorNetwork use it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from mixfold.contracts import Array
from mixfold.estimators.shell.targets import (
    class_target,
    encode_classes,
    find_class_numbers,
    read_target,
    score_predictions,
)
from mixfold.models.networks.boltzmann.energy import one_hot

# ------------------------------------------------ predictions


def has_classes(estimator: Any) -> bool:
    """Whether the fit had labels; before a fit anything may be asked."""
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not len(classes):
        raise AttributeError(
            f"this {type(estimator).__name__} was fitted without labels, so that it knows no "
            "classes; fit it with y"
        )
    return True


class ClassPredictionMixin:
    """``predict`` and its probabilities, for an estimator with ``classes_`` (empty without y)."""

    classes_: Array

    @abstractmethod
    def _log_probabilities(self, X: Any) -> Array:
        """ln P(class given row), (n_samples, n_classes); the estimator defines it."""

    @available_if(has_classes)
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class given the row, (n_samples, n_classes)."""
        return np.exp(self._log_probabilities(X))

    @available_if(has_classes)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._log_probabilities(X)

    @available_if(has_classes)
    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        best = self._log_probabilities(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


def score_accuracy(estimator: Any, X: Any, y: Any, weight: Any) -> float:
    """Share of the known labels, ``y`` or the column of X of this name, that are predicted."""
    target = class_target(estimator.classes_)
    return score_predictions(target, read_target(X, y), estimator.predict(X), weight)


# ------------------------------------------------ classes that are given


def encode_known_labels(estimator: Any, y: Any, n_rows: int) -> Array | None:
    """Class numbers of rows that are scored with their labels; None without ``y``."""
    if y is None:
        return None
    has_classes(estimator)
    numbers = encode_classes(y, n_rows, None, estimator.classes_)[0]
    if (numbers < 0).any():
        raise ValueError("y must be known in every row, or not be given at all")
    return numbers


def encode_wanted_label(estimator: Any, label: Any, n: int, dtype: Any) -> Array | None:
    """A class to draw rows of, or one for each row, as 0/1 columns; None leaves it free."""
    if label is None:
        return None
    has_classes(estimator)
    wanted = np.asarray(label)
    if wanted.ndim not in (0, 1) or (wanted.ndim == 1 and len(wanted) != n):
        raise ValueError(
            f"label must be one class, or one for each of the {n} rows; got an array of shape "
            f"{wanted.shape}"
        )
    classes = estimator.classes_
    numbers = np.broadcast_to(find_class_numbers(np.atleast_1d(wanted), classes), (n,))
    return one_hot(numbers, len(classes), dtype)
