"""How the transformation of a component is found: three rules.

The first two are those of Piccardi et al. (2011). Neither maximises anything that has a maximum:
with the mean of the component following, the likelihood is largest where the transformation has
rank one, and only the ridge keeps it finite. The third has rows that are orthonormal, and a closed
form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from mixfold.contracts import Array
from mixfold.math.l1_sphere import nearest_on_sphere
from mixfold.math.signs import fix_signs
from mixfold.models.mixtures.mlit.records import Moments

# variances below this share of the largest are rounding
_NO_VARIANCE = 1e-12


class Rule(Protocol):
    """A way to choose Omega (d, D)."""

    @property
    def monotone(self) -> bool:
        """Whether the objective never falls."""
        ...

    def start(self, axes: Array) -> Array:
        """Omega from axes (d, D) that are orthonormal."""
        ...

    def move(
        self, omega: Array, mean: Array, covariance: Array, moments: Moments, step: int
    ) -> Array:
        """The next Omega, for the old mean and covariance of its component."""
        ...

    def offset(self, covariances: Array, ridge: float) -> Array:
        """What is added to the log density of each component (K,)."""
        ...


class _Plain:
    """Rules whose score is the log density of the transformed row."""

    monotone: ClassVar[bool] = False

    def offset(self, covariances: Array, ridge: float) -> Array:
        return np.zeros(len(covariances))


# norms of Omega (d, D) by which it may be divided
NORMS: dict[str, Callable[[Array], float]] = {
    "frobenius": lambda omega: float(np.linalg.norm(omega)),
    "spectral": lambda omega: float(np.linalg.norm(omega, 2)),
    "nuclear": lambda omega: float(np.linalg.norm(omega, "nuc")),
    "l1": lambda omega: float(np.linalg.norm(omega, 1)),
    "linf": lambda omega: float(np.linalg.norm(omega, np.inf)),
    "entrywise": lambda omega: float(np.abs(omega).sum()),
}


@dataclass(frozen=True, slots=True)
class Normalized(_Plain):
    """One sweep of least squares over the columns, then norm(Omega) = scale, by one of NORMS."""

    scale: float
    norm: str = "frobenius"

    def start(self, axes: Array) -> Array:
        return self._rescale(axes)

    def move(
        self, omega: Array, mean: Array, covariance: Array, moments: Moments, step: int
    ) -> Array:
        """w_j <- (mu a_j - sum_{i != j} w_i A_ij) / A_jj for j = 1..D, each with the newest others.

        A sweep of Gauss and Seidel is one triangular system.
        """
        return self._rescale(swept(omega, mean, moments))

    def _rescale(self, omega: Array) -> Array:
        length = NORMS[self.norm](omega)
        return omega * (self.scale / length) if length > 0 else omega


def swept(omega: Array, mean: Array, moments: Moments) -> Array:
    """All columns once, from the first to the last; those that are zero in all rows stay."""
    A, a = moments.second, moments.first
    lower = np.tril(A)
    right = np.outer(a, mean) - np.triu(A, 1) @ omega.T
    still = np.diagonal(A) <= 0
    lower[still] = 0.0
    lower[still, still] = 1.0
    right[still] = omega.T[still]
    return np.asarray(solve_triangular(lower, right, lower=True, check_finite=False)).T


@dataclass(frozen=True, slots=True)
class Constrained(_Plain):
    """Columns on the L1 sphere of radius scale / D, each the best there given the others.

    ``columns`` are moved in a step, in turn; None means all of them.
    """

    scale: float
    columns: int | None = None

    def start(self, axes: Array) -> Array:
        lengths = np.abs(axes).sum(axis=0)
        even = np.full(axes.shape, 1.0 / len(axes))  # a column of zeros has no direction of its own
        unit = np.where(lengths > 0, axes / np.where(lengths > 0, lengths, 1.0), even)
        return np.asarray(unit * (self.scale / axes.shape[1]))

    def move(
        self, omega: Array, mean: Array, covariance: Array, moments: Moments, step: int
    ) -> Array:
        A, a, D = moments.second, moments.first, omega.shape[1]
        omega, radius = omega.copy(), self.scale / D
        count = D if self.columns is None else min(self.columns, D)
        first = 0 if self.columns is None else (step - 1) * count
        for j in (np.arange(first, first + count)) % D:
            if A[j, j] <= 0:
                continue
            others = omega @ A[:, j] - omega[:, j] * A[j, j]
            best = (mean * a[j] - others) / A[j, j]
            omega[:, j] = nearest_on_sphere(best, covariance, radius, omega[:, j])
        return omega


@dataclass(frozen=True, slots=True)
class Orthonormal:
    """The d axes of least variance: what the rows of a component have in common.

    The score of a component is the expected one under jitter of the size of the ridge, so that the
    ridge is part of what is maximised.
    """

    monotone: ClassVar[bool] = True

    def start(self, axes: Array) -> Array:
        return axes

    def move(
        self, omega: Array, mean: Array, covariance: Array, moments: Moments, step: int
    ) -> Array:
        values, vectors = np.linalg.eigh(moments.covariance)
        still = int((values <= _NO_VARIANCE * values[-1]).sum())
        if still > len(omega):  # more than are wanted: those in which other rows differ most
            within = vectors[:, :still]
            _, turn = np.linalg.eigh(within.T @ moments.of_all @ within)
            vectors = within @ turn[:, ::-1]
        return np.ascontiguousarray(fix_signs(vectors[:, : len(omega)]).T)

    def offset(self, covariances: Array, ridge: float) -> Array:
        if ridge == 0:  # a singular covariance is named where densities are made
            return np.zeros(len(covariances))
        traces = np.trace(np.linalg.inv(covariances), axis1=1, axis2=2)
        return np.asarray(-0.5 * ridge * traces)
