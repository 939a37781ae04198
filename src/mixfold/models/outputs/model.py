"""Factor components with a second view: the multi-view factor model.

    k ~ pi,   z ~ N(0, I),   x | z, k ~ N(W_k z + mu_k, Psi_k),   outputs | z, k: see ``outputs``

Rows without outputs are read by their columns alone. A labelled row may be read in several ways at
once, each with its share: the objective is the sum of their log-likelihoods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Event,
    Metric,
    Pilot,
    RowRandom,
    Shares,
    Stats,
    Update,
    record,
)
from mixfold.families.component import dense_rows
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.inferred_latents import sum_inferred_latents
from mixfold.families.factor.priors import turn_to_axes
from mixfold.math.frame import similar_frame
from mixfold.math.softmax import entropies, normalise
from mixfold.mixing.free import FreeWeights
from mixfold.models.mixtures.mixture import COORDINATE_LIMIT
from mixfold.models.mixtures.rows import informative, tiles, without_empty_rows
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs, as_inference
from mixfold.models.outputs.outputs import Latent, Outputs, Replicate, latent_prior

# numbers that the latents of a tile may take
_TILE_NUMBERS = 2**21


@record
@dataclass(frozen=True, slots=True)
class SupervisedParams:
    """Mixing weights (K,), factor components, and the parameters of the outputs."""

    weights: Shares
    components: FactorParams
    outputs: Any

    @property
    def n_components(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, slots=True)
class SupervisedReading:
    log_weights: Array
    components: Any
    outputs: Any


@record
@dataclass(frozen=True)
class SupervisedStats(Stats):
    """Statistics of both views, and the parts of the objective."""

    counts: Array
    components: Any
    outputs: Any
    log_likelihood: float
    entropy: float
    weight: float


@record
@dataclass(frozen=True, slots=True)
class SupervisedMetric:
    """Inverse information of the complete data: of the weights, the columns and the outputs."""

    expected: Array
    components: Metric
    size: int
    outputs: Metric

    def solve(self, gradient: Array) -> Array:
        K = len(self.expected)
        weights = gradient[:K] / np.maximum(self.expected, np.finfo(float).tiny)
        columns = self.components.solve(gradient[K : K + self.size])
        return np.concatenate([weights, columns, self.outputs.solve(gradient[K + self.size :])])


@dataclass(frozen=True)
class SupervisedModel:
    """A mixture of factor models with outputs.

    ``start`` makes its first parameters; ``expand``: whether the prior of the latents is set free
    and absorbed in each M step, which moves the latents from pass to pass.
    """

    n_components: int
    family: FactorFamily
    outputs: Outputs
    start: Any
    mixing: FreeWeights = field(default_factory=FreeWeights)
    expand: bool = True

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> SupervisedParams:
        started: SupervisedParams = self.start(self, pilot, rng, attempt)
        return started

    # ------------------------------------------------ E step

    def prepare(self, params: SupervisedParams) -> SupervisedReading:
        components = self.family.mode(params.components)
        outputs = self.outputs.read(params.outputs, components.parts.covariances)
        return SupervisedReading(self.mixing.mode(params.weights), components, outputs)

    def latents(self, reading: SupervisedReading, block: Block) -> tuple[Array, Latent]:
        """Joint log densities log pi_k p(x | k) (n, K), and the latents given the columns."""
        # outputs with little noise would tell the rounding of latents in single precision
        block = replace(block, X=block.X.astype(np.float64, copy=False))
        found = self.family.posterior(block, reading.components, covariances=True)
        assert found.covariances is not None
        spread = found.covariances
        spread = spread[None] if spread.ndim == 3 else spread
        return found.log_density + reading.log_weights, Latent(found.means, spread)

    def log_joint(self, reading: SupervisedReading, block: Block) -> Array:
        """log pi_k p(x_n | k), (n, K), by the columns alone."""
        found = self.family.posterior(block, reading.components)
        return np.asarray(found.log_density + reading.log_weights)

    def expect(self, reading: SupervisedReading, block: Block, rng: RowRandom) -> SupervisedStats:
        block = without_empty_rows(block)
        if block.y is None:
            block = replace(block, y=self.outputs.unknown(block.n_rows))
        assert block.y is not None
        # columns are tiled where they are read: what is kept here are the latents
        K, d = self.n_components, self.family.size
        size = self.outputs.workspace_per_row(block.y, K, d)
        parts = tiles(block, K * (d + 1) ** 2, max(size, 1))
        return reduce(add, [self._expect_tile(reading, tile) for tile in parts])

    def _expect_tile(self, reading: SupervisedReading, tile: Block) -> SupervisedStats:
        joint, latent = self.latents(reading, tile)
        y = tile.y
        assert y is not None
        replicates = self.outputs.replicates(y, latent, reading.outputs)
        weight = tile.weights()
        resp, log_likelihood = self._share_rows(joint, replicates, weight)
        outputs = self.outputs.sums(y, replicates, resp, reading.outputs)
        used = [as_inference(c, r) for c, r in zip(replicates, resp, strict=True) if c.share.any()]
        sums = sum_inferred_latents(tile, reading.components, used)
        _, plain = normalise(joint)
        return SupervisedStats(
            reduce(np.add, resp).sum(axis=0),
            sums,
            outputs,
            log_likelihood,
            float(weight @ entropies(plain)),
            float(weight.sum()),
        )

    @staticmethod
    def _share_rows(
        joint: Array, replicates: Sequence[Replicate], weight: Array
    ) -> tuple[list[Array], float]:
        """Weighted responsibilities (n, K) of each replicate, and their part of the objective."""
        found, total = [], 0.0
        for replicate in replicates:
            log_total, resp = normalise(joint + replicate.log_probability)
            shared = weight * replicate.share
            found.append(resp * shared[:, None])
            total += float(shared @ log_total)
        return found, total

    # ------------------------------------------------ M step

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        relevance = self.relevances(params)
        components, touched = self.family.estimate(stats.components, params.components, relevance)
        outputs = self.outputs.update(stats.outputs, params.outputs, relevance)
        fresh = SupervisedParams(self.mixing.posterior(stats.counts), components, outputs)
        told = tuple(
            Event("floor", self.family.floor_message(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(touched)
        )
        return Update(self._expand_parameters(fresh, stats), told)

    def _expand_parameters(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> SupervisedParams:
        """The prior of the latents set free and absorbed again (parameter expansion)."""
        if not (self.expand and self.family.size):
            return params
        if self.family.loadings_prior is None:
            mean, root = self._latent_prior(params, stats)
        else:  # the prior wants the loadings as long as they are
            mean = latent_prior(stats.components.rows, self.outputs.tied)[0]
            root = turn_to_axes(self._squares_of_factors(params))
        return self._transform_latents(params, mean, root)

    def _transform_latents(
        self, params: SupervisedParams, mean: Array, root: Array
    ) -> SupervisedParams:
        """The same model of latents z' with z = mean + root z'."""
        old = params.components
        shift = np.einsum(
            "kjd,kd->kj", old.loadings, np.broadcast_to(mean, old.loadings.shape[::2])
        )
        components = replace(old, means=old.means + shift, loadings=old.loadings @ root)
        outputs = self.outputs.transform_latents(params.outputs, mean, root)
        return replace(params, components=components, outputs=outputs)

    def _latent_prior(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> tuple[Array, Array]:
        """Mean and root of the covariance that the latents are to have."""
        return latent_prior(stats.components.rows, self.outputs.tied)

    def objective(self, params: SupervisedParams, stats: SupervisedStats) -> float:
        return stats.log_likelihood - self.outputs.penalty(params.outputs) - self.penalty(params)

    # ------------------------------------------------ priors of the loadings

    def _squares_of_factors(self, params: SupervisedParams) -> Array:
        """Products (K or 1, d, d) of the columns of the loadings of both views."""
        found = self.family.squares_of(params.components.loadings)
        return np.asarray(found + self.outputs.squares_of(params.outputs))

    def entries_of_factor(self, params: SupervisedParams) -> int:
        """Loadings of both views that share a precision."""
        own = self.outputs.n_loadings(params.outputs)
        return self.family.entries_of_factor(params.components) + own

    def relevances(self, params: SupervisedParams) -> Array | None:
        """Expected precisions (K or 1, d) of the loadings, if they have a prior."""
        prior = self.family.loadings_prior
        if prior is None:
            return None
        squares = np.diagonal(self._squares_of_factors(params), axis1=1, axis2=2)
        return prior.relevances(squares, self.entries_of_factor(params))

    def used_factors(self, params: SupervisedParams) -> Array:
        """Which factors (K or 1, d) a prior of the loadings has not made vanish."""
        prior = self.family.loadings_prior
        if prior is None:
            return np.ones((1, self.family.size), bool)
        squares = np.diagonal(self._squares_of_factors(params), axis1=1, axis2=2)
        return prior.used(squares, self.entries_of_factor(params))

    def turned(self, params: SupervisedParams) -> SupervisedParams:
        """The same model with the factors turned as a prior of their loadings likes best."""
        if self.family.loadings_prior is None or not self.family.size:
            return params
        root = turn_to_axes(self._squares_of_factors(params))
        return self._transform_latents(params, np.zeros(root.shape[:2]), root)

    def without_unused(self, params: SupervisedParams) -> SupervisedParams:
        """The model with loadings of zero where a prior has made a factor vanish."""
        found = self.turned(params)
        used = self.used_factors(found)
        keep = np.eye(self.family.size) * used[:, None]
        return self._transform_latents(found, np.zeros(used.shape), keep)

    def penalty(self, params: SupervisedParams) -> float:
        """-ln p of the loadings of both views and of the noise, but for a constant."""
        found = self.family.penalty_of_noise(params.components)
        prior = self.family.loadings_prior
        if prior is None:
            return found
        squares = np.diagonal(self._squares_of_factors(params), axis1=1, axis2=2)
        return found + prior.penalty(squares, self.entries_of_factor(params))

    def total_weight(self, stats: SupervisedStats) -> float:
        return stats.weight

    def entropy(self, stats: SupervisedStats) -> float:
        return stats.entropy

    def n_free(self, n_features: int) -> int:
        """Numbers that are learned, of both views and of the mixing."""
        K = self.n_components
        columns = self.family.n_free_beside_outputs(K, n_features) + self.mixing.n_free(K)
        return columns + self.outputs.n_free(K, self.family.size)

    # ------------------------------------------------ streams and warm starts

    def row_weight(self, stats: SupervisedStats) -> float:
        return self.total_weight(stats)

    def additive(self, stats: SupervisedStats) -> SupervisedStats:
        """Statistics about fixed origins: those of other batches can be added to them."""
        moments = self.family.about_frame(stats.components)
        outputs = self.outputs.without_reference(stats.outputs)
        return replace(stats, components=moments, outputs=outputs)

    def for_stream(self) -> Self:
        """The model of stepwise EM, whose statistics of successive batches may be blended.

        The prior of the latents is not set free: what was summed in earlier batches would be in
        other coordinates. Rows of later batches may lack entries.
        """
        return replace(self, family=replace(self.family, has_missing=True), expand=False)

    def change_frame(self, params: SupervisedParams, pilot: Pilot) -> SupervisedParams:
        """The same model in the frame of other data; as it is where its own frame suits them."""
        block = informative(pilot.block)
        spread = pilot.maximum - pilot.minimum
        frame = self.family.frame(dense_rows(block.X), block.weights(), spread)
        if similar_frame(params.components.frame, frame):
            return params
        return replace(params, components=self.family.change_frame(params.components, frame))

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: SupervisedParams) -> Array:
        log_weights = np.log(np.maximum(params.weights, 1e-300))
        components = self.family.coordinates(params.components)
        return np.concatenate([log_weights, components, self.outputs.coordinates(params.outputs)])

    def from_coordinates(self, params: SupervisedParams, vector: Array) -> SupervisedParams | None:
        K = params.n_components
        # coordinates are logarithms, or lengths in units of the spread of columns and outputs
        if not np.abs(vector[K:]).max() < COORDINATE_LIMIT:
            return None
        _, weights = normalise(vector[None, :K])
        weights = np.where(params.weights > 0, weights[0], 0.0)
        size = K + len(self.family.coordinates(params.components))
        return replace(
            params,
            weights=weights / weights.sum(),
            components=self.family.from_coordinates(params.components, vector[K:size]),
            outputs=self.outputs.from_coordinates(params.outputs, vector[size:]),
        )

    def derivatives(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> tuple[Array, Metric] | None:
        relevance = self.relevances(params)
        by_components, metric = self.family.derivatives(
            params.components, stats.components, relevance
        )
        by_outputs, output_metric = self.outputs.derivatives(
            params.outputs, stats.outputs, relevance
        )
        expected = stats.counts.sum() * params.weights
        gradient = np.concatenate([stats.counts - expected, by_components, by_outputs])
        return gradient, SupervisedMetric(expected, metric, len(by_components), output_metric)


@dataclass(frozen=True)
class GaussianModel(SupervisedModel):
    """A mixture of factor models with Gaussian outputs."""

    outputs: GaussianOutputs
