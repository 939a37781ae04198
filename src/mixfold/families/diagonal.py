"""Gaussian components with their own diagonal covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.families.axis_aligned import AxisGaussian
from mixfold.families.gaussian import GaussianParams
from mixfold.math.frame import Frame


@dataclass(frozen=True)
class DiagonalGaussian(AxisGaussian):
    """p(x | k) = prod_d N(x_d; mu_kd, v_kd)."""

    name: ClassVar[str] = "diag"

    def spread(self, scatter: Array, shape: tuple[int, int]) -> Array:
        return scatter

    def gather(self, values: Array) -> Array:
        return values

    def covariances(self, params: GaussianParams) -> Array:
        return np.asarray(params.scatter * params.frame.scale**2)

    def from_covariances(self, frame: Frame, means: Array, covariances: Array) -> GaussianParams:
        return GaussianParams(frame, frame.enter(means), covariances / frame.scale**2)

    def n_free(self, n_components: int, n_features: int) -> int:
        return 2 * n_components * n_features

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return (n_components, n_features)

    def _columns(self, scatter: Array, which: Array) -> Array:
        return np.asarray(scatter[..., which])
