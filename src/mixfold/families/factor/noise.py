"""Which entries of a table share a noise variance: columns, components, or both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, record


@dataclass(frozen=True)
class Noise(ABC):
    """A rule of sharing. ``tied``: the components have the same noise; ``held``: it is given.

    A subclass says which columns share a variance: ``over_columns`` and ``n_columns``, and where
    neither all columns nor none share one also ``spread`` and ``drop_copies``. Both flags may stay
    as they are: they only allow what a rule need not have.
    """

    tied: bool = False
    held: bool = False

    # whether each column may be measured in units of its own without leaving the family: False
    # where columns share a variance, which is then that of their common unit
    scales_columns: ClassVar[bool] = False
    # whether all columns of a component share one variance: sums of squares are then only needed
    # over all columns together, and are spread evenly over them
    isotropic: ClassVar[bool] = False

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

    def drop_copies(self, noise: Array) -> Array:
        """One copy of each variance of (K, D)."""
        kept = noise[:1] if self.tied else noise
        return np.asarray(kept[:, : self.n_columns(noise.shape[1])])

    def n_free(self, n_components: int, n_features: int) -> int:
        if self.held:
            return 0
        return (1 if self.tied else n_components) * self.n_columns(n_features)


@record
@dataclass(frozen=True)
class DiagonalNoise(Noise):
    """Every column its own variance: factor analysis."""

    scales_columns: ClassVar[bool] = True

    def over_columns(self, values: Array) -> Array:
        return values

    def n_columns(self, n_features: int) -> int:
        return n_features


@record
@dataclass(frozen=True)
class IsotropicNoise(Noise):
    """One variance for all columns: probabilistic PCA."""

    isotropic: ClassVar[bool] = True

    def over_columns(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=1, keepdims=True))

    def n_columns(self, n_features: int) -> int:
        return 1
