"""Gaussian components whose means lie on a smooth surface over a grid of latent points (GTM).

    mu_k = W' phi(z_k),   p(x | k) = N(x; mu_k, v I)

The z_k are a fixed grid on [-1, 1]^d, phi(z) a constant and radial functions about another grid.
The means are all that is kept of W, which they determine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.families.tied_spherical import TiedSphericalGaussian
from mixfold.math.frame import Frame

# directions of the basis of which the rows tell less than this share of the best known one
_UNKNOWN = 1e-13


@dataclass(frozen=True, slots=True)
class LatentGrid:
    """``n_points`` latent points and ``n_basis`` radial functions along each of d axes.

    ``width`` is the standard deviation of a radial function, in distances between neighbours.
    """

    n_latents: int
    n_points: int
    n_basis: int
    width: float

    @property
    def points(self) -> Array:
        """z_k, (n_points^d, d); the last axis runs fastest."""
        return _mesh(self.n_points, self.n_latents)

    def basis(self, Z: Array) -> Array:
        """phi of latents (n, d): (n, 1 + n_basis^d), the first column one."""
        centres = _mesh(self.n_basis, self.n_latents)
        reach = self.width * 2.0 / (self.n_basis - 1)
        gaps = Z[:, None, :] - centres
        radial = np.exp(-0.5 * (gaps**2).sum(axis=2) / reach**2)
        return np.column_stack([np.ones(len(Z)), radial])


def _mesh(n: int, d: int) -> Array:
    axis = np.linspace(-1.0, 1.0, n)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)


@cache
def _basis_at_points(grid: LatentGrid) -> Array:
    return grid.basis(grid.points)


@dataclass(frozen=True)
class LatentGridGaussian(TiedSphericalGaussian):
    """p(x | k) = N(x; W' phi(z_k), v I)."""

    grid: LatentGrid = LatentGrid(2, 15, 5, 1.0)
    name: ClassVar[str] = "latent-grid"

    @property
    def basis_at_points(self) -> Array:
        return _basis_at_points(self.grid)

    def mapping(self, params: GaussianParams) -> Array:
        """W (M, D) in data coordinates."""
        means = params.frame.leave(params.means)
        found: Array = np.linalg.lstsq(self.basis_at_points, means, rcond=None)[0]
        return found

    def estimate(self, moments: Moments, previous: GaussianParams) -> tuple[GaussianParams, Array]:
        """W by weighted least squares, for each column, then v.

        What the rows do not tell of W stays as it was.
        """
        phi, count = self.basis_at_points, moments.count
        pull = phi.T @ (moments.first + count * (moments.origin - previous.means))
        means = previous.means + phi @ _correct(phi, count, pull)
        gap = means - moments.origin
        squares = moments.second - gap * (2 * moments.first - count * gap)
        total = count.sum()
        floor = float(np.max(self.floors(previous.frame)))
        pooled = float(squares.sum()) / total if total > 0 else float(previous.scatter)
        held = pooled < floor and bool(self.is_spike(floor, previous.frame))
        params = GaussianParams(previous.frame, means, np.asarray(max(pooled, floor)))
        return params, np.full(len(means), held)

    def from_plane(self, frame: Frame, U: Array, weight: Array) -> GaussianParams:
        """The start: the grid on the plane of the first principal axes, as wide as the rows."""
        share = weight / weight.sum()
        mean = share @ U
        d, Z = self.grid.n_latents, self.grid.points
        _, lengths, axes = np.linalg.svd((U - mean) * np.sqrt(share)[:, None], full_matrices=False)
        size = min(d, len(lengths))
        axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
        plane = np.zeros((d, U.shape[1]))
        plane[:size] = axes[:size] * lengths[:size, None]
        wanted = mean + (Z / Z[:, 0].std()) @ plane
        phi = self.basis_at_points
        means = phi @ np.linalg.lstsq(phi, wanted, rcond=None)[0]
        step = 2.0 / (self.grid.n_points - 1) / Z[:, 0].std()
        between = (0.5 * step * lengths[:size].max(initial=0.0)) ** 2
        beside = float(lengths[d] ** 2) if len(lengths) > d else 0.0
        variance = max(between, beside, float(np.max(self.floors(frame))))
        return GaussianParams(frame, means, np.asarray(variance))

    def n_free(self, n_components: int, n_features: int) -> int:
        return int(np.linalg.matrix_rank(self.basis_at_points)) * n_features + 1


def _correct(phi: Array, count: Array, pull: Array) -> Array:
    """V (M, D) with phi' G_j phi V_j = pull_j, G_j = diag(count_j), for each column j."""
    if (count == count[:, :1]).all():
        return _solve((phi.T * count[:, 0]) @ phi, pull)
    columns = [
        _solve((phi.T * c) @ phi, p[:, None])[:, 0] for c, p in zip(count.T, pull.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def _solve(A: Array, right: Array) -> Array:
    values, vectors = np.linalg.eigh(A)
    known = values > _UNKNOWN * max(float(values[-1]), np.finfo(float).tiny)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=known)
    return np.asarray((vectors * inverse) @ (vectors.T @ right))
