"""Factor components with Gaussian outputs, whose steps can be extrapolated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mixture import COORDINATE_LIMIT
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams


@dataclass(frozen=True)
class GaussianModel(SupervisedModel):
    """A mixture of factor models with Gaussian outputs."""

    outputs: GaussianOutputs

    def coordinates(self, params: SupervisedParams) -> Array:
        log_weights = np.log(np.maximum(params.weights, 1e-300))
        components = self.family.coordinates(params.components)
        outputs = self.outputs.coordinates(params.outputs)
        return np.concatenate([log_weights, components, outputs])

    def from_coordinates(self, params: SupervisedParams, vector: Array) -> SupervisedParams | None:
        K = params.n_components
        # coordinates are logarithms, or lengths in units of the spread of columns and outputs
        if not np.abs(vector).max() < COORDINATE_LIMIT:
            return None
        _, weights = normalise(vector[None, :K])
        weights = np.where(params.weights > 0, weights[0], 0.0)
        size = K + len(self.family.coordinates(params.components))
        return SupervisedParams(
            weights / weights.sum(),
            self.family.from_coordinates(params.components, vector[K:size]),
            self.outputs.from_coordinates(params.outputs, vector[size:]),
        )
