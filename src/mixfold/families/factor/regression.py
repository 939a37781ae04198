"""The M step of loadings: rows regressed on their latents.

Per component k and entry j, with moments about the means of the rows that show the entry,

    w_kj = Cov[z z]^-1 Cov[z x_j],   v_kj = Var[x_j] - 2 w'Cov[z x_j] + w'Cov[z z] w

Without missing entries Cov[z z] is the same for all j, which is then one entry (J = 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.families.factor.records import FactorSums, Latents, entries

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True)
class Regression:
    """Moments of the rows and latents: ``count`` (K, J), means ``x`` (K, D) and ``z`` (K, J, d),
    covariances ``xz`` (K, D, d) and ``zz`` (K, J, d, d). ``xx`` (K, D) is a sum, not a mean: of
    columns that share a noise variance only their total is known."""

    count: Array
    x: Array
    z: Array
    xx: Array
    xz: Array
    zz: Array


def regression(sums: FactorSums, fixed_means: bool) -> Regression:
    """Moments per unit of weight; about ``sums.origin`` itself if the means are fixed there."""
    seen = entries(sums)
    n = np.maximum(seen.count, _TINY)
    x, z = sums.first / n, seen.first / n[..., None]
    if fixed_means:
        x, z = np.zeros_like(x), np.zeros_like(z)
    return Regression(
        seen.count,
        x,
        z,
        sums.squares - seen.count * x**2,
        sums.cross / n[..., None] - x[..., None] * z,
        _covariance(seen, n, z),
    )


def _covariance(latents: Latents, n: Array, mean: Array) -> Array:
    """Of the latents; the identity where no row tells of them, so that it can be inverted."""
    zz = latents.second / n[..., None, None] - mean[..., :, None] * mean[..., None, :]
    unknown = (latents.count <= 0)[..., None, None]
    return np.where(unknown, np.eye(zz.shape[-1]), 0.5 * (zz + np.swapaxes(zz, -1, -2)))


def latent_prior(rows: Latents, fixed_means: bool) -> tuple[Array, Array]:
    """Mean (K, d) and covariance (K, d, d) that the posteriors of all rows have together."""
    n = np.maximum(rows.count, _TINY)
    mean = rows.first / n[:, None]
    if fixed_means:
        mean = np.zeros_like(mean)
    return mean, _covariance(rows, n, mean)


def residual_squares(moments: Regression, loadings: Array) -> Array:
    """Sums (K, D) of squares that any loadings (K, D, d) leave to the noise."""
    gain = ((times(moments.zz, loadings) - 2 * moments.xz) * loadings).sum(axis=-1)
    return np.asarray(moments.xx + moments.count * gain)


def times(matrices: Array, rows: Array) -> Array:
    """Symmetric matrices (K, J, d, d) times rows (K, D, d), J = 1 or D."""
    if matrices.shape[1] == 1:
        return np.asarray(rows @ matrices[:, 0])
    return np.asarray(np.einsum("kjde,kje->kjd", matrices, rows))


def weighted_sum(weight: Array, matrices: Array) -> Array:
    """sum_k weight_kj matrices_kj, (1, J, d, d), without one (K, J, d, d) where J is 1."""
    if matrices.shape[1] == 1:
        return np.asarray(np.tensordot(weight.T, matrices[:, 0], axes=1)[None])
    return np.asarray(np.einsum("kj,kjde->jde", weight, matrices)[None])


def solve_rows(zz: Array, xz: Array) -> Array:
    """w with zz w = xz for (K, J, d, d) and (K, D, d), J = 1 or D; the shortest of several."""
    if zz.shape[-1] == 0:
        return xz
    if zz.shape[1] == 1:
        solved = _solve(zz[:, 0], np.swapaxes(xz, 1, 2))
        return np.ascontiguousarray(np.swapaxes(solved, 1, 2))
    return _solve(zz, xz[..., None])[..., 0]


def _solve(zz: Array, xz: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(zz, xz))
    except np.linalg.LinAlgError:  # latents that do not vary, such as those of one far row
        return np.asarray(np.linalg.pinv(zz, hermitian=True) @ xz)
