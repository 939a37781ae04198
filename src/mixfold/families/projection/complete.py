"""E step of complete rows: one projection, then a mixture on the scores t = W'(x - offset).

    log p(x | k) = log N(t; m_k, S_k + noise I)
                   - ((D - d) log(2 pi noise) + (|x - offset|^2 - |t|^2) / noise) / 2
    E[z | x, k] = m_k + G_k (t - m_k),   Cov[z | x, k] = noise G_k,   G_k = S_k (S_k + noise I)^-1

Nothing of size D depends on the component. Dense rows are moved to the offset; sparse ones stay as
they are, and the results of their products are moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.families.component import Scores
from mixfold.families.dense import about
from mixfold.families.gaussian import Moments
from mixfold.families.projection.reading import LATENT, ProjectionReading
from mixfold.families.projection.records import ProjectionSums, no_unseen
from mixfold.math.frame import Frame, subtract_origin
from mixfold.math.symmetric import pack, unpack

# squared lengths in units of the noise beyond which differences of them lose the digits
_LIMIT = 1e-8 / np.finfo(float).eps


class Rows(Protocol):
    """Rows x (n, D) in a frame, about a point."""

    def dense(self) -> Array:
        """The rows as an array."""
        ...

    def onto(self, axes: Array) -> Array:
        """X A (n, d)."""
        ...

    def across(self, Z: Array) -> Array:
        """X'Z (D, d)."""
        ...

    def squared_residuals(self, scores: Array, axes: Array, noise: float) -> Array:
        """Squared distances (n,) from the span of orthonormal ``axes``, given X A."""
        ...


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Dense rows."""

    U: Array

    def dense(self) -> Array:
        return self.U

    def onto(self, axes: Array) -> Array:
        return np.asarray(self.U @ axes)

    def across(self, Z: Array) -> Array:
        return np.asarray(self.U.T @ Z)

    def squared_residuals(self, scores: Array, axes: Array, noise: float) -> Array:
        squares = np.vecdot(self.U, self.U)
        if squares.max(initial=0.0) <= _LIMIT * noise * self.U.shape[1]:
            return np.asarray(np.maximum(squares - np.vecdot(scores, scores), 0.0))
        rest = self.U - scores @ axes.T
        return np.asarray(np.vecdot(rest, rest))


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Sparse rows divided by the scale; ``point`` is still to be taken off."""

    X: Any
    point: Array

    def dense(self) -> Array:
        return np.asarray(self.X.toarray() - self.point)

    def onto(self, axes: Array) -> Array:
        return np.asarray(self.X @ axes - self.point @ axes)

    def across(self, Z: Array) -> Array:
        return np.asarray(self.X.T @ Z - np.outer(self.point, Z.sum(axis=0)))

    def squared_residuals(self, scores: Array, axes: Array, noise: float) -> Array:
        own = np.asarray(self.X.power(2).sum(axis=1)).ravel()
        squares = own - 2 * (self.X @ self.point) + self.point @ self.point
        return np.asarray(np.maximum(squares - np.vecdot(scores, scores), 0.0))


def rows_about(X: Any, frame: Frame, point: Array) -> MovedRows | SparseRows:
    """Complete rows in a frame of one scale, about a point in its coordinates."""
    if not sparse.issparse(X):
        return MovedRows(frame.enter(X) - point)
    moved = subtract_origin(X.astype(np.float64), frame.origin)
    return SparseRows(sparse.csr_array(moved) / frame.scale[0], point)


@dataclass(frozen=True, slots=True)
class CompleteRows:
    """Rows with their scores ``t`` (n, d) and squared distances from the plane ``left`` (n,).

    ``careful`` is what the mixture on the scores keeps of them where products about zero would
    lose digits.
    """

    rows: Rows
    t: Array
    left: Array
    careful: Scores | None


def complete_scores(X: Any, reading: ProjectionReading) -> tuple[Array, CompleteRows]:
    """Log densities (n, K) of complete rows."""
    params = reading.params
    rows = rows_about(X, params.frame, params.offset)
    t = rows.onto(params.axes)
    left = rows.squared_residuals(t, params.axes, params.noise)
    careful = LATENT.scores(Block(t), reading.scores) if reading.scores.theta is None else None
    out = LATENT.log_density(Block(t), reading.scores) if careful is None else careful.log_density
    rest = reading.constant - 0.5 * left / params.noise
    return out + rest[:, None] + reading.shift, CompleteRows(rows, t, left, careful)


def expected_latents(t: Array, resp: Array, reading: ProjectionReading) -> Array:
    """sum_k resp_k E[z | x, k], (n, d), of complete rows with the scores t."""
    means, gains = reading.params.clusters.means, reading.gains
    (n, d), K = t.shape, len(means)
    # one product for all components: G_k t, and m_k - G_k m_k besides
    each = (t @ gains.transpose(2, 0, 1).reshape(d, K * d)).reshape(n, K, d)
    rest = means - (gains @ means[:, :, None])[..., 0]
    return np.asarray(resp @ rest + np.einsum("nk,nkd->nd", resp, each))


def complete_sums(rows: CompleteRows, resp: Array, reading: ProjectionReading) -> ProjectionSums:
    """Statistics of complete rows for weighted responsibilities (n, K)."""
    weight = resp.sum(axis=1)
    # one product for the sum of the rows and for those with the latents
    sides = np.column_stack([weight, expected_latents(rows.t, resp, reading)])
    across = rows.rows.across(sides)
    params = reading.params
    return ProjectionSums(
        latents=_latent_moments(_score_moments(rows, resp, reading), reading),
        entries=float(weight.sum()) * params.n_features,
        first=across[:, 0],
        square=float(weight @ (rows.left + np.vecdot(rows.t, rows.t))),
        cross=across[:, 1:],
        unseen=no_unseen(params.n_features if reading.has_missing else 0, params.n_latents),
        origin=params.offset,
        axes=params.axes,
        offset=params.offset,
        noise=params.noise,
    )


def _score_moments(rows: CompleteRows, resp: Array, reading: ProjectionReading) -> Moments:
    """Moments of the scores of each component."""
    if rows.careful is not None:
        return LATENT.moments(rows.careful, resp, reading.scores)
    t = rows.t
    row, column = np.triu_indices(t.shape[1])
    count = np.repeat(resp.sum(axis=0)[:, None], t.shape[1], axis=1)
    second = resp.T @ (t[:, row] * t[:, column])
    return Moments(count, resp.T @ t, second, np.zeros_like(count))


def _latent_moments(scores: Moments, reading: ProjectionReading) -> Moments:
    """Moments of the latents about the means of their components, from those of the scores."""
    means, gains = reading.params.clusters.means, reading.gains
    count, first, second = about(means, scores, unpack(scores.second, means.shape[1]))
    back = np.swapaxes(gains, 1, 2)
    second = gains @ second @ back
    second += (count * reading.params.noise)[:, None, None] * (gains + back) / 2
    return Moments(scores.count, (gains @ first[:, :, None])[..., 0], pack(second), means)
