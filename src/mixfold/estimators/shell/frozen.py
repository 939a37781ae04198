"""``freeze``: answers of a fitted mixture about plain rows, without the checks of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.estimators.mixtures.mixture import MixtureEstimator
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.models.mixtures.mixture import Mixture

# what a frozen mixture answers, and whose code these answers have to be
_METHODS = (
    ("predict", MixtureEstimator), ("predict_proba", MixtureEstimator),
    ("score_samples", DensityEstimator), ("_open", MixfoldEstimator),
)  # fmt: skip


def freeze(model: Any) -> FrozenMixture:
    """A fitted mixture for a service that asks about one row, or a few, again and again.

    The answers are those of the estimator for arrays of numbers. Names of columns are not compared,
    tables, files and sparse matrices are not taken, nothing runs in parallel, and a later fit of
    the estimator does not change what was frozen.

    Parameters
    ----------
    model : GaussianMixture or another mixture
        Fitted. Mixtures that answer in a way of their own (Bayesian ones, those with a target or of
        codes) are refused.

    Returns
    -------
    FrozenMixture
        With ``predict``, ``predict_proba`` and ``score_samples``. It can be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> import mixfold
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[100:] += 8
    >>> mixture = mixfold.GaussianMixture(2, random_state=0).fit(X)
    >>> frozen = mixfold.freeze(mixture)
    >>> bool(frozen.predict(X[:1])[0] == mixture.predict(X[:1])[0])
    True
    """
    kind = type(model)
    if not all(getattr(kind, name, None) is getattr(base, name) for name, base in _METHODS):
        raise TypeError(
            f"freeze takes a mixture such as GaussianMixture, whose rows are plain numbers; got "
            f"{kind.__name__}: ask the estimator itself"
        )
    return FrozenMixture(model)


class FrozenMixture:
    """What ``freeze`` returns."""

    def __init__(self, model: Any) -> None:
        self._model, self._reading = model._reading()
        self.n_features_in_ = int(model.n_features_in_)
        self._theta: Array | None = None
        lifted = self._model.row_family.lift_complete_rows(self._reading.components)
        if lifted is not None and _is_plain(self._model):
            features, theta = lifted
            frame = self._reading.components.frame
            self._origin, self._inverse_scale = frame.origin, 1.0 / frame.scale
            self._left, self._right = features.left, features.right
            theta = np.array(theta, float)
            theta[:, 0] += self._reading.log_weights
            self._theta = np.ascontiguousarray(theta.T)
            trust = self._model.family.trust(self._reading.components, np.dtype(float))
            self._least = trust.least

    def predict(self, X: Any) -> Array:
        """The most probable component of each row."""
        X = self._rows(X)
        joint = self._joint(X)
        if joint is None:
            return predictions.labels(self._model, self._reading, _block(X))
        return np.asarray(joint.argmax(axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row, (n_samples, n_components)."""
        X = self._rows(X)
        joint = self._joint(X)
        if joint is None:
            return predictions.probabilities(self._model, self._reading, _block(X))
        shares: Array = np.exp(joint - joint.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row."""
        X = self._rows(X)
        joint = self._joint(X)
        if joint is None:
            return predictions.log_density(self._model, self._reading, _block(X))
        top = joint.max(axis=1)
        found: Array = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
        return found

    def _rows(self, X: Any) -> Array:
        if type(X) is not np.ndarray or X.dtype != np.float64:
            X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_features_in_}), got {X.shape}; one row is "
                "X[None]"
            )
        rows: Array = X
        return rows

    def _joint(self, X: Array) -> Array | None:
        """Log joint densities (n, K), or None for rows with missing entries or far away."""
        if self._theta is None:
            return None
        V = np.empty((len(X), self.n_features_in_ + 1))
        V[:, 0] = 1.0
        U = V[:, 1:]
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(X, self._origin, out=U)
            U *= self._inverse_scale
            T = V.take(self._left, axis=1)
            T *= V.take(self._right, axis=1)
            joint: Array = T @ self._theta
        # NaN is not greater; an infinite entry makes NaN
        least = joint.max(axis=1).min() if len(X) > 1 else joint.max(initial=-np.inf)
        return joint if least > self._least else None


def _is_plain(model: Mixture) -> bool:
    """Whether log joint densities are those of the family and of the weights, for all columns."""
    names = ("log_joint", "log_joint_and_base", "narrow")
    return all(getattr(type(model), name) is getattr(Mixture, name) for name in names)


def _block(X: Array) -> Block:
    if np.isinf(X).any():
        raise ValueError("X contains infinity; NaN marks a missing entry")
    return Block(X, complete=not np.isnan(X).any())
