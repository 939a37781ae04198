"""What is asked of a stack of layers: sources, rows, classes, sparsity."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.networks.class_labels import (
    ClassPredictionMixin,
    has_classes,
    score_accuracy,
)
from mixfold.estimators.networks.deep_factor_files import DeepFiles
from mixfold.models.networks.factorization.model import dense_rows
from mixfold.models.networks.factorization.use import ResidualSums
from mixfold.models.networks.recognition import log_probabilities
from mixfold.models.networks.records import Network
from mixfold.models.networks.use import (
    StackParams,
    class_log_probabilities,
    filled,
    rows_of,
    sources_of,
)


class DeepAnswers(ClassPredictionMixin, DeepFiles):
    """Needs ``layers_``, ``_stack`` and ``network_``."""

    network_: Network | None
    _stack: StackParams
    _dtype: str

    def _depth(self, layer: Any) -> int:
        """The number of a layer, counted from 1; None is the top."""
        depth = len(self._stack.layers)
        if layer is None:
            return depth
        if not isinstance(layer, int | np.integer) or not 1 <= layer <= depth:
            raise ValueError(
                f"layer must be a number from 1 (next to the data) to {depth} (the top), or None "
                f"for the top; got {layer!r}"
            )
        return int(layer)

    # ------------------------------------------------ sources and rows

    def transform(self, X: Any, layer: int | None = None) -> Array:
        """Sources of the rows, inferred without labels.

        Parameters
        ----------
        X : as in ``fit``
        layer : int, default=None
            1 is the layer next to the data; None the top.

        Returns
        -------
        ndarray of shape (n_samples, size of the layer)
        """
        check_is_fitted(self)
        return self._stacked(X, partial(_sources, self._stack, self._depth(layer)))

    def inverse_transform(self, S: Any, layer: int | None = None) -> Array:
        """Rows at given sources, through all maps below.

        Parameters
        ----------
        S : array-like of shape (n_samples, size of the layer)
        layer : int, default=None
            Of which layer they are; None: the top.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        depth = self._depth(layer)
        S = check_array(S, dtype=[np.float64, np.float32])
        size = self._stack.layers[depth - 1].n_codes
        if S.shape[1] != size:
            raise ValueError(
                f"S must have one column for each of the {size} sources of layer {depth}, got "
                f"{S.shape[1]}"
            )
        return rows_of(self._stack, S.astype(np.float64), depth).astype(self._dtype)

    def reconstruct(self, X: Any, layer: int | None = None) -> Array:
        """Rows as the sources of a layer (None: the top) give them back, missing entries too."""
        check_is_fitted(self)
        return self._stacked(X, partial(_reconstructed, self._stack, self._depth(layer)))

    def reconstruction_error(
        self, X: Any, layer: int | None = None, sample_weight: Any = None
    ) -> float:
        """Half the squared error of a row, the mean over rows; missing entries do not count."""
        check_is_fitted(self)
        source = self._open(X, reset=False, weight=sample_weight)
        task = partial(_residuals, self._stack, self._depth(layer))
        sums = self._executor(source).map_reduce(task, source)
        return 0.5 * sums.squares / sums.weight

    # ------------------------------------------------ classes

    def _log_probabilities(self, X: Any) -> Array:
        """By the network if there is one, else by the sources of the top."""
        check_is_fitted(self)
        return self._stacked(X, partial(_log_classes, self._stack, self.network_))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes; without classes, or y, minus ``reconstruction_error``.

        Rows whose label is unknown, as in ``fit``, do not count.
        """
        check_is_fitted(self)
        if y is None or not len(self.classes_):
            return -self.reconstruction_error(X, sample_weight=sample_weight)
        return score_accuracy(self, X, y, sample_weight)

    @available_if(has_classes)
    def prototypes(self) -> Array:
        """What each class weighs in the columns, V'A_L ... A_1, (n_classes, n_features)."""
        check_is_fitted(self)
        out = self._stack.layers[-1].head()[0].T
        for layer in self._stack.layers[::-1]:
            out = out @ layer.codebook
        return np.asarray(out)

    # ------------------------------------------------ sparsity

    def sparsity(
        self, X: Any = None, t: float = 0.05, relative: bool = True
    ) -> list[dict[str, dict[str, float]]]:
        """How sparse sources, codebook and classifier of each layer are.

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
        list of dict
            As :meth:`MatrixFactorization.sparsity`, from the lowest layer to the top.
        """
        check_is_fitted(self)
        below, out = X, []
        for number, layer in enumerate(self.layers_):
            out.append(layer.sparsity(below, t, relative))
            below = None if X is None else self.transform(X, number + 1)
        return out


def _sources(params: StackParams, depth: int, block: Block) -> Array:
    if params.reading == "layers":
        params = params.below(depth)
    return shaped(sources_of(params, dense_rows(block.X))[depth - 1], block)


def _decoded(params: StackParams, depth: int, X: Array) -> Array:
    part = params.below(depth) if params.reading == "layers" else params
    return rows_of(params, sources_of(part, X)[depth - 1], depth)


def _reconstructed(params: StackParams, depth: int, block: Block) -> Array:
    return shaped(_decoded(params, depth, dense_rows(block.X)), block)


def _residuals(params: StackParams, depth: int, block: Block) -> ResidualSums:
    X = dense_rows(block.X)
    rest = X - _decoded(params, depth, X)
    rest[np.isnan(rest)] = 0.0
    weight = block.weights()
    return ResidualSums(float(weight @ (rest**2).sum(axis=1)), float(weight.sum()))


def _log_classes(params: StackParams, network: Network | None, block: Block) -> Array:
    if network is None:
        top = sources_of(params, dense_rows(block.X))[-1]
        return shaped(class_log_probabilities(params, top), block)
    X = block.X if sparse.issparse(block.X) else filled(params, block.X)
    return shaped(log_probabilities(network.cast(X.dtype), X), block)
