"""Gaussians whose covariance is low rank plus diagonal, by factors of size d only.

    z ~ N(0, I_d),   x | z ~ N(W z + mu, Psi),   C = W W' + Psi,   Psi diagonal

With M = I + W' Psi^-1 W = L L' and the whitened latents a = L^-1 W' Psi^-1 (x - mu),

    E[z | x]   = L^-T a                       ln|C| = ln|Psi| + 2 ln|L|
    Cov[z | x] = L^-T L^-1
    (x - mu)' C^-1 (x - mu) = |Psi^-1/2 (x - mu)|^2 - |a|^2

The smallest eigenvalue of M is at least 1, so its factor always exists. Nothing here is D x D.
Stacks: loadings W (K, D, d), noise variances psi (K, D), means (K, D).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.signs import fix_signs
from mixfold.math.symmetric import LOG_2PI


@dataclass(frozen=True, slots=True)
class LowRank:
    """``whiten`` (K, d, D) makes a of x - mu; ``back`` (K, d, d) is L^-T; ``log_det`` is ln|C|."""

    whiten: Array
    back: Array
    log_det: Array

    @property
    def covariances(self) -> Array:
        """Cov[z | x] (K, d, d), the same for every complete row."""
        return np.asarray(self.back @ np.swapaxes(self.back, -1, -2))


def low_rank(loadings: Array, noise: Array) -> LowRank:
    """The factors of K covariances W W' + Psi."""
    scaled = np.swapaxes(loadings / noise[..., None], -1, -2)
    size = loadings.shape[-1]
    root = np.linalg.cholesky(scaled @ loadings + np.eye(size))
    inverse = np.linalg.inv(root) if size else root
    log_det = np.log(noise).sum(axis=-1)
    log_det = log_det + 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return LowRank(inverse @ scaled, np.swapaxes(inverse, -1, -2), log_det)


def log_density(
    U: Array, mean: Array, loadings: Array, noise: Array, parts: LowRank, k: int
) -> tuple[Array, Array]:
    """ln N(u; mu, C) of complete rows under Gaussian k of a stack, and their whitened latents.

    The quadratic form is that of what the latents leave unexplained, plus their own: a sum of
    squares, which loses no digits where the noise is small beside the signal.
    """
    deviation = U - mean
    a = deviation @ parts.whiten[k].T
    z = a @ parts.back[k].T
    left = deviation - z @ loadings.T
    quadratic = (left**2) @ (1 / noise) + (z**2).sum(axis=1)
    return -0.5 * (U.shape[1] * LOG_2PI + parts.log_det[k] + quadratic), a


def log_density_ratios(
    U: Array, means: Array, loadings: Array, noise: Array, reference: int
) -> Array:
    """ln N(u; mu_k, C_k) - ln N(u; mu_r, C_r) (n, K), also where both are very large.

    The quadratic forms are sums of squares (see ``log_density``), and a^2 - b^2 = (a - b)(a + b)
    with a - b made of differences of the parameters: what two Gaussians share is taken out before
    it meets the row.
    """
    parts = low_rank(loadings, noise)
    gains = parts.back @ parts.whiten  # z = gains (u - mu)
    V, W = U - means[reference], loadings[reference]
    z = V @ gains[reference].T
    left = V - z @ W.T
    out = np.empty((len(U), len(means)))
    with np.errstate(over="ignore"):
        for k, mean in enumerate(means):
            moved = means[reference] - mean
            dz = V @ (gains[k] - gains[reference]).T + gains[k] @ moved
            dleft = moved - ((z + dz) @ (loadings[k] - W).T + dz @ W.T)
            gap = (dleft * (2 * left + dleft)) @ (1 / noise[k]) + (dz * (2 * z + dz)).sum(axis=1)
            gap += (left * (1 / noise[k] - 1 / noise[reference]) * left).sum(axis=1)
            out[:, k] = -0.5 * (gap + parts.log_det[k] - parts.log_det[reference])
    return out


def conditional(
    loadings: Array, noise: Array, means: Array, known: Array, values: Array
) -> tuple[Array, Array, Array]:
    """K Gaussians of the other columns, given (K, len(known)) or (len(known),) known entries.

    Returns ln of the density of the known entries (K,), and means and loadings of the others;
    their noise is unchanged, since given z the columns are independent.
    """
    rest = np.setdiff1d(np.arange(means.shape[1]), known)
    parts = low_rank(loadings[:, known], noise[:, known])
    deviation = values - means[:, known]
    a = np.einsum("kdj,kj->kd", parts.whiten, deviation)
    z = np.einsum("kde,ke->kd", parts.back, a)
    left = deviation - np.einsum("kjd,kd->kj", loadings[:, known], z)
    quadratic = (left**2 / noise[:, known]).sum(axis=1) + (z**2).sum(axis=1)
    log_known = -0.5 * (known.size * LOG_2PI + parts.log_det + quadratic)
    remaining = loadings[:, rest] @ parts.back
    return log_known, means[:, rest] + np.einsum("kjd,kd->kj", remaining, a), remaining


def draw(loadings: Array, noise: Array, means: Array, labels: Array, normals: Array) -> Array:
    """Rows (n, D) of Gaussians ``labels`` from standard normals (n, D + d): noise, then latents."""
    size = means.shape[1]
    out = means[labels] + normals[:, :size] * np.sqrt(noise)[labels]
    for k in np.unique(labels):
        mine = labels == k
        out[mine] += normals[mine, size:] @ loadings[k].T
    return np.asarray(out)


def canonical_axes(loadings: Array, noise: Array) -> Array:
    """Loadings turned so that W' Psi^-1 W is diagonal and decreasing, (K, D, d).

    The entry of largest modulus in each column is positive.
    """
    if loadings.shape[-1] == 0:
        return loadings
    gram = np.swapaxes(loadings / noise[..., None], -1, -2) @ loadings
    _, turn = np.linalg.eigh(gram)
    return fix_signs(loadings @ turn[..., ::-1])
