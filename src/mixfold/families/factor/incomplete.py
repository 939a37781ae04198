"""E step of rows with missing entries: the posterior of the latents given what is seen.

The missing entries are integrated out, not imputed: a row with entries O has the precision
M = I + W_O' Psi_O^-1 W_O of its latents, made for all rows by one product with the mask. Where
loadings and means have a posterior, M has the covariances of the loadings of O beside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array
from mixfold.families.factor.reading import Belief, FactorReading
from mixfold.families.factor.records import FactorSums, Latents, no_latents
from mixfold.math.row_posteriors import add_outer, row_posteriors
from mixfold.math.symmetric import LOG_2PI, unpack


@dataclass(frozen=True, slots=True)
class IncompleteRows:
    """Rows in frame coordinates with what was inferred of them.

    ``mask`` (n, D) is 1 where an entry is seen; ``z`` (n, K, d) and packed ``covariance``
    (n, K, d (d + 1) / 2) are the posteriors of the latents. ``log_det`` (n, K) is ln|M|, and
    ``pivots`` (n, K, d) the diagonal of M, where a posterior of the parameters was read.
    """

    U: Array
    mask: Array
    z: Array
    covariance: Array
    log_det: Array | None = None
    pivots: Array | None = None

    def deviation(self, mean: Array) -> Array:
        """u - mean, 0 where missing."""
        return np.where(self.mask > 0, self.U - mean, 0.0)


def incomplete_scores(U: Array, reading: FactorReading) -> tuple[Array, IncompleteRows]:
    """Log densities (n, K) of the seen entries."""
    K, _, d = reading.shape
    mask = (~np.isnan(U)).astype(float)
    pairs = d * (d + 1) // 2
    rows = IncompleteRows(U, mask, np.empty((len(U), K, d)), np.empty((len(U), K, pairs)))
    if reading.belief is not None:
        rows = replace(rows, log_det=np.empty((len(U), K)), pivots=np.empty((len(U), K, d)))
    out = np.empty((len(U), K))
    for k in range(K):
        of_entries = LOG_2PI + 2 * reading.frame.log_scale + np.log(reading.noise[k])
        if reading.belief is None:
            quadratic = _one(rows, reading, k)
        else:
            of_entries = of_entries - 2 * reading.belief.surplus[k]
            quadratic = _one_believed(rows, reading, reading.belief, k)
        out[:, k] = -0.5 * (mask @ of_entries + quadratic)
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


def _one_believed(rows: IncompleteRows, reading: FactorReading, belief: Belief, k: int) -> Array:
    """The same in expectation over loadings and means."""
    assert rows.log_det is not None and rows.pivots is not None
    loadings, precision = belief.loadings[k], 1 / reading.noise[k]
    d = loadings.shape[1]
    row, column = np.triu_indices(d)
    doubt = belief.doubt_of_entries(k)
    of_loadings = rows.mask @ doubt[:, row, column]
    of_both = rows.mask @ doubt[:, :d, d]
    products = loadings[:, row] * loadings[:, column] * precision[:, None]
    deviation = rows.deviation(belief.means[k])
    packed = rows.mask @ products + of_loadings
    z, covariance, log_det = row_posteriors(
        packed, deviation @ (loadings * precision[:, None]) - of_both
    )
    rows.z[:, k], rows.covariance[:, k], rows.log_det[:, k] = z, covariance, log_det
    rows.pivots[:, k] = 1 + packed[:, row == column]
    left = deviation - rows.mask * (z @ loadings.T)
    twice = np.where(row == column, 1.0, 2.0)
    spread = (of_loadings * twice * z[:, row] * z[:, column]).sum(axis=1)
    spread += 2 * (of_both * z).sum(axis=1) + rows.mask @ doubt[:, d, d]
    return np.asarray(log_det + (left**2) @ precision + (z**2).sum(axis=1) + spread)


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
