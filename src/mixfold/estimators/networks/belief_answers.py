"""What is asked of a fitted deep belief network."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.networks.class_labels import (
    ClassPredictionMixin,
    encode_known_labels,
    encode_wanted_label,
    score_accuracy,
)
from mixfold.estimators.networks.rbm import estimate_log_partition
from mixfold.estimators.networks.visible_rows import Entries, map_visible_rows, return_visible
from mixfold.estimators.shell.constraints import check_count
from mixfold.math.softmax import normalise
from mixfold.models.networks.belief import use
from mixfold.models.networks.belief.records import BeliefParams
from mixfold.models.networks.boltzmann.partition import LogPartition
from mixfold.models.networks.boltzmann.units import UNITS, Units
from mixfold.models.networks.recognition import activations, log_probabilities
from mixfold.models.networks.records import Network

# rows whose bounds are drawn at once
TILE = 1024


class BeliefAnswers(ClassPredictionMixin):
    """Highest units, classes, dreams, bounds of densities."""

    _params: BeliefParams
    _entries: Entries
    _network: Network | None
    _base: Array
    _beginnings: Array
    _partition: Any

    def _units(self) -> Units:
        return UNITS[self.visible]  # type: ignore[attr-defined]

    def transform(self, X: Any) -> Array:
        """Expected units of the highest layer by one pass upward, (n_samples, hidden[-1])."""
        check_is_fitted(self)
        return map_visible_rows(self, X, partial(_features, self._network))

    def _log_probabilities(self, X: Any) -> Array:
        check_is_fitted(self)
        return map_visible_rows(self, X, partial(_log_labels, self._network))

    def reconstruct(self, X: Any) -> Array:
        """Rows up to the highest layer and down again, by expectations."""
        check_is_fitted(self)
        return map_visible_rows(self, X, partial(_reconstructed, self._units(), self._entries))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, where ``y`` is given and the fit had labels; else the mean bound of ln p(v).

        Rows whose label is unknown, as in ``fit``, do not count.

        Parameters
        ----------
        X, y
            As in ``fit``.
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_is_fitted(self)
        if y is None or not len(self.classes_):
            return float(np.average(self.score_samples(X), weights=sample_weight))
        return score_accuracy(self, X, y, sample_weight)

    # ------------------------------------------------ densities

    def log_partition(
        self,
        method: str = "auto",
        n_chains: int = 100,
        n_temperatures: int | None = None,
        random_state: Any = None,
    ) -> LogPartition:
        """ln Z of the machine at the top, with its standard error; see :class:`RBM`.

        Parameters
        ----------
        method : {'auto', 'exact', 'ais'}, default='auto'
        n_chains : int, default=100
        n_temperatures : int, default=None
        random_state : int, RandomState, Generator or None, default=None
            None is the seed of the fit.

        Returns
        -------
        LogPartition
            ``value``, ``error`` (0 if exact) and ``ess``.
        """
        check_is_fitted(self)
        return estimate_log_partition(
            use.top_units(self._params, self._units()), self._params.top, self._base, method,
            n_chains, n_temperatures,
            self._stream[0] if random_state is None else seed_from(random_state),  # type: ignore[attr-defined]
        )  # fmt: skip

    def score_samples(self, X: Any, y: Any = None, n_draws: int = 10) -> Array:
        """A lower bound of ln p(v) of each row, or of ln p(v, y).

        Parameters
        ----------
        X : as in ``fit``
        y : array-like of shape (n_samples,), optional
            Known classes.
        n_draws : int, default=10
            Passes upward by which the expectation in the bound is estimated.

        Returns
        -------
        ndarray of shape (n_samples,)
            E_q[ln p(v, h)] and the entropy of q, the pass upward; ln Z of the top is that of
            ``log_partition()``, which is remembered.
        """
        check_is_fitted(self)
        check_count("n_draws", n_draws)
        v = map_visible_rows(self, X, return_visible)
        codes = encode_known_labels(self, y, len(v))
        if self._partition is None:
            self._partition = self.log_partition()
        params = self._params.astype(v.dtype)
        found = [
            use.bounds(
                params, self._units(), v[i : i + TILE], self._partition.value,
                self._stream[0] % 2**63, n_draws, None if codes is None else codes[i : i + TILE],  # type: ignore[attr-defined]
            )
            for i in range(0, len(v), TILE)
        ]  # fmt: skip
        return np.asarray(np.concatenate(found) - self._entries.log_scale)

    # ------------------------------------------------ draws

    def generate(
        self,
        label: Any = None,
        n: int = 1,
        n_steps: int = 200,
        probabilities: bool = True,
        random_state: Any = None,
    ) -> Array:
        """Rows of a class: the label is held while chains run at the top, then one pass down.

        Parameters
        ----------
        label : class, or array of one for each row, optional
            None leaves it to the chains.
        n : int, default=1
            Rows, each from a chain of its own.
        n_steps : int, default=200
            Steps of the chains, which begin at units drawn one by one from their means.
        probabilities : bool, default=True
            Expected columns given the units above them, rather than draws.
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        return self._dreamed(label, n, n_steps, probabilities, random_state)[0]

    def sample(
        self, n_samples: int = 1, label: Any = None, n_steps: int = 200, random_state: Any = None
    ) -> tuple[Array, Array | None]:
        """Draw rows with their classes; see ``generate``.

        Parameters
        ----------
        n_samples : int, default=1
        label : class, or array of one for each row, optional
        n_steps : int, default=200
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            None without labels.
        """
        check_count("n_samples", n_samples)
        X, labels = self._dreamed(label, n_samples, n_steps, False, random_state)
        return X, self.classes_[labels.argmax(axis=1)] if labels.shape[1] else None

    def _dreamed(
        self, label: Any, n: int, n_steps: int, probabilities: bool, random_state: Any
    ) -> tuple[Array, Array]:
        check_is_fitted(self)
        check_count("n", n)
        check_count("n_steps", n_steps)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        params = self._params
        held = encode_wanted_label(self, label, n, params.top.dtype)
        v, labels = use.dreamed(
            params, self._units(), self._beginnings, held, n, n_steps, rng, probabilities
        )
        return self._entries.leave(v), labels


def _features(network: Network | None, params: BeliefParams, v: Array) -> Array:
    if network is None:
        return use.features(params, v)
    return np.asarray(activations(network.cast(v.dtype), v)[-1])


def _log_labels(network: Network | None, params: BeliefParams, v: Array) -> Array:
    if network is not None:
        return log_probabilities(network.cast(v.dtype), v)
    scores = use.scores(params, v)
    return np.asarray(scores - normalise(scores)[0][:, None])


def _reconstructed(units: Units, entries: Entries, params: BeliefParams, v: Array) -> Array:
    return entries.leave(use.reconstructed(params, units, v))
