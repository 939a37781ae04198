"""What is asked of a fitted restricted Boltzmann machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.random import seed_from
from mixfold.engine.sources.targets import split_target
from mixfold.estimators.networks.rbm_rows import Entries, class_codes, numbers_of
from mixfold.estimators.shell.constraints import check_count
from mixfold.estimators.shell.target_scores import target_score
from mixfold.estimators.shell.targets import Target
from mixfold.math.softmax import normalise
from mixfold.models.networks.boltzmann import energy, gibbs, partition
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.statistics import seen
from mixfold.models.networks.boltzmann.units import Units, bits

# temperatures of annealed importance sampling: for small machines, and for large ones
TEMPERATURES = ((10**5, 1000), (np.inf, 14500))


def has_classes(estimator: Any) -> bool:
    """Whether the fit had labels; before a fit anything may be asked."""
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not len(classes):
        raise AttributeError(
            f"this {type(estimator).__name__} was fitted without labels, so that it knows no "
            "classes; fit it with y"
        )
    return True


class Classes:
    """Predictions by ``_log_probabilities`` (n, C), which a subclass has."""

    classes_: Array
    _entries: Entries
    _params: Any

    def _told(self, X: Any, task: Callable[[Any, Array], Array]) -> Array:
        """``task`` of parameters and visible units of each block of X, in the precision of X."""
        check_is_fitted(self)
        answer = partial(_answered, self._entries, self._params, task)
        return np.concatenate(list(self._rows(X, answer)))  # type: ignore[attr-defined]

    def _log_probabilities(self, X: Any) -> Array:
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

    def _accuracy(self, X: Any, y: Any, weight: Any) -> float:
        """Share of the known labels, ``y`` or the column of X of this name, that are right."""
        y = split_target(X, y)[0] if isinstance(y, str) else y
        target = Target("classification", self.classes_, 1, True)
        return target_score(target, y, self.predict(X), weight)

    def _label_shares(self, label: Any, n: int, dtype: Any) -> Array | None:
        """A wanted class, or one for each row, as shares; None leaves it free."""
        if label is None:
            return None
        has_classes(self)
        wanted = np.asarray(label)
        if wanted.ndim not in (0, 1) or (wanted.ndim == 1 and len(wanted) != n):
            raise ValueError(
                f"label must be one class, or one for each of the {n} rows; got an array of shape "
                f"{wanted.shape}"
            )
        numbers = np.broadcast_to(numbers_of(np.atleast_1d(wanted), self.classes_), (n,))
        return energy.one_hot(numbers, len(self.classes_), dtype)


class RBMAnswers(Classes):
    """Hidden units, densities, classes and draws."""

    _params: RBMParams
    _base: Array
    _beginnings: Array
    _partition: Any

    # ------------------------------------------------ hidden units and rows

    def transform(self, X: Any) -> Array:
        """Probabilities of the hidden units given the row, (n_samples, n_components).

        An unknown label is summed over.
        """
        return self._told(X, _hidden)

    def reconstruct(self, X: Any) -> Array:
        """Expected rows given the expected hidden units of X, (n_samples, n_features)."""
        check_is_fitted(self)
        task = partial(_reconstructed, self._units(), self._entries)  # type: ignore[attr-defined]
        return self._told(X, task)

    def gibbs(self, X: Any, n_steps: int = 1, random_state: Any = None) -> Array:
        """Rows after ``n_steps`` steps of Gibbs sampling that begin at X.

        Parameters
        ----------
        X : as in ``fit``
        n_steps : int, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_count("n_steps", n_steps)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        v = self._told(X, _visible)
        params = self._params.astype(v.dtype)
        hidden = bits(gibbs.beginnings(params, seen(params, Block(v)), rng), rng)
        moved = gibbs.walk(self._units(), params, hidden, n_steps, rng)[0]  # type: ignore[attr-defined]
        return self._entries.leave(moved)

    def sample(
        self, n_samples: int = 1, label: Any = None, n_steps: int = 1000, random_state: Any = None
    ) -> tuple[Array, Array | None]:
        """Draw rows, each at the end of a chain of its own.

        Parameters
        ----------
        n_samples : int, default=1
        label : class, or array of one for each row, optional
            Held while the chains run.
        n_steps : int, default=1000
            Steps of the chains, which begin at columns drawn one by one from their means, those of
            the class if there are classes.
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            Classes; None without labels.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        check_count("n_steps", n_steps)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        params = self._params
        held = self._label_shares(label, n_samples, params.dtype)
        units = self._units()  # type: ignore[attr-defined]
        hidden = gibbs.from_base(units, params, self._beginnings, n_samples, held, rng)
        v, labels, _ = gibbs.walk(units, params, hidden, n_steps, rng, held)
        X = self._entries.leave(v)
        return X, self.classes_[labels.argmax(axis=1)] if labels.shape[1] else None

    # ------------------------------------------------ densities

    def free_energy(self, X: Any, y: Any = None) -> Array:
        """F(v) with ln p(v) = -F(v) - ln Z, of each row; with ``y`` that of rows and classes."""
        v = self._told(X, _visible)
        return self._free_energies(v, self._codes(y, len(v)))

    def _codes(self, y: Any, n: int) -> Array | None:
        if y is None:
            return None
        has_classes(self)
        codes = class_codes(y, n, None, self.classes_)[0]
        if (codes < 0).any():
            raise ValueError("y must be known in every row, or not be given at all")
        return codes

    def _free_energies(self, v: Array, codes: Array | None) -> Array:
        params = self._params.astype(v.dtype)
        units = self._units()  # type: ignore[attr-defined]
        found = energy.free_energy(units, params, v, codes)
        return np.asarray(found + self._entries.log_scale)

    def log_partition(
        self,
        method: str = "auto",
        n_chains: int = 100,
        n_temperatures: int | None = None,
        random_state: Any = None,
    ) -> partition.LogPartition:
        """ln Z with its standard error.

        Parameters
        ----------
        method : {'auto', 'exact', 'ais'}, default='auto'
            'exact' sums over all states of the smaller side; 'ais' is annealed importance
            sampling; 'auto' is exact if a side has at most 20 units.
        n_chains : int, default=100
        n_temperatures : int, default=None
            None is 1,000, or 14,500 of machines with more than 100,000 weights.
        random_state : int, RandomState, Generator or None, default=None
            None is the seed of the fit: the same answer each time.

        Returns
        -------
        LogPartition
            ``value``, ``error`` (0 if exact) and ``ess``, how many of the chains count. A short
            run tends to give too low an ln Z, and so too high densities.
        """
        check_is_fitted(self)
        return log_partition_of(
            self._units(), self._params, self._base, method, n_chains, n_temperatures,  # type: ignore[attr-defined]
            self._stream[0] if random_state is None else seed_from(random_state),  # type: ignore[attr-defined]
        )  # fmt: skip

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """ln p(v) of each row; with ``y`` ln p(v, y).

        ln Z is that of ``log_partition()``, which is remembered.
        """
        energies = self.free_energy(X, y)
        if self._partition is None:
            self._partition = self.log_partition()
        return np.asarray(-energies - self._partition.value)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, where ``y`` is given and the fit had labels; else the mean ln p(v).

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
        return self._accuracy(X, y, sample_weight)

    def _log_probabilities(self, X: Any) -> Array:
        return self._told(X, _log_labels)


def log_partition_of(
    units: Units, params: RBMParams, base: Array, method: str, n_chains: int,
    n_temperatures: int | None, seed: int,
) -> partition.LogPartition:  # fmt: skip
    """ln Z by the method of this name."""
    if method not in ("auto", "exact", "ais"):
        raise ValueError(f"method must be 'auto', 'exact' or 'ais'; got {method!r}")
    possible = partition.enumerable(units, params)
    if method == "exact" and not possible:
        raise ValueError(
            f"method='exact' needs at most {partition.ENUMERABLE} hidden units (or visible bits), "
            f"and there are {params.shape[1]} and {params.shape[0]}; use method='ais'"
        )
    if possible and method != "ais":
        return partition.exact(units, params)
    check_count("n_chains", n_chains)
    if n_temperatures is None:
        n_temperatures = next(n for size, n in TEMPERATURES if params.weights.size <= size)
    check_count("n_temperatures", n_temperatures)
    betas = partition.temperatures(n_temperatures)
    rng = np.random.default_rng([seed % 2**63, 2**35])
    return partition.annealed(units, params, np.asarray(base, float), rng, n_chains, betas)


def _answered(
    entries: Entries, params: Any, task: Callable[[Any, Array], Array], block: Block
) -> Array:
    v = entries.enter(block)
    found = task(params.astype(v.dtype), v)
    return found.astype(v.dtype, copy=False)


def _visible(params: RBMParams, v: Array) -> Array:
    return v


def _hidden(params: RBMParams, v: Array) -> Array:
    return seen(params, Block(v)).hidden


def _reconstructed(units: Units, entries: Entries, params: RBMParams, v: Array) -> Array:
    return entries.leave(units.mean(energy.visible_drive(params, _hidden(params, v))))


def _log_labels(params: RBMParams, v: Array) -> Array:
    scores = energy.label_scores(params, v)
    return np.asarray(scores - normalise(scores)[0][:, None])
