"""Gaussian components on one plane that all of them share.

    z | k ~ N(m_k, S_k) in d dimensions,   x | z ~ N(W z + offset, noise I),   W'W = I

With z integrated out a component is the Gaussian N(W m_k + offset, W S_k W' + noise I), and what a
mixture does with it is done already. The plane (W, offset, noise) belongs to all components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.families.component import ComponentFamily, Scores, Trust, dense_rows
from mixfold.families.gaussian import GaussianParams, Moments, flat
from mixfold.families.projection import complete, incomplete
from mixfold.families.projection.complete import CompleteRows, rows_about
from mixfold.families.projection.incomplete import IncompleteRows, seen_precisions
from mixfold.families.projection.plane import Update, plane_sums, polar, procrustes
from mixfold.families.projection.reading import (
    LATENT,
    ProjectionReading,
    latent_roots,
    read,
    rescale_reading,
)
from mixfold.families.projection.records import (
    Plane,
    ProjectionParams,
    ProjectionSums,
    change_origin,
    no_unseen,
)
from mixfold.math.frame import Frame, plain_frame
from mixfold.math.lifted import Sums
from mixfold.math.row_posteriors import row_posteriors
from mixfold.math.symmetric import (
    LOG_LIMIT,
    factorise,
    from_log_cholesky,
    log_cholesky,
    pack,
    unpack,
)

# numbers that ``log_density`` may hold at a time: 16 MB
_TILE_NUMBERS = 2**21
# digits of the scores by which repeated rows are known again
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Work:
    """Rows of a tile that are ``whole``, and those that are ``lacking`` entries, by number."""

    n_rows: int
    whole: Array | slice
    complete: CompleteRows | None
    lacking: Array
    incomplete: IncompleteRows | None


@dataclass(frozen=True)
class ProjectedGaussian(ComponentFamily):
    """The components, as points.

    Parameters
    ----------
    floor : float
        Least noise, relative to the mean variance of a column.
    size : int
        Latent dimension d.
    update : callable
        How the M step finds the plane, one of ``PLANE_UPDATES``.
    has_missing : bool
        Whether rows with missing entries will be learned from.
    fixed_latents : bool
        Whether an M step leaves the coordinates of the latents as they are, so that statistics of
        earlier passes can be blended with those to come.
    plane : Plane, optional
        Where a fit starts.
    """

    size: int = 1
    update: Update = procrustes
    has_missing: bool = False
    fixed_latents: bool = False
    plane: Plane | None = None

    name: ClassVar[str] = "projection"

    # ------------------------------------------------ start

    def _started(self) -> Plane:
        if self.plane is None:
            raise ValueError("a start needs a plane: give the family one, of principal axes say")
        return self.plane

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        return self._started().frame

    def start_rows(self, X: Any) -> Array:
        """Scores (n, d) on the axes of the start; where entries lack, at their expectation."""
        plane = self._started()
        lacks = rows_lacking(X)
        scores = np.empty((X.shape[0], self.size))
        whole = np.flatnonzero(~lacks)
        scores[whole] = rows_about(X[whole], plane.frame, plane.offset).onto(plane.axes)
        if lacks.any():
            U = plane.frame.enter(dense_rows(X[lacks])) - plane.offset
            mask = (~np.isnan(U)).astype(float)
            prior = plane.variance / plane.noise
            packed = seen_precisions(mask, plane.axes) * prior
            pull = np.where(mask > 0, U, 0.0) @ plane.axes * prior
            scores[lacks] = row_posteriors(packed, pull)[0]
        unit = np.sqrt(plane.variance + plane.noise)
        # what is repeated differs in its last digits, for products depend on where a row stands
        return np.asarray(np.round(scores / unit, _DIGITS) * unit)

    def view(self, frame: Frame, X: Array) -> Array:
        """Scores are such points already."""
        return X

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> ProjectionParams:
        sums = self.start_sums(U, resp)
        K = resp.shape[1]
        unit = GaussianParams(
            plain_frame(self.size), np.zeros((K, self.size)), np.tile(np.eye(self.size), (K, 1, 1))
        )
        start = ProjectionParams(frame, sums.axes, sums.offset, sums.noise, unit)
        return self.estimate(sums, start)[0]

    def start_sums(self, U: Array, resp: Array) -> ProjectionSums:
        """Moments of the latents of scores (n, d) with given shares; of the plane nothing is said.

        Scores are latents with noise: what they vary more than it is the latents' own.
        """
        plane = self._started()
        count = resp.sum(axis=0)
        means = (resp.T @ U) / np.where(count > 0, count, 1.0)[:, None]
        second = np.empty((len(count), self.size, self.size))
        for k, own in enumerate(count):
            away = U - means[k]
            values, vectors = np.linalg.eigh((resp[:, k, None] * away).T @ away / max(own, 1e-300))
            # a direction that starts without variance would stay so
            kept = np.maximum(values - plane.noise, 0.1 * plane.noise)
            second[k] = own * (vectors * kept) @ vectors.T
        counts = np.repeat(count[:, None], self.size, axis=1)
        moments = Moments(counts, np.zeros_like(means), pack(second), means)
        zero = np.zeros_like(plane.offset)
        columns = len(zero) if self.has_missing else 0
        return ProjectionSums(
            moments, 0.0, zero, 0.0, np.zeros_like(plane.axes), no_unseen(columns, self.size),
            plane.offset, plane.axes, plane.offset, plane.noise,
        )  # fmt: skip

    # ------------------------------------------------ M step

    def estimate(
        self, moments: ProjectionSums, previous: ProjectionParams
    ) -> tuple[ProjectionParams, Array]:
        clusters, touched = LATENT.estimate(moments.latents, previous.clusters)
        plane = self.estimate_plane(moments)
        params = ProjectionParams(previous.frame, *plane, clusters)
        if not self._orthonormal:
            params = orthonormal(params)
        return params, np.zeros_like(touched)

    @property
    def _orthonormal(self) -> bool:
        """Whether the M step keeps the axes orthonormal, and with them the latent coordinates."""
        return self.fixed_latents or self.update is procrustes

    def estimate_plane(self, moments: ProjectionSums) -> tuple[Array, Array, float]:
        """Axes, offset and noise; those of the pass where no row says anything about them."""
        sums = plane_sums(moments)
        if not sums.entries > 0:
            return moments.axes, moments.offset, moments.noise
        update = procrustes if self._orthonormal else self.update
        axes, shift = update(sums, moments.axes, moments.offset - moments.origin)
        noise = sums.squares(axes, shift) / sums.entries
        return axes, moments.origin + shift, max(noise, self.floor)

    def floor_message(self, component: int = 0) -> str:
        return (
            f"the noise reached the floor of {self.floor:g} relative to the mean variance of the "
            "columns: fewer n_components explain all of it"
        )

    def change_frame(self, params: ProjectionParams, frame: Frame) -> ProjectionParams:
        return rescale_reading(params, frame)

    def place(self, params: ProjectionParams, where: Array, points: Array) -> ProjectionParams:
        scores = (points - params.offset) @ params.axes
        return replace(params, clusters=LATENT.place(params.clusters, where, scores))

    def select(self, params: ProjectionParams, which: Array) -> ProjectionParams:
        return replace(params, clusters=LATENT.select(params.clusters, which))

    def n_free(self, n_components: int, n_features: int) -> int:
        """A change of the latents' coordinates is no parameter of the density."""
        d = self.size
        return LATENT.n_free(n_components, d) + n_features * (d + 1) + 1 - d * (d + 1)

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: ProjectionParams) -> Array:
        """Means, covariances with noise (they may be singular without), and the plane."""
        own = params.clusters
        factors, _ = factorise(own.scatter + params.noise * np.eye(self.size))
        return flat(own.means, log_cholesky(factors), plane_vector(params))

    def from_coordinates(self, params: ProjectionParams, vector: Array) -> ProjectionParams:
        plane, own = split_plane(params, vector, self.floor)
        means, spread = split_clusters(params, own)
        values, vectors = np.linalg.eigh(spread)
        scatter = vectors * np.maximum(values - plane[2], 0.0)[:, None] @ np.swapaxes(vectors, 1, 2)
        clusters = GaussianParams(params.clusters.frame, means, scatter)
        return orthonormal(ProjectionParams(params.frame, *plane, clusters))

    def derivatives(self, params: ProjectionParams, moments: ProjectionSums) -> Any:
        raise TypeError("a projection has no slopes; fit without quasi-newton")

    # ------------------------------------------------ E step

    def mode(self, params: ProjectionParams) -> ProjectionReading:
        return read(params, np.zeros(params.n_components), self.has_missing)

    def trust(self, reading: ProjectionReading, dtype: Any) -> Trust:
        latent = LATENT.trust(reading.scores, np.dtype(float))
        shift = float(reading.shift.max()) + reading.constant
        return Trust(latent.ceiling + shift, latent.depth)

    def log_ratios(self, block: Block, reading: ProjectionReading, reference: int) -> Array:
        """By the scores alone: what a row is away from the plane is the same for all components."""
        lacks = rows_lacking(block.X)
        out = np.empty((block.n_rows, len(reading.shift)))
        whole, params = np.flatnonzero(~lacks), reading.params
        t = rows_about(block.X[whole], params.frame, params.offset).onto(params.axes)
        out[whole] = LATENT.log_ratios(Block(t), reading.scores, reference)
        out[whole] += reading.shift - reading.shift[reference]
        if lacks.any():
            U = params.frame.enter(dense_rows(block.X[lacks]))
            found, _ = incomplete.incomplete_scores(U, reading, in_plane=True)
            out[lacks] = found - found[:, reference, None]
        return out

    def numbers_of_row(self, block: Block, reading: Any) -> int:
        n_latents = reading.params.n_components * self.size
        if sparse.issparse(block.X):
            return int(max(block.X.nnz // max(block.n_rows, 1), n_latents, 1))
        return int(max(block.X.shape[1], n_latents))

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return 4 * n_features + n_components * (self.size + 1) ** 2

    def fused_pass(
        self, block: Block, reading: ProjectionReading, log_weights: Array
    ) -> tuple[ProjectionSums, Sums] | None:
        return None

    def log_density(self, block: Block, reading: ProjectionReading) -> Array:
        tiles = self.tiles(block, reading)
        return np.concatenate([self.scores(tile, reading).log_density for tile in tiles])

    def tiles(self, block: Block, reading: ProjectionReading) -> Iterator[Block]:
        """Parts of a block that the E step can hold the posteriors of."""
        K = reading.params.n_components
        per_row = self.numbers_of_row(block, reading)
        if not block.complete:
            per_row = self.workspace_per_row(K, block.X.shape[1])
        rows = max(64, _TILE_NUMBERS // (8 * per_row))
        for first in range(0, block.n_rows, rows):
            yield block.part(first, first + rows)

    def scores(self, tile: Block, reading: ProjectionReading) -> Scores:
        if tile.complete:
            out, rows = complete.complete_scores(tile.X, reading)
            work = Work(tile.n_rows, slice(None), rows, np.empty(0, int), None)
            return Scores(out, work)
        lacks = rows_lacking(tile.X)
        whole, lacking = np.flatnonzero(~lacks), np.flatnonzero(lacks)
        out = np.empty((tile.n_rows, reading.params.n_components))
        some, others = None, None
        if whole.size:
            out[whole], some = complete.complete_scores(tile.X[whole], reading)
        if lacking.size:
            U = reading.frame.enter(dense_rows(tile.X[lacking]))
            out[lacking], others = incomplete.incomplete_scores(U, reading)
        return Scores(out, Work(tile.n_rows, whole, some, lacking, others))

    def moments(self, scores: Scores, resp: Array, reading: ProjectionReading) -> ProjectionSums:
        work: Work = scores.work
        parts = []
        if work.complete is not None:
            parts.append(complete.complete_sums(work.complete, resp[work.whole], reading))
        if work.incomplete is not None:
            if not reading.has_missing:
                raise ValueError(
                    "a row has missing entries, and the model was told that there are none; "
                    "begin the fit with the rows that have some"
                )
            parts.append(incomplete.incomplete_sums(work.incomplete, resp[work.lacking], reading))
        return reduce(add, parts)

    def about_frame(self, moments: ProjectionSums) -> ProjectionSums:
        """The same sums about the origin of the frame, and the latents about zero."""
        point, every = moments.origin, plane_sums(moments).everyone
        seen, latents = every.count, every.first
        if len(moments.unseen.count):
            seen, latents = seen - moments.unseen.count, latents - moments.unseen.first
        return replace(
            moments,
            latents=change_origin(moments.latents, np.zeros_like(moments.latents.origin)),
            first=moments.first + seen * point,
            square=moments.square + float(2 * point @ moments.first + np.sum(seen * point**2)),
            cross=moments.cross + point[:, None] * latents,
            origin=np.zeros_like(point),
        )

    # ------------------------------------------------ using a fit

    def latents(self, scores: Scores, resp: Array, reading: ProjectionReading) -> Array:
        """E[z | x] (n, d), averaged over the components."""
        work: Work = scores.work
        Z = np.empty((work.n_rows, self.size))
        if work.complete is not None:
            Z[work.whole] = complete.expected_latents(work.complete.t, resp[work.whole], reading)
        if work.incomplete is not None:
            Z[work.lacking] = np.einsum("nk,nkd->nd", resp[work.lacking], work.incomplete.z)
        return Z

    def normals_per_row(self, n_features: int) -> int:
        return n_features + self.size

    def complete_rows(
        self, scores: Scores, reading: ProjectionReading, component: int, normals: Array | None
    ) -> Array:
        work: Work = scores.work
        params = reading.params
        out = np.empty((work.n_rows, params.n_features))
        if work.complete is not None:
            out[work.whole] = work.complete.rows.dense() + params.offset
        if work.incomplete is None:
            return out
        rows_seen, k = work.incomplete, component
        z = rows_seen.z[:, k]
        noise: Array | float = 0.0
        if normals is not None:
            own = normals[work.lacking]
            values, vectors = np.linalg.eigh(unpack(rows_seen.covariance[:, k], self.size))
            roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            z = z + np.einsum("nij,nj->ni", roots, own[:, out.shape[1] :])
            noise = own[:, : out.shape[1]] * np.sqrt(params.noise)
        filled = np.where(rows_seen.mask > 0, rows_seen.deviation, z @ params.axes.T + noise)
        out[work.lacking] = filled + params.offset
        return out

    def condition(
        self, params: ProjectionParams, known: Array, values: Array
    ) -> tuple[Array, ProjectionParams]:
        """The components of the other columns: the known ones narrow the latents."""
        row = np.full((1, params.n_features), np.nan)
        row[0, known] = (values - params.frame.origin[known]) / params.frame.scale[known]
        rest = np.setdiff1d(np.arange(params.n_features), known)
        log_density, rows = incomplete.incomplete_scores(row, self.mode(params))
        # axes of the columns that are left need not be orthonormal, nor as many
        left, lengths, right = np.linalg.svd(params.axes[rest], full_matrices=False)
        turn = lengths[:, None] * right
        scatter = turn @ unpack(rows.covariance[0], self.size) @ turn.T
        frame = Frame(params.frame.origin[rest], params.frame.scale[rest])
        clusters = GaussianParams(plain_frame(len(turn)), rows.z[0] @ turn.T, scatter)
        kept = ProjectionParams(frame, left, params.offset[rest], params.noise, clusters)
        return log_density[0], kept

    def sample(self, params: ProjectionParams, labels: Array, normals: Array) -> Array:
        D = params.n_features
        roots = latent_roots(params.clusters)
        Z = params.clusters.means[labels]
        Z = Z + np.einsum("nde,ne->nd", roots[labels], normals[:, D:])
        noise = normals[:, :D] * np.sqrt(params.noise)
        return params.frame.leave(Z @ params.axes.T + params.offset + noise)


def rows_lacking(X: Any) -> Array:
    """Which rows (n,) of a table, dense or sparse, have missing entries."""
    if not sparse.issparse(X):
        return np.asarray(np.isnan(X).any(axis=1))
    lacks = np.zeros(X.shape[0], bool)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lacks[rows[np.isnan(X.data)]] = True
    return lacks


def orthonormal(params: ProjectionParams) -> ProjectionParams:
    """The same density with orthonormal axes; only for components without priors."""
    axes, turn = polar(params.axes)
    own = params.clusters
    scatter = turn @ own.scatter @ turn
    scatter = (scatter + np.swapaxes(scatter, 1, 2)) / 2
    return replace(params, axes=axes, clusters=GaussianParams(own.frame, own.means @ turn, scatter))


def plane_vector(params: ProjectionParams) -> Array:
    """Axes, offset and log noise as one vector."""
    return flat(params.axes, params.offset, np.log([params.noise]))


def split_plane(
    params: ProjectionParams, vector: Array, floor: float
) -> tuple[tuple[Array, Array, float], Array]:
    """Loadings (not orthonormal), offset and noise at the end of a vector, and its beginning."""
    split = len(vector) - params.axes.size - len(params.offset) - 1
    loadings = vector[split : split + params.axes.size].reshape(params.axes.shape)
    noise = float(np.exp(np.clip(vector[-1], -LOG_LIMIT, LOG_LIMIT)))
    offset = vector[split + params.axes.size : -1]
    return (loadings, offset, max(noise, floor)), vector[:split]


def split_clusters(params: ProjectionParams, vector: Array) -> tuple[Array, Array]:
    """Means (K, d) and positive definite matrices (K, d, d)."""
    K, size = params.clusters.means.shape
    means, factors = np.split(vector, [K * size])
    return means.reshape(K, size), from_log_cholesky(factors.reshape(K, -1), size)
