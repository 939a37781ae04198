"""Gaussian components that share one variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.families.spherical import SphericalGaussian


@dataclass(frozen=True)
class TiedSphericalGaussian(SphericalGaussian):
    """p(x | k) = N(x; mu_k, v I)."""

    name: ClassVar[str] = "tied-spherical"
    _own_scatter = False

    def spread(self, scatter: Array, shape: tuple[int, int]) -> Array:
        return np.broadcast_to(scatter, shape)

    def gather(self, values: Array) -> Array:
        return np.asarray(values.sum())

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features + 1

    @staticmethod
    def scatter_shape(n_components: int, n_features: int) -> tuple[int, ...]:
        return ()
