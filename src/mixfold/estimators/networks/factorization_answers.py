"""What is asked of a matrix factorisation: sources, rows, classes, sparsity."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.sources.targets import split_target
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.target_scores import target_score
from mixfold.estimators.shell.targets import Target
from mixfold.models.networks.factorization.records import FactorizationParams
from mixfold.models.networks.factorization.use import Encoder, hoyer, small_share


def has_classes(estimator: Any) -> bool:
    """Whether there is a classifier on the sources, or will be."""
    if hasattr(estimator, "_params"):
        found = estimator._params.layer.classifier is not None
    else:
        found = estimator.supervised in (True, "after")
    if not found:
        raise AttributeError(
            f"this {type(estimator).__name__} has no classifier; fit it with y, and supervised "
            "not False"
        )
    return True


class FactorizationAnswers(MixfoldEstimator):
    """Needs ``_params``, ``_target`` and an encoder."""

    _params: FactorizationParams
    _target: Target | None
    _dtype: str

    @abstractmethod
    def _encoder(self) -> Encoder:
        """What gives the codes of blocks."""

    def _each(self, X: Any, task: Any) -> Array:
        return self._stacked(X, partial(_shaped, task))

    # ------------------------------------------------ sources and rows

    def transform(self, X: Any) -> Array:
        """Sources s of the rows, without their labels, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._each(X, self._encoder().sources)

    def codes(self, X: Any) -> Array:
        """Codes f(s) of the rows, without their labels, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._each(X, self._encoder().codes)

    def inverse_transform(self, S: Any) -> Array:
        """Rows at given sources: f(s) components_ + bias_.

        Parameters
        ----------
        S : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        S = check_array(S, dtype=[np.float64, np.float32])
        encoder, layer = self._encoder(), self._params.layer
        if S.shape[1] != layer.n_codes:
            raise ValueError(
                f"S must have one column for each of the {layer.n_codes} sources, got {S.shape[1]}"
            )
        if encoder.link.lower == encoder.link.centre and S.size and S.min() < 0:
            raise ValueError(
                f"sources of this model are not negative, but S holds {S.min():g}; give sources as "
                "transform returns them"
            )
        rows = encoder.link.value(S.astype(float)) @ layer.codebook + layer.bias
        return rows.astype(self._dtype)

    def reconstruct(self, X: Any) -> Array:
        """Rows as their sources give them back; missing entries are filled in."""
        check_is_fitted(self)
        return self._each(X, self._encoder().rows)

    def reconstruction_error(self, X: Any, sample_weight: Any = None) -> float:
        """Half the squared error of a row, the mean over rows; missing entries do not count."""
        check_is_fitted(self)
        source = self._open(X, reset=False, weight=sample_weight)
        sums = self._executor(source).map_reduce(self._encoder().residuals, source)
        return 0.5 * sums.squares / sums.weight

    # ------------------------------------------------ classes

    @available_if(has_classes)
    def predict(self, X: Any) -> Array:
        """The class of each row, in the form in which y was given."""
        check_is_fitted(self)
        assert self._target is not None
        return self._target.decoded(self._stacked(X, self._encoder().classes))

    @available_if(has_classes)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (n_samples, n_classes), in the order of ``classes_``."""
        check_is_fitted(self)
        return self._each(X, self._encoder().shares)

    @available_if(has_classes)
    def prototypes(self) -> Array:
        """What each class weighs in the columns, coef_ components_, (n_classes, n_features)."""
        check_is_fitted(self)
        return np.asarray(self.coef_ @ self.components_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes; without a classifier minus ``reconstruction_error``.

        Rows whose label is unknown, as in ``fit``, do not count.
        """
        check_is_fitted(self)
        if self._target is None:
            return -self.reconstruction_error(X, sample_weight)
        if y is None:
            raise ValueError("score of a classifier needs y, the classes of the rows")
        y = split_target(X, y)[0] if isinstance(y, str) else y
        return target_score(self._target, y, self.predict(X), sample_weight)

    # ------------------------------------------------ sparsity

    def sparsity(
        self, X: Any = None, t: float = 0.05, relative: bool = True
    ) -> dict[str, dict[str, float]]:
        """How sparse sources, codebook and classifier are.

        Parameters
        ----------
        X : as in ``fit``, default=None
            Rows whose sources are looked at; None: sources are left out.
        t : float, default=0.05
            Entries less than this are small.
        relative : bool, default=True
            t is a share of the largest entry of a row; otherwise it is absolute.

        Returns
        -------
        dict of dict
            For 'sources', 'codebook' and 'classifier' (where there are any) the mean over rows of
            the share of small entries, 'small', and of Hoyer's index, 'hoyer', which is 1 for a
            row with one entry and 0 for one of equal entries.
        """
        check_is_fitted(self)
        layer, tables = self._params.layer, {}
        if X is not None:
            tables["sources"] = self.transform(X)
        tables["codebook"] = layer.codebook
        if layer.classifier is not None:
            tables["classifier"] = layer.classifier.T
        return {
            name: {"small": small_share(values, t, relative), "hoyer": hoyer(values)}
            for name, values in tables.items()
        }


def _shaped(task: Any, block: Block) -> Array:
    return shaped(task(block), block)
