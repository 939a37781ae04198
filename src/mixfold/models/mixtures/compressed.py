"""A table compressed to few rows with the same first two moments, enough for one Gaussian.

With R'R the covariance, the rows sqrt(r) R_i, i = 1..r, each of weight n / r, have the same sum of
squares and products as the n centred rows they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.symmetric import cholesky
from mixfold.models.factors.spectral_sums import SecondMoments


@dataclass(frozen=True, slots=True)
class Compressed:
    """Centred rows (r, D) of weight (r,) that stand for a table with this ``mean``."""

    rows: Array
    weight: Array
    mean: Array

    def both_sides(self) -> tuple[Array, Array]:
        """Rows on both sides of the mean: the same first moments too."""
        rows = np.concatenate([self.mean + self.rows, self.mean - self.rows])
        return rows, np.concatenate([self.weight, self.weight]) / 2


def compress_moments(moments: SecondMoments, center: bool = True) -> Compressed:
    S = moments.covariance(center)
    root = _root(S)
    n = len(root)
    weight = np.full(n, moments.sums.weight / n)
    mean = moments.sums.mean if center else np.zeros(len(S))
    return Compressed(np.sqrt(n) * root, weight, mean)


def _root(S: Array) -> Array:
    """R with R'R = S, of as many rows as S has directions."""
    scale = np.sqrt(np.maximum(np.diagonal(S), 0.0))
    safe = np.where(scale > 0, scale, 1.0)
    correlations = S / safe / safe[:, None]
    factor = cholesky(correlations) if (scale > 0).all() else None
    if factor is not None and np.diagonal(factor).min() > 1e-6:
        return np.asarray(factor.T * safe)
    values, vectors = np.linalg.eigh(correlations)
    real = values > 1e-13 * max(values[-1], np.finfo(float).tiny)
    if not real.any():
        return np.zeros((1, len(S)))
    return np.asarray(np.sqrt(values[real])[:, None] * vectors[:, real].T * scale)
