"""Labels as class numbers, and predictions of classes, for the estimators with a class per row.

RBM, DeepBeliefNetwork and DeepFactorNetwork use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.metaestimators import available_if

from mixfold.contracts import Array
from mixfold.engine.sources.targets import split_target
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.target_scores import target_score
from mixfold.estimators.shell.target_values import as_target, of_one_kind, unknown
from mixfold.estimators.shell.targets import Target
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

    def _log_probabilities(self, X: Any) -> Array:
        """ln P(class given row), (n_samples, n_classes); the estimator defines it."""
        raise NotImplementedError

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
    y = split_target(X, y)[0] if isinstance(y, str) else y
    target = Target("classification", estimator.classes_, 1, True)
    return target_score(target, y, estimator.predict(X), weight)


# ------------------------------------------------ labels as class numbers


def encode_labels(
    y: Any, n_rows: int, weight: Array | None, classes: Array | None
) -> tuple[Array, Array]:
    """Class numbers with -1 where unknown, and the classes, which may be known already."""
    values = _as_one_column(as_target(y))
    if len(values) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and "
            f"y {len(values)}; give one entry per row, in the same order"
        )
    lacks = unknown(values)
    if weight is not None:
        lacks = lacks | (weight == 0)
    known = of_one_kind(values[~lacks])
    if known.dtype.kind == "f" and (known != np.round(known)).any():
        raise ValueError(
            "Unknown label type: 'continuous'. Classes must be whole numbers or text, but y holds "
            f"{known[known != np.round(known)][0]:g}; leave y out to learn from X alone"
        )
    numbers = np.full(n_rows, -1, dtype=np.int64)
    if classes is None:
        classes, numbers[~lacks] = np.unique(known, return_inverse=True)
        return numbers, classes
    numbers[~lacks] = find_class_numbers(known, classes)
    return numbers, classes


def find_class_numbers(known: Array, classes: Array) -> Array:
    """Where labels stand among the classes."""
    if not len(known):
        return np.zeros(0, np.int64)
    at = np.searchsorted(classes, known)
    at = np.minimum(at, max(len(classes) - 1, 0))
    wrong = np.ones(len(known), bool) if not len(classes) else classes[at] != known
    if wrong.any():
        raise ValueError(
            f"{known[wrong].tolist()[0]!r} is no known class; the classes are "
            f"{', '.join(map(repr, classes.tolist())) or 'none: the fit had no labels'} "
            "(partial_fit takes all of them in its first call, classes=...)"
        )
    return np.asarray(at)


def encode_known_labels(estimator: Any, y: Any, n_rows: int) -> Array | None:
    """Class numbers of rows that are scored with their labels; None without ``y``."""
    if y is None:
        return None
    has_classes(estimator)
    numbers = encode_labels(y, n_rows, None, estimator.classes_)[0]
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


def _as_one_column(values: Array) -> Array:
    if values.ndim == 1:
        return values
    if values.shape[1] > 1:
        raise ValueError(f"classes have one column, got y of shape {values.shape}")
    warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of "
        "y to (n_samples,), for example using ravel().",
        DataConversionWarning,
    )
    return values.ravel()
