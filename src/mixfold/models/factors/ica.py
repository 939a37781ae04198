"""Independent component analysis by maximum likelihood, in the plane of the principal axes.

With z the whitened coordinates of a row in that plane, and s = W z,

    ln p(x) = ln |det W| - sum ln scales + sum_h ln p(s_h) + ln N(what is left; 0, noise I)

Each ln p(s_h) is bounded from below by a parabola (``math.source_densities``), so that with
C_h = the mean of weight(s_h) z z' the bound is ln |det W| - sum_h w_h' C_h w_h / 2. Its maximum
over one row of W with the others fixed is C_h^-1 m / sqrt(m' C_h^-1 m), m column h of W^-1. So the
likelihood never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Pilot,
    RowRandom,
    Stats,
    Update,
    record,
)
from mixfold.math.source_densities import SourceDensity
from mixfold.models.networks.factorization.sums import dense_rows

# turns over the rows of W in an update
_SWEEPS = 3


@record
@dataclass(frozen=True, slots=True)
class Plane:
    """Where sources are looked for: ``mean`` (D,), orthonormal ``axes`` (D, H), ``scales`` (H,),
    the standard deviations along them, and the variance ``noise`` of each direction beside it."""

    mean: Array
    axes: Array
    scales: Array
    noise: float

    def coordinates(self, X: Array) -> tuple[Array, Array]:
        """Whitened coordinates of rows (n, H), and the squares (n,) of what is left of them."""
        centred = X - self.mean
        along = centred @ self.axes
        left = centred - along @ self.axes.T
        return along / self.scales, np.einsum("ij,ij->i", left, left)

    def log_volume(self) -> float:
        """What all rows share in their log density, but for W."""
        beside = len(self.mean) - len(self.scales)
        rest = -0.5 * beside * np.log(2.0 * np.pi * self.noise) if beside else 0.0
        return float(rest - np.log(self.scales).sum())


@record
@dataclass(frozen=True, slots=True)
class UnmixingParams:
    """``unmixing`` W (H, H) of whitened coordinates in a plane."""

    plane: Plane
    unmixing: Array


@record
@dataclass(frozen=True)
class SourceSums(Stats):
    """Weighted sums over rows: ``moments`` weight(s_h) z z' (H, H, H), the log densities of the
    sources and of what is beside the plane, ``log_density``, and ``weight``."""

    moments: Array
    log_density: float
    weight: float


@dataclass(frozen=True, slots=True)
class IndependentSources:
    """Sources of one density each, independent of each other."""

    plane: Plane
    density: SourceDensity

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> UnmixingParams:
        """A random rotation: where axes are symmetric the principal ones are a saddle."""
        H = len(self.plane.scales)
        Q, R = np.linalg.qr(rng.standard_normal((H, H)))
        return UnmixingParams(self.plane, Q * np.sign(np.diag(R)))

    def prepare(self, params: UnmixingParams) -> UnmixingParams:
        return params

    def expect(self, reading: UnmixingParams, block: Block, rng: RowRandom) -> SourceSums:
        w = block.weights()
        z, left = reading.plane.coordinates(complete_rows(block))
        s = z @ reading.unmixing.T
        precisions = self.density.weight(s) * w[:, None]
        moments = np.stack([(z * p[:, None]).T @ z for p in precisions.T])
        found = self.density.log_density(s).sum(axis=1) - _beside(reading.plane, left)
        return SourceSums(moments, float(w @ found), float(w.sum()))

    def log_density(self, params: UnmixingParams, block: Block) -> Array:
        """ln p(x) of each row (n,)."""
        z, left = params.plane.coordinates(complete_rows(block))
        found = self.density.log_density(z @ params.unmixing.T).sum(axis=1)
        return np.asarray(found - _beside(params.plane, left) + self._volume(params))

    def _volume(self, params: UnmixingParams) -> float:
        return float(np.linalg.slogdet(params.unmixing)[1]) + params.plane.log_volume()

    # ------------------------------------------------ parameters

    def update(
        self, params: UnmixingParams, stats: SourceSums, context: Context
    ) -> Update[UnmixingParams]:
        W = np.array(params.unmixing)
        inverses = [np.linalg.inv(C / stats.weight) for C in stats.moments]
        for _ in range(_SWEEPS):
            for h, inverse in enumerate(inverses):
                m = np.linalg.inv(W)[:, h]
                new = inverse @ m
                W[h] = new / np.sqrt(m @ new)
        return Update(replace(params, unmixing=W))

    def objective(self, params: UnmixingParams, stats: SourceSums) -> float:
        return stats.log_density + stats.weight * self._volume(params)

    def total_weight(self, stats: SourceSums) -> float:
        return stats.weight

    def entropy(self, stats: SourceSums) -> float:
        return 0.0

    def coordinates(self, params: UnmixingParams) -> Array:
        return params.unmixing.ravel()

    def from_coordinates(self, params: UnmixingParams, vector: Array) -> UnmixingParams | None:
        W = vector.reshape(params.unmixing.shape)
        if not np.isfinite(W).all() or np.linalg.matrix_rank(W) < len(W):
            return None
        return replace(params, unmixing=W)

    def derivatives(self, params: UnmixingParams, stats: SourceSums) -> None:
        return None

    def sample(self, params: UnmixingParams, n: int, rng: np.random.Generator) -> Array:
        """n rows, with what is beside the plane."""
        plane, H = params.plane, len(params.unmixing)
        s = self.density.sample((n, H), rng)
        rows = plane.mean + (np.linalg.solve(params.unmixing, s.T).T * plane.scales) @ plane.axes.T
        if len(plane.mean) == H:
            return np.asarray(rows)
        noise = np.sqrt(plane.noise) * rng.standard_normal((n, len(plane.mean)))
        return np.asarray(rows + noise - (noise @ plane.axes) @ plane.axes.T)


def _beside(plane: Plane, left: Array) -> Array | float:
    """Half the squares of what is left of rows, in units of the noise."""
    return 0.5 * left / plane.noise if len(plane.mean) > len(plane.scales) else 0.0


def complete_rows(block: Block) -> Array:
    """Dense rows; missing entries are refused."""
    X = dense_rows(block.X)
    if np.isnan(X).any():
        raise ValueError(
            "X has missing entries (NaN), so that sources are not determined; fill them first, "
            "by PPCA().fit(X).impute(X), say"
        )
    return X
