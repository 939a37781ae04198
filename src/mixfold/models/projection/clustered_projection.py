"""Clusters and one projection, learned together: a Gaussian mixture in the latent space of a PPCA.

    c ~ pi,   z | c = k ~ N(m_k, S_k),   x | z ~ N(W z + mu, noise I),   W'W = I

With t = W'(x - mu) the columns split into what the clusters explain and what is left,

    log p(x, k) = log pi_k + log N(t; m_k, S_k + noise I)
                  - ((D - d) log(2 pi noise) + (|x - mu|^2 - |t|^2) / noise) / 2
    E[z | x, k] = m_k + G_k (t - m_k),   Cov[z | x, k] = noise G_k,   G_k = S_k (S_k + noise I)^-1

so the E step is that of a mixture on t; moments of the latents are linear in those of t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

import numpy as np

from mixfold.contracts import Array, Block, Context, Event, Pilot, RowRandom, Update
from mixfold.math.softmax import clamp, entropies, normalise
from mixfold.models.mixtures.rows import tiles, with_labels
from mixfold.models.mixtures.starts import KMeansStart, Start
from mixfold.models.projection.projection_axes import Centred, polar, procrustes
from mixfold.models.projection.projection_coordinates import LIMIT, plane_from, plane_vector
from mixfold.models.projection.projection_laws import (
    LatentLaw,
    LatentReading,
    MaximumLikelihood,
)
from mixfold.models.projection.projection_reading import (
    FAMILY,
    ProjectionReading,
    believed,
    expected_latents,
    read,
)
from mixfold.models.projection.projection_records import Plane, ProjectionParams, ProjectionStats
from mixfold.models.projection.projection_rows import row_width
from mixfold.models.projection.projection_start import sample_plane, start_moments
from mixfold.models.projection.projection_steps import centred, latent_moments, orthonormal

# ways in which ``KMeansStart`` looks at the scores, in turn; and starts with rows for all clusters
VIEWS, FULL = 3, 12


@dataclass(frozen=True)
class ClusteredProjection:
    """The model.

    Parameters
    ----------
    n_components : int
        Number of clusters K.
    size : int
        Latent dimension d.
    law : LatentLaw
        How the clusters are learned.
    axes : callable
        Loadings from centred sums: ``procrustes``, or ``regress`` where there are no priors.
    floor : float
        Least noise, relative to the mean variance of a column.
    start : Start
        How scores are first shared among clusters.
    plane : Plane, optional
        Where the projection starts; by default the principal axes of the sample.
    """

    n_components: int
    size: int
    law: LatentLaw = field(default_factory=MaximumLikelihood)
    axes: Callable[[Centred], Array] = procrustes
    floor: float = 1e-6
    start: Start = field(default_factory=KMeansStart)
    plane: Plane | None = None

    def __post_init__(self) -> None:
        if self.law.bayes and self.axes is not procrustes:
            raise ValueError(
                "with priors on the clusters the axes must stay orthonormal, or the scale of the "
                "latents would change under the prior; use update='procrustes'"
            )

    # ------------------------------------------------ start

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> ProjectionParams:
        plane = sample_plane(pilot, self.size, self.floor) if self.plane is None else self.plane
        K, used = self.n_components, self._sizes()[attempt % self.n_starts]
        moments = start_moments(pilot, plane, self.start, K, used, rng, attempt)
        prior = self.law.prior(self.size, K, plane.variance, float(plane.frame.scale[0]))
        clusters = self.law.first(moments, prior)
        return ProjectionParams(plane.frame, plane.axes, plane.offset, plane.noise, clusters)

    @property
    def n_starts(self) -> int:
        """Starts worth comparing."""
        return len(self._sizes())

    def _sizes(self) -> list[int]:
        """How many clusters get rows in each start; each number is seen in each way."""
        *fewer, most = self.law.sizes(self.n_components)
        return [most] * FULL + [size for size in fewer[::-1] for _ in range(VIEWS)]

    def reframed(self, params: ProjectionParams, pilot: Pilot) -> ProjectionParams:
        """Parameters from which a fit to other rows can start."""
        return replace(params)

    # ------------------------------------------------ E step

    def prepare(self, params: ProjectionParams) -> ProjectionReading:
        return read(params, self.law.read(params.clusters))

    def plug_in(self, params: ProjectionParams) -> ProjectionReading:
        """The density with weights, means and covariances at their points."""
        weights = self.law.weights(params.clusters)
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        gaussians = self.law.gaussians(params.clusters)
        return read(params, LatentReading(logs, gaussians, np.zeros(len(weights))))

    def _tiles(self, block: Block) -> list[Block]:
        width = row_width(block, self.n_components * self.size)
        return list(tiles(block, width, width))

    def expect(self, reading: ProjectionReading, block: Block, rng: RowRandom) -> ProjectionStats:
        block = with_labels(block, self.n_components)
        return reduce(add, [self._expect_tile(reading, tile) for tile in self._tiles(block)])

    def _expect_tile(self, reading: ProjectionReading, tile: Block) -> ProjectionStats:
        belief, weight = believed(reading, tile), tile.weights()
        log_total, resp = normalise(clamp(belief.log_joint, tile.y))
        weighted = resp * weight[:, None]
        Z = expected_latents(reading, belief.t, weighted)
        # one product for the sum of the rows and for those with the latents
        across = belief.rows.across(np.column_stack([weight, Z]))
        of_rows = log_total - 0.5 * belief.left / reading.params.noise + reading.constant
        return ProjectionStats(
            FAMILY.moments(belief.found, weighted, reading.scores),
            across[:, 0],
            float(weight @ (belief.left + np.vecdot(belief.t, belief.t))),
            across[:, 1:],
            float(weight @ of_rows),
            float(weight @ entropies(resp)),
            float(weight.sum()),
            reading.params.offset,
        )

    # ------------------------------------------------ M step

    def update(
        self, params: ProjectionParams, stats: ProjectionStats, context: Context
    ) -> Update[ProjectionParams]:
        reading = self.prepare(params)
        means = reading.latent.gaussians.means
        moments = latent_moments(stats.scores, means, reading.gains, params.noise)
        sums, mean, latent = centred(stats, moments)
        loadings = self.axes(sums)
        noise = sums.noise(loadings)
        events: tuple[Event, ...] = ()
        if noise < self.floor:
            noise, events = self.floor, (self._floored(context),)
        clusters, shift = self.law.settled(self.law.update(moments, params.clusters))
        offset = stats.offset + mean - loadings @ (latent + shift)
        fresh = ProjectionParams(params.frame, loadings, offset, noise, clusters)
        return Update(fresh if self.axes is procrustes else orthonormal(fresh), events)

    def _floored(self, context: Context) -> Event:
        words = (
            f"the noise reached the floor of {self.floor:g} relative to the mean variance of the "
            "columns: fewer n_components explain all of it"
        )
        return Event("floor", words, context.iteration)

    def objective(self, params: ProjectionParams, stats: ProjectionStats) -> float:
        return stats.log_likelihood - self.law.penalty(params.clusters)

    def total_weight(self, stats: ProjectionStats) -> float:
        return stats.weight

    def entropy(self, stats: ProjectionStats) -> float:
        return stats.entropy

    def n_free(self, n_features: int) -> int:
        """Parameters of the density: a change of the latents' coordinates is none."""
        K, d = self.n_components, self.size
        of_clusters = K - 1 + K * d + K * d * (d + 1) // 2
        return of_clusters + n_features * (d + 1) + 1 - d * (d + 1)

    # ------------------------------------------------ using a fit

    def log_joint(self, reading: ProjectionReading, block: Block) -> Array:
        """log pi_k p(x_n | k), (n, K)."""
        parts = []
        for tile in self._tiles(block):
            belief = believed(reading, tile)
            rest = reading.constant - 0.5 * belief.left / reading.params.noise
            parts.append(belief.log_joint + rest[:, None])
        return np.concatenate(parts)

    def latents(self, reading: ProjectionReading, block: Block) -> Array:
        """E[z | x] (n, d), averaged over the clusters."""
        parts = []
        for tile in self._tiles(block):
            belief = believed(reading, tile)
            parts.append(expected_latents(reading, belief.t, normalise(belief.log_joint)[1]))
        return np.concatenate(parts)

    def sample(
        self, params: ProjectionParams, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """n rows of the plug-in density, and the clusters they came from."""
        weights = self.law.weights(params.clusters)
        labels = np.searchsorted(np.cumsum(weights)[:-1], rng.random(n), side="right")
        own = self.law.gaussians(params.clusters)
        # a factor of a matrix that may be singular
        values, vectors = np.linalg.eigh(own.scatter)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        Z = own.means[labels]
        Z = Z + np.einsum("nde,ne->nd", roots[labels], rng.standard_normal((n, self.size)))
        noise = rng.standard_normal((n, len(params.offset))) * np.sqrt(params.noise)
        return params.frame.leave(Z @ params.axes.T + params.offset + noise), labels

    def ordered(self, params: ProjectionParams, which: Array) -> ProjectionParams:
        """The same model with its clusters in another order."""
        return replace(params, clusters=self.law.ordered(params.clusters, which))

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: ProjectionParams) -> Array:
        clusters = self.law.coordinates(params.clusters, params.noise)
        return np.concatenate([clusters, plane_vector(params)])

    def from_coordinates(self, params: ProjectionParams, vector: Array) -> ProjectionParams | None:
        split = len(vector) - params.axes.size - params.offset.size - 1
        if not np.abs(vector[self.n_components :]).max() < LIMIT:
            return None
        loadings, offset, noise = plane_from(params, vector[split:], self.floor)
        clusters = self.law.from_coordinates(params.clusters, vector[:split], noise)
        moved = ProjectionParams(params.frame, loadings, offset, noise, clusters)
        # priors know the scale of the latents: there only the directions of loadings count
        return replace(moved, axes=polar(loadings)[0]) if self.law.bayes else orthonormal(moved)

    def derivatives(self, params: ProjectionParams, stats: ProjectionStats) -> None:
        return None
