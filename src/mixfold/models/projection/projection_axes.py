"""The M step of a projection: axes, offset and noise from centred sums.

With Sxz = sum (x - mean)(z - mean)' and Szz likewise, the loadings A that are best minimise
tr(A Szz A') - 2 tr(A'Sxz), over all A, or over those with orthonormal columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array


@dataclass(frozen=True, slots=True)
class Centred:
    """Sums about the means: ``total`` of squared lengths, ``cross`` (D, d), ``latent`` (d, d)."""

    weight: float
    total: float
    cross: Array
    latent: Array

    def noise(self, loadings: Array) -> float:
        """Mean squared distance of the entries from what the loadings make of the latents."""
        explained = 2 * np.sum(loadings * self.cross)
        size = np.sum((loadings.T @ loadings) * self.latent)
        return float((self.total - explained + size) / (self.weight * len(self.cross)))


def polar(loadings: Array) -> tuple[Array, Array]:
    """Orthonormal axes W (D, d) and a symmetric P with loadings = W P."""
    left, values, right = np.linalg.svd(loadings, full_matrices=False)
    return np.asarray(left @ right), np.asarray((right.T * values) @ right)


def procrustes(sums: Centred) -> Array:
    """The best orthonormal loadings."""
    return polar(sums.cross)[0]


def regress(sums: Centred) -> Array:
    """The best loadings of all."""
    ridge = 1e-12 * max(float(np.trace(sums.latent)), np.finfo(float).tiny)
    latent = sums.latent + ridge * np.eye(len(sums.latent))
    return np.asarray(np.linalg.solve(latent, sums.cross.T).T)


UPDATES: dict[str, Callable[[Centred], Array]] = {"procrustes": procrustes, "regress": regress}
