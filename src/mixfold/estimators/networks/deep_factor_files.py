"""Files of a stack: those of its layers inside one."""

from __future__ import annotations

from typing import Any, Self

from mixfold.contracts import Array
from mixfold.estimators.networks.matrix_factorization import MatrixFactorization
from mixfold.estimators.shell.base import MixfoldEstimator


def packed(layer: MatrixFactorization) -> dict[str, Any]:
    """A fitted layer as values that a file can hold."""
    return {"parameters": layer._plain_parameters(), "state": layer._state()}


def unpacked(tree: dict[str, Any]) -> MatrixFactorization:
    return MatrixFactorization._from_state(tree)


class DeepFiles(MixfoldEstimator):
    """``save`` and ``load`` of an estimator that has ``layers_``."""

    classes_: Array
    layers_: list[MatrixFactorization]

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "layers": [packed(layer) for layer in self.layers_]}

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        state = dict(tree["state"])
        layers = [unpacked(one) for one in state.pop("layers")]
        estimator = super()._from_state({**tree, "state": state})
        estimator.layers_ = layers
        estimator._check_layers()
        return estimator

    def _check_layers(self) -> None:
        """Refuse layers that do not fit each other."""
        width = self.n_features_in_
        for number, layer in enumerate(self.layers_):
            if layer.n_features_in_ != width:
                raise ValueError(f"layer {number + 1} does not fit the one below")
            width = layer.n_components
