"""What a fitted tree of Gaussian mixtures can be asked, and what it publishes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.estimators.mixtures import answers
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.softmax import normalise
from mixfold.models.mixtures import nested
from mixfold.models.mixtures.mixture import Mixture, MixtureReading

# of the parameters of GaussianMixture, those that mean the same here
_SHARED = (
    "covariance_type", "tol", "reg_covar", "max_iter", "n_init", "init_params", "random_state",
    "verbose", "verbose_interval", "acceleration", "executor", "n_jobs", "time_budget",
)  # fmt: skip


class CellsEstimator(DensityEstimator):
    """Base of estimators of cells that are mixtures. Subclasses say how they are found.

    The leaves are one flat mixture; ``paths_`` says which cell each belongs to.
    """

    paths_: Array

    def _family(self) -> GaussianFamily:
        return self._flat()._family()

    def _model(self, n_features: int) -> Mixture:
        return Mixture(len(self.paths_), self._family())

    def _fits(self, model: Mixture) -> bool:
        return self._params.n_components == model.n_components

    # ------------------------------------------------ publishing

    def _flat(self) -> GaussianMixture:
        shared = {name: getattr(self, name) for name in _SHARED}
        return GaussianMixture(len(getattr(self, "paths_", [0])), **shared)

    def flatten(self) -> GaussianMixture:
        """The same density as a fitted :class:`GaussianMixture` of all leaves, cell by cell."""
        check_is_fitted(self)
        flat = self._flat()
        flat._params = self._params
        flat.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            flat.feature_names_in_ = self.feature_names_in_
        flat._copy_fit(self)
        flat._total = self._total
        for name in ("lower_bound_", "lower_bounds_", "n_passes_"):
            setattr(flat, name, getattr(self, name))
        return flat

    def _publish_params(self) -> None:
        flat = self._flat()
        flat._params, flat._dtype = self._params, self._dtype
        flat._publish_params()
        cells, shares = nested.pooled_weights(self._params.weights, self.paths_)
        self.weights_ = cells.astype(self._dtype)
        self.subweights_ = [share.astype(self._dtype) for share in shares]
        self.leaf_weights_ = flat.weights_
        self.leaf_cells_ = self.paths_[:, 0].copy()
        self.means_, self.covariances_ = flat.means_, flat.covariances_
        self.n_leaves_ = len(self.paths_)

    # ------------------------------------------------ asking

    def predict(self, X: Any) -> Array:
        """The most probable cell of each row; missing entries are left out of account."""
        return self._ask(X, partial(_labels, starts=self._starts()))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cell for each row, (n_samples, n_components)."""
        return self._ask(X, partial(_probabilities, starts=self._starts()))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._ask(X, partial(_log_probabilities, starts=self._starts()))

    def predict_leaf(self, X: Any) -> Array:
        """The most probable leaf of each row, 0 to n_leaves_ - 1: a row of ``means_``.

        It need not be a leaf of the most probable cell. For the probabilities of all leaves, ask
        ``flatten()``.
        """
        return self._ask(X, answers.labels)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows.

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
            The cell of each row.
        """
        rng = self._generator(n_samples, random_state)
        X, leaves = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return X.astype(self._dtype), self.leaf_cells_[leaves]

    def _starts(self) -> Array:
        check_is_fitted(self)
        return nested.cell_starts(self.paths_)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # cells are to predict_proba what classes are to a classifier's; scikit-learn's checks
        # of sparse input read it
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components > 2)
        return tags

    def _check_state(self) -> None:
        leaves, cells = self._params.n_components, self.paths_[:, 0]
        shape = (leaves, self.n_features_in_)
        whole = np.array_equal(np.unique(cells), np.arange(self.n_components))
        if self.paths_.shape != (leaves, self.n_layers) or not whole or (np.diff(cells) < 0).any():
            raise ValueError(f"paths of {self.paths_.shape[0]} leaves that are no tree")
        if self._params.components.means.shape != shape:
            raise ValueError(f"parameters of another shape than {shape}, which is declared")
        self._publish_params()


def _labels(model: Mixture, reading: MixtureReading, block: Block, starts: Array) -> Array:
    return np.argmax(nested.log_cells(model, reading, block, starts), axis=1)


def _probabilities(model: Mixture, reading: MixtureReading, block: Block, starts: Array) -> Array:
    joint = nested.log_cells(model, reading, block, starts)
    return answers.shaped(normalise(joint)[1], block)


def _log_probabilities(
    model: Mixture, reading: MixtureReading, block: Block, starts: Array
) -> Array:
    joint = nested.log_cells(model, reading, block, starts)
    return answers.shaped(joint - normalise(joint)[0][:, None], block)
