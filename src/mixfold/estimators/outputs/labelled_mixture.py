"""The shell of factor mixtures with labels: what is asked of a fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.estimators.factors.mixed_latents import MixedLatents
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.outputs.supervised import SupervisedEstimator
from mixfold.models.outputs import label_use
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedReading

Answer = Callable[[LabelledModel, SupervisedReading, label_use.Rows], Any]


class LabelledMixture(MixedLatents, SupervisedEstimator):
    """Classes, components, risks and densities of a mixture of factor models with labels."""

    @abstractmethod
    def _joint(self, n_features: int) -> LabelledModel: ...

    def _labelled_reading(self) -> tuple[LabelledModel, SupervisedReading]:
        check_is_fitted(self)
        model = self._joint(self.n_features_in_)
        return model, model.prepare(self._turned())

    def _turned(self) -> SupervisedParams:
        return label_use.canonical(self._joint(self.n_features_in_), self._params)

    def _labelled_rows(self, X: Any, answer: Answer) -> list[Any]:
        """``answer`` of each block of X, which must not ask for classes that nobody named."""
        check_is_fitted(self)
        if not len(self.classes_):
            raise ValueError(
                f"this {type(self).__name__} was fitted without a single label, so that it knows "
                "no classes; fit it with y of some rows. transform, predict_component and "
                "score_samples need none"
            )
        return list(self._rows(X, partial(_answered, *self._labelled_reading(), answer)))

    # ------------------------------------------------ classes

    def _predicted(self, X: Any) -> Array:
        logs = self._labelled_rows(X, partial(_log_probabilities, source=self.classify_from))
        return np.concatenate(logs).argmax(axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        logs = self._labelled_rows(X, partial(_log_probabilities, source=self.classify_from))
        return np.concatenate(logs)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class for each row, (n_samples, n_classes).

        With more than two classes each is told from all others, and the probabilities are
        normalised.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def decision_function(self, X: Any) -> Array:
        """Scores whose normal probability is that of a class against all others.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        ndarray of shape (n_samples,) or, with more than two classes, (n_samples, n_classes)
            Of two classes: positive for the second.
        """
        parts = self._labelled_rows(X, partial(_decisions, source=self.classify_from))
        scores = np.concatenate(parts)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    # ------------------------------------------------ components and risks

    def predict_component(self, X: Any) -> Array:
        """The most probable component of each row, 0 to n_components - 1."""
        task = partial(_answered, *self._labelled_reading(), _components)
        return np.concatenate(list(self._rows(X, task)))

    def risks(
        self, X: Any, y: Any = None, sample_weight: Any = None, per_row: bool = False
    ) -> dict[str, Any]:
        """What is lost when a row is replaced by its latents, its component, or its class.

        Parameters
        ----------
        X : as in ``fit``
        y : array-like of shape (n_samples,) or str, optional
            True classes, -1 (NaN, None) where unknown: also the share of right answers is given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the averages.
        per_row : bool, default=False
            The risks of each row instead of their averages.

        Returns
        -------
        dict
            'reduction': expected squared error of the expected latents; the average is per latent
            dimension, rows are not. 'clustering': probability that a row is not of its most
            probable component. 'classification', 'classification_latent': probability that a row
            is not of its most probable class, by its columns or by its expected latents alone.
            With y 'accuracy', 'accuracy_latent' (per row: 1 or 0, NaN where y is unknown).
        """
        parts = self._labelled_rows(X, _risks)
        out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        chosen = {"accuracy": out.pop("chosen"), "accuracy_latent": out.pop("chosen_latent")}
        if y is not None:
            known = self._target.encoded(self._asked_target(X, y))
            for name, label in chosen.items():
                out[name] = np.where(known >= 0, label == known, np.nan).astype(float)
        if per_row:
            return out
        weight = np.ones(len(out["clustering"])) if sample_weight is None else sample_weight
        averages = {name: _average(values, weight) for name, values in out.items()}
        averages["reduction"] /= max(self._n_features_out, 1)
        return averages

    # ------------------------------------------------ densities and draws

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of the observed entries of each row, with its class if y is given."""
        if y is None:
            return super().score_samples(X)
        task = partial(_log_density, *self._labelled_reading())
        return np.concatenate(self._with_rows(X, task, y))

    def _evidence(self, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
        if X is not None and y is None:
            raise ValueError("y must be given with X: the likelihood is that of rows and labels")
        return super()._evidence(X, y, sample_weight)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows with their classes.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            Classes; with more than two, by their normalised probabilities at the drawn latents.
            -1 if the fit knew no classes.
        """
        rng = self._generator(n_samples, random_state)
        model = self._joint(self.n_features_in_)
        X, y = label_use.draw(model, self._params, n_samples, rng)
        named = self.classes_[y] if len(self.classes_) else np.full(n_samples, -1)
        return X.astype(self._dtype), named


def _answered(
    model: LabelledModel, reading: SupervisedReading, answer: Answer, block: Block
) -> Any:
    return answer(model, reading, label_use.rows(model, reading, block))


def _log_probabilities(
    model: LabelledModel, reading: SupervisedReading, found: label_use.Rows, source: str
) -> Array:
    return label_use.log_probabilities(model, reading, found, source)


def _decisions(
    model: LabelledModel, reading: SupervisedReading, found: label_use.Rows, source: str
) -> Array:
    return label_use.decisions(model, reading, found, source)


def _components(model: LabelledModel, reading: SupervisedReading, found: label_use.Rows) -> Array:
    return np.asarray(found.log_shares.argmax(axis=1))


def _risks(
    model: LabelledModel, reading: SupervisedReading, found: label_use.Rows
) -> dict[str, Array]:
    out = label_use.risks(model, reading, found)
    for name, source in (("chosen", "data"), ("chosen_latent", "latent")):
        logs = label_use.log_probabilities(model, reading, found, source)
        out[name] = logs.argmax(axis=1)
    return out


def _log_density(model: LabelledModel, reading: SupervisedReading, block: Block) -> Array:
    return shaped(label_use.log_density(model, reading, block), block)


def _average(values: Array, weight: Any) -> float:
    used = ~np.isnan(values)
    if not used.any():
        return float("nan")
    return float(np.average(values[used], weights=np.asarray(weight, dtype=float)[used]))
