"""The M step of a plane: axes W, offset and noise from the sums of a pass.

Of the expected complete log-likelihood the plane minimises the squares of the seen entries,

    F(W, c) = sum_j [ square_j - 2 theta_j'b_j + theta_j'C_j theta_j ],   theta_j = (w_j, c_j),

where b_j = (cross_j, first_j) and C_j sums E[(z, 1)(z, 1)'] over the rows that show column j; the
noise is its least value per seen entry. Without constraints on W every column is a regression.

Orthonormal axes have a closed form only if all C_j are the same (Procrustes). Otherwise C_j is
replaced by C, the sum over all rows: the missing entries are filled with what the present plane
says of them, b_j + (C - C_j) theta_j. Since C - C_j is positive semidefinite, the least value of
the filled problem is no worse for F than the present plane, so each repetition lowers F, and its
fixed points are those of F. Complete rows take one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.families.dense import about
from mixfold.families.factor.records import Latents
from mixfold.families.projection.records import ProjectionSums
from mixfold.math.symmetric import unpack

# repetitions of the filled problem in one M step, and the change of the axes that ends them
_REPEATS, _SETTLED = 30, 1e-7


@dataclass(frozen=True, slots=True)
class PlaneSums:
    """What the plane is estimated from: rows by column, and latents over all rows (``count``,
    ``first`` (d,), ``second`` (d, d)) and over the missing entries of each column."""

    entries: float
    first: Array
    square: float
    cross: Array
    everyone: Latents
    unseen: Latents

    @property
    def has_missing(self) -> bool:
        return bool(self.unseen.count.any())

    def squares(self, axes: Array, shift: Array) -> float:
        """F: the squares that axes (D, d) and the shift (D,) of the offset leave."""
        fitted = np.sum(axes * self.cross) + shift @ self.first
        every, lacking = self.everyone, self.unseen
        own = np.sum((axes.T @ axes) * every.second) + 2 * (shift @ axes) @ every.first
        own += every.count * (shift @ shift)
        if self.has_missing:
            own -= np.einsum("jd,jde,je->", axes, lacking.second, axes)
            own -= 2 * shift @ np.vecdot(lacking.first, axes) + lacking.count @ shift**2
        return float(self.square - 2 * fitted + own)


# from the sums and the present axes and shift to better ones
Update = Callable[[PlaneSums, Array, Array], tuple[Array, Array]]


def plane_sums(sums: ProjectionSums) -> PlaneSums:
    """The sums of a pass with the latents of all components together, about zero."""
    latents = sums.latents
    zero = np.zeros_like(latents.origin)
    count, first, second = about(zero, latents, unpack(latents.second, zero.shape[1]))
    everyone = Latents(count.sum(), first.sum(axis=0), second.sum(axis=0))
    return PlaneSums(sums.entries, sums.first, sums.square, sums.cross, everyone, sums.unseen)


def polar(loadings: Array) -> tuple[Array, Array]:
    """Orthonormal axes W (D, d) and a symmetric P with loadings = W P."""
    left, values, right = np.linalg.svd(loadings, full_matrices=False)
    return np.asarray(left @ right), np.asarray((right.T * values) @ right)


def procrustes(sums: PlaneSums, axes: Array, shift: Array) -> tuple[Array, Array]:
    """The best orthonormal axes, or with missing entries better ones than ``axes``, and the shift
    (D,) of the offset from the origin of the sums."""
    n, total = sums.everyone.count, sums.everyone.first
    lacking = sums.unseen
    for _ in range(_REPEATS if sums.has_missing else 1):
        first, cross = sums.first, sums.cross
        if sums.has_missing:
            first = first + np.vecdot(lacking.first, axes) + lacking.count * shift
            cross = cross + np.einsum("jde,je->jd", lacking.second, axes)
            cross += lacking.first * shift[:, None]
        before = axes
        axes = polar(cross - np.outer(first / n, total))[0]
        shift = (first - axes @ total) / n
        if np.abs(axes - before).max() < _SETTLED:
            break
    return axes, shift


def regress(sums: PlaneSums, axes: Array, shift: Array) -> tuple[Array, Array]:
    """The best loadings of all (D, d), by column, and the shift (D,) of the offset."""
    every, size = sums.everyone, axes.shape[1]
    C = np.empty((1, size + 1, size + 1))
    C[0, :size, :size], C[0, size, size] = every.second, every.count
    C[0, :size, size] = C[0, size, :size] = every.first
    if sums.has_missing:
        lacking = sums.unseen
        C = np.repeat(C, len(axes), axis=0)
        C[:, :size, :size] -= lacking.second
        C[:, :size, size] -= lacking.first
        C[:, size, :size] -= lacking.first
        C[:, size, size] -= lacking.count
    mean = C[:, :size, size] / np.maximum(C[:, size, size, None], np.finfo(float).tiny)
    latent = C[:, :size, :size] - mean[:, :, None] * C[:, size, None, :size]
    trace = np.trace(latent, axis1=1, axis2=2)[:, None, None]
    latent = latent + 1e-12 * trace * np.eye(size)
    cross = sums.cross - sums.first[:, None] * mean
    # where latents do not vary nothing is said of the loadings: they stay
    flat = trace < 1e-290
    latent = np.where(flat, np.eye(size), latent)
    cross = np.where(flat[..., 0], axes, cross)
    if len(C) == 1:
        loadings = np.linalg.solve(latent[0], cross.T).T
    else:
        loadings = np.linalg.solve(latent, cross[:, :, None])[..., 0]
    seen = np.maximum(C[:, size, size], np.finfo(float).tiny)
    return np.asarray(loadings), np.asarray(sums.first / seen - np.vecdot(loadings, mean))


PLANE_UPDATES: dict[str, Update] = {"procrustes": procrustes, "regress": regress}
