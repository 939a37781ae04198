"""Records of components whose covariance is known: what rows say of means, what is believed.

In frame coordinates, with A_n the inverse of the covariance of the entries that row n has, among
zeros, a row adds A_n (x_n - origin) to ``linear`` and A_n to ``curvature``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Stats, constant, record
from mixfold.families.dense import DenseReading
from mixfold.math.frame import Frame
from mixfold.math.symmetric import unpack


@record
@dataclass(frozen=True)
class KnownMoments(Stats):
    """sum r A (x - origin) (K, D), sum r A as packed triangles (K, Q), and the log density of the
    rows under means at ``origin`` (K, D)."""

    linear: Array
    curvature: Array
    base: float
    origin: Array = constant()  # noqa: RUF009 (it makes a field)

    def matrices(self) -> Array:
        """``curvature`` as (K, D, D)."""
        return unpack(self.curvature, self.linear.shape[1])

    def about(self, points: Array) -> tuple[Array, Array]:
        """Slope and value of the log density of the rows at means (K, D): (K, D) and (K,).

        The value is relative to that at ``origin``.
        """
        shift = points - self.origin
        pull = np.einsum("kde,ke->kd", self.matrices(), shift)
        return self.linear - pull, np.einsum("kd,kd->k", shift, self.linear - 0.5 * pull)


@record
@dataclass(frozen=True, slots=True)
class KnownPrior:
    """mu_k ~ N(mean, precision^-1) for every component."""

    mean: Array
    precision: Array


@record
@dataclass(frozen=True, slots=True)
class KnownPosterior:
    """mu_k ~ N(means_k, precisions_k^-1); ``scatter`` is the known covariance of the rows."""

    frame: Frame
    means: Array
    precisions: Array
    scatter: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])

    def covariances(self) -> Array:
        """Of the means, (K, D, D)."""
        return np.linalg.inv(self.precisions)


@record
@dataclass(frozen=True, slots=True)
class KnownMetric:
    """Information about the means: lower factors (K, D, D) of what the rows say."""

    factors: Array

    def solve(self, gradient: Array) -> Array:
        by_mean = gradient.reshape(*self.factors.shape[:2], 1)
        white = np.linalg.solve(self.factors, by_mean)
        return np.linalg.solve(np.swapaxes(self.factors, 1, 2), white).ravel()


@dataclass(frozen=True, slots=True)
class KnownReading(DenseReading):
    """``height`` is the log density at a mean; ``covariance`` that of the rows.

    ``doubt`` (K, D, D) is the covariance of means that are not known for sure: the expected log
    density is lower by half the trace of A_n times it, and ``constant`` is by that of whole rows.
    """

    height: float = 0.0
    covariance: Array | None = None
    doubt: Array | None = None

    def known(self) -> Array:
        assert self.covariance is not None
        return self.covariance

    def precision(self) -> Array:
        return np.asarray(self.whiten[0] @ self.whiten[0].T)


@dataclass(frozen=True, slots=True)
class KnownWork:
    """A tile as ``DenseGaussian`` leaves it, and log densities (n, K) under means for sure."""

    rows: Any
    log_density: Array


def change_origin(moments: KnownMoments, origin: Array) -> KnownMoments:
    """The same moments about another origin."""
    linear, gain = moments.about(origin)
    return replace(moments, linear=linear, base=moments.base + float(gain.sum()), origin=origin)


def solve_semidefinite(matrices: Array, vectors: Array) -> tuple[Array, Array]:
    """A^-1 b of positive semidefinite matrices (K, D, D) on the columns that they know.

    Also which columns (K, D) those are; the others are zero.
    """
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    known = diagonal > 0
    root = 1 / np.sqrt(np.where(known, diagonal, 1.0))
    scaled = matrices * root[:, :, None] * root[:, None, :]
    scaled += np.where(known, 0.0, 1.0)[:, :, None] * np.eye(matrices.shape[1])
    out = np.linalg.solve(scaled, (root * vectors)[:, :, None])[..., 0] * root
    return np.where(known, out, 0.0), known
