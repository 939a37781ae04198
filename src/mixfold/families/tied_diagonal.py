"""Gaussian components that share one diagonal covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.families.diagonal import DiagonalGaussian


@dataclass(frozen=True)
class TiedDiagonalGaussian(DiagonalGaussian):
    """p(x | k) = prod_d N(x_d; mu_kd, v_d)."""

    name: ClassVar[str] = "tied-diag"
    _own_scatter = False

    def spread(self, scatter: Array, shape: tuple[int, int]) -> Array:
        return np.broadcast_to(scatter, shape)

    def gather(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=0))

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features + n_features

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return (n_features,)
