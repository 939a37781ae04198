"""Gaussian components with one variance each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.families.axis_aligned import AxisGaussian
from mixfold.families.gaussian import GaussianParams
from mixfold.math.frame import Frame, frame_of, uniform, with_rounding


@dataclass(frozen=True)
class SphericalGaussian(AxisGaussian):
    """p(x | k) = N(x; mu_k, v_k I)."""

    name: ClassVar[str] = "spherical"

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        frame = frame_of(X, weight, robust=True)
        return uniform(with_rounding(frame, X) if self.rounded else frame)

    def floors(self, frame: Frame) -> Any:
        if frame.rounding is None:
            return self.floor
        return max(self.floor, float(frame.rounding[0]))  # one for all: the frame is uniform

    def spread(self, scatter: Array, shape: tuple[int, int]) -> Array:
        return np.broadcast_to(scatter[:, None], shape)

    def gather(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=1))

    def covariances(self, params: GaussianParams) -> Array:
        return np.asarray(params.scatter * params.frame.scale[0] ** 2)

    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        return GaussianParams(frame, frame.enter(means), covariances / frame.scale[0] ** 2)

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * (n_features + 1)

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return (n_components,)

    def _columns(self, scatter: Array, which: Array) -> Array:
        return scatter
