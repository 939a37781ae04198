"""Which entries of a table share a noise variance: columns, components, or both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array


@dataclass(frozen=True)
class Noise(ABC):
    """A rule of sharing. ``tied``: the components have the same noise; ``held``: it is given."""

    tied: bool = False
    held: bool = False

    # whether the columns may be scaled apart without leaving the family
    own_columns: ClassVar[bool]

    @abstractmethod
    def over_columns(self, values: Array) -> Array:
        """(K, D) summed over the columns that share a variance."""

    @abstractmethod
    def n_columns(self, n_features: int) -> int:
        """Variances that one component has."""

    def gather(self, values: Array) -> Array:
        """(K, D) summed over the entries that share a variance: (K or 1, columns)."""
        summed = self.over_columns(values)
        return summed.sum(axis=0, keepdims=True) if self.tied else summed

    def spread(self, shared: Array, shape: tuple[int, int]) -> Array:
        """The inverse: (K or 1, columns) to (K, D)."""
        return np.broadcast_to(shared, shape).copy()

    def reduced(self, noise: Array) -> Array:
        """One copy of each variance of (K, D)."""
        kept = noise[:1] if self.tied else noise
        return np.asarray(kept[:, : self.n_columns(noise.shape[1])])

    def n_free(self, n_components: int, n_features: int) -> int:
        if self.held:
            return 0
        return (1 if self.tied else n_components) * self.n_columns(n_features)


@dataclass(frozen=True)
class DiagonalNoise(Noise):
    """Every column its own variance: factor analysis."""

    own_columns: ClassVar[bool] = True

    def over_columns(self, values: Array) -> Array:
        return values

    def n_columns(self, n_features: int) -> int:
        return n_features


@dataclass(frozen=True)
class IsotropicNoise(Noise):
    """One variance for all columns: probabilistic PCA."""

    own_columns: ClassVar[bool] = False

    def over_columns(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=1, keepdims=True))

    def n_columns(self, n_features: int) -> int:
        return 1
