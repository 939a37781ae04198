"""E step of rows with missing entries: the posterior of the latents given what is seen.

The missing entries are integrated out, not imputed: a row with entries O has the precision
M = I + W_O' Psi_O^-1 W_O of its latents, made for all rows by one product with the mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.families.factor.reading import FactorReading
from mixfold.families.factor.records import FactorSums, Latents, no_latents
from mixfold.math.row_posteriors import add_outer, row_posteriors
from mixfold.math.symmetric import LOG_2PI, unpack


@dataclass(frozen=True, slots=True)
class IncompleteRows:
    """Rows in frame coordinates with what was inferred of them.

    ``mask`` (n, D) is 1 where an entry is seen; ``z`` (n, K, d) and packed ``covariance``
    (n, K, d (d + 1) / 2) are the posteriors of the latents.
    """

    U: Array
    mask: Array
    z: Array
    covariance: Array

    def deviation(self, mean: Array) -> Array:
        """u - mean, 0 where missing."""
        return np.where(self.mask > 0, self.U - mean, 0.0)


def incomplete_scores(U: Array, reading: FactorReading) -> tuple[Array, IncompleteRows]:
    """Log densities (n, K) of the seen entries."""
    K, _, d = reading.shape
    mask = (~np.isnan(U)).astype(float)
    pairs = d * (d + 1) // 2
    rows = IncompleteRows(U, mask, np.empty((len(U), K, d)), np.empty((len(U), K, pairs)))
    out = np.empty((len(U), K))
    common = LOG_2PI + 2 * reading.frame.log_scale
    for k in range(K):
        out[:, k] = -0.5 * (mask @ (common + np.log(reading.noise[k])) + _one(rows, reading, k))
    return out, rows


def _one(rows: IncompleteRows, reading: FactorReading, k: int) -> Array:
    """Posteriors under component k, written into ``rows``; ln|M| plus the quadratic form."""
    loadings, precision = reading.loadings[k], 1 / reading.noise[k]
    row, column = np.triu_indices(loadings.shape[1])
    products = loadings[:, row] * loadings[:, column] * precision[:, None]
    deviation = rows.deviation(reading.means[k])
    z, covariance, log_det = row_posteriors(
        rows.mask @ products, deviation @ (loadings * precision[:, None])
    )
    rows.z[:, k], rows.covariance[:, k] = z, covariance
    left = deviation - rows.mask * (z @ loadings.T)
    return np.asarray(log_det + (left**2) @ precision + (z**2).sum(axis=1))


def incomplete_sums(rows: IncompleteRows, resp: Array, reading: FactorReading) -> FactorSums:
    """Statistics for weighted responsibilities (n, K)."""
    K, D, d = reading.shape
    first, squares, cross = np.empty((K, D)), np.empty((K, D)), np.empty((K, D, d))
    count = resp.T @ rows.mask
    seen = Latents(count, np.empty((K, D, d)), np.empty((K, D, d, d)))
    total = no_latents(K, None, d)
    for k in range(K):
        r = resp[:, k, None]
        deviation, z = rows.deviation(reading.means[k]), r * rows.z[:, k]
        first[k], squares[k] = resp[:, k] @ deviation, resp[:, k] @ deviation**2
        cross[k] = deviation.T @ z
        second = r * add_outer(rows.covariance[:, k], rows.z[:, k])
        seen.first[k] = rows.mask.T @ z
        seen.second[k] = unpack(rows.mask.T @ second, d)
        total.count[k], total.first[k] = r.sum(), z.sum(axis=0)
        total.second[k] = unpack(second.sum(axis=0), d)
    if reading.isotropic:
        squares[:] = squares.mean(axis=1, keepdims=True)
    return FactorSums(first, squares, cross, total, no_latents(K, None, d), seen, reading.means)
