"""What is asked of a classifier of densities."""

from __future__ import annotations

from copy import copy
from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.sources.targets import split_target
from mixfold.estimators.mixtures.iterates import staged_scores
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.math.softmax import normalise


class ClassAnswers:
    """Predictions by the rule of Bayes; needs ``estimators_``, ``priors_`` and ``classes_``."""

    classes_: Array
    priors_: Array
    estimators_: list[Any]

    def _densities(self, X: Any) -> Array:
        """log p(x | class), (n, C); minus infinity for a class that was never seen."""
        check_is_fitted(self)
        source: Any = self._open(X, reset=False)  # type: ignore[attr-defined]
        columns: list[Any] = []
        for model in self.estimators_:
            if model is None:
                columns.append(-np.inf)
            else:
                columns.append(model.score_samples(_rows_for(model, source)))
        n = max(np.size(column) for column in columns)
        return np.stack([np.broadcast_to(column, n) for column in columns], axis=1)

    def _log_priors(self) -> Array:
        """Minus infinity for a class that cannot be."""
        with np.errstate(divide="ignore"):
            return np.log(self.priors_)

    def _joint(self, X: Any) -> Array:
        return np.asarray(self._densities(X) + self._log_priors())

    def score_samples(self, X: Any) -> Array:
        """Log density of each row, whatever its class: log sum_c priors_c p(x | c)."""
        return np.asarray(normalise(self._joint(X))[0])

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class given the row, (n_samples, n_classes).

        A row with density zero under every class has the priors.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Log probability of each class given the row, (n_samples, n_classes)."""
        joint = self._joint(X)
        lost = ~np.isfinite(joint).any(axis=1)
        joint[lost] = self._log_priors()
        # far from all classes log densities are so large that log(sum) would vanish beside them
        joint -= joint.max(axis=1, keepdims=True)
        return np.asarray(joint - normalise(joint)[0][:, None])

    def predict(self, X: Any) -> Array:
        """The most probable class of each row; ``novelty_label`` for rows that are novel."""
        joint = self._joint(X)
        best = np.argmax(joint, axis=1)
        if not hasattr(self, "novelty_threshold_"):
            return np.asarray(self.classes_[best])
        novel = self._below(joint, best)
        label = self._novelty_label()
        kinds = self.classes_.dtype, np.asarray(label).dtype
        text = [kind.kind in "US" for kind in kinds]
        # a number does not become a text beside one, nor the other way round
        kind = np.result_type(*kinds) if text[0] == text[1] else np.dtype(object)
        return np.where(novel, np.asarray(label, dtype=kind), self.classes_[best].astype(kind))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of the rows that get their class.

        Parameters
        ----------
        X, y
            As in ``fit``: y may name a column of X.
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_is_fitted(self)
        if isinstance(y, str):
            y = split_target(X, y)[0]
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def is_novel(self, X: Any) -> Array:
        """Whether a row is less likely than its most probable class makes it (see ``novelty``)."""
        check_is_fitted(self)
        if not hasattr(self, "novelty_threshold_"):
            raise ValueError("set novelty to a share, such as 0.01, before the fit")
        joint = self._joint(X)
        return self._below(joint, np.argmax(joint, axis=1))

    def _below(self, joint: Array, best: Array) -> Array:
        density = joint[np.arange(len(joint)), best] - self._log_priors()[best]
        return np.asarray(density < self.novelty_threshold_[best])  # type: ignore[attr-defined]

    def _novelty_label(self) -> Any:
        given = self.novelty_label  # type: ignore[attr-defined]
        if given is not None:
            return given
        return "novel" if self.classes_.dtype.kind in "USO" else -1

    def staged_predict(self, X: Any) -> Array:
        """The class of each row by each iterate, (n_iterates, n_samples).

        Only of estimators that keep their iterates, such as :class:`MLiT`.
        """
        check_is_fitted(self)
        if not hasattr(self.estimators_[0], "staged_score_samples"):
            raise AttributeError(f"{type(self.estimators_[0]).__name__} does not keep iterates")
        source = self._open(X, reset=False)  # type: ignore[attr-defined]
        scores = staged_scores(self.estimators_, source, self._log_priors())
        return np.asarray(self.classes_[scores.argmax(axis=0)])

    def _model_of(self, number: int) -> Any:
        model = self.estimators_[number]
        if model is None:
            raise ValueError(
                f"no row of class {self.classes_.tolist()[number]!r} has been seen yet"
            )
        return model

    def _seen_priors(self) -> Array:
        seen = self.priors_ * [model is not None for model in self.estimators_]
        return np.asarray(seen / seen.sum())


def drawn_rows(model: Any, n: int, seed: int) -> Array:
    """Rows of one class; mixtures of scikit-learn have a seed of their own instead."""
    if "random_state" in signature(model.sample).parameters:
        found = model.sample(n, random_state=seed)
    else:
        found = copy(model).set_params(random_state=seed).sample(n)
    return np.asarray(found[0] if isinstance(found, tuple) else found)


def _rows_for(model: Any, source: Any) -> Any:
    """A foreign estimator takes arrays only."""
    if isinstance(model, MixfoldEstimator):
        return source
    return np.concatenate([np.asarray(block.X) for block in source.blocks()])
