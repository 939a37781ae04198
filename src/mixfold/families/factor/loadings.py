"""Whether each component has loadings of its own or all have the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, record
from mixfold.families.factor.regression import Regression, solve_rows, weighted_sum


@dataclass(frozen=True)
class Loadings(ABC):
    """A rule of sharing loadings."""

    tied: ClassVar[bool]

    @abstractmethod
    def estimate(self, moments: Regression, noise: Array) -> Array:
        """Loadings (K, D, d) that maximise the expected likelihood at the given noise (K, D)."""

    @abstractmethod
    def pool_covariances(self, covariances: Array, count: Array) -> Array:
        """Latent covariances (K, d, d) as they may be absorbed into the loadings."""

    @abstractmethod
    def gather(self, values: Array) -> Array:
        """(K, ...) summed over the components that share loadings."""

    @abstractmethod
    def drop_copies(self, loadings: Array) -> Array:
        """One copy of each."""

    def n_free_each(self, factors: Array, n_features: int) -> Array:
        """Free parameters of each set of loadings: a rotation of the latents changes nothing."""
        own = self.drop_copies(factors)
        return np.asarray(n_features * own - own * (own - 1) // 2)


@record
@dataclass(frozen=True)
class OwnLoadings(Loadings):
    """Every component its own subspace."""

    tied: ClassVar[bool] = False

    def estimate(self, moments: Regression, noise: Array) -> Array:
        return solve_rows(moments.zz, moments.xz)

    def pool_covariances(self, covariances: Array, count: Array) -> Array:
        return covariances

    def gather(self, values: Array) -> Array:
        return values

    def drop_copies(self, loadings: Array) -> Array:
        return loadings


@record
@dataclass(frozen=True)
class TiedLoadings(Loadings):
    """One set of loadings for all components."""

    tied: ClassVar[bool] = True

    def estimate(self, moments: Regression, noise: Array) -> Array:
        precision = moments.count / noise
        # noise that is the same ratio in all columns needs one system for all of them
        alike = np.ptp(noise, axis=1).max() == 0 or np.ptp(noise, axis=0).max() == 0
        if moments.zz.shape[1] == 1 and alike:
            precision = precision[:, :1]
        zz = weighted_sum(precision, moments.zz)
        xz = (precision[..., None] * moments.xz).sum(axis=0, keepdims=True)
        return np.repeat(solve_rows(zz, xz), len(moments.xz), axis=0)

    def pool_covariances(self, covariances: Array, count: Array) -> Array:
        common = np.tensordot(count / count.sum(), covariances, axes=1)
        return np.broadcast_to(common, covariances.shape)

    def gather(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=0, keepdims=True))

    def drop_copies(self, loadings: Array) -> Array:
        return loadings[:1]
