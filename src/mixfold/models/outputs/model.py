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
from typing import Any

import numpy as np

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Event,
    Metric,
    Pilot,
    RowRandom,
    Stats,
    Update,
    record,
)
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.given import given_sums
from mixfold.math.softmax import entropies, normalise
from mixfold.mixing.free import FreeWeights
from mixfold.models.mixtures.rows import tiles, without_empty_rows
from mixfold.models.outputs.gaussian_outputs import belief
from mixfold.models.outputs.outputs import Copy, Latent, Outputs, latent_prior

# numbers that the latents of a tile may take
_TILE_NUMBERS = 2**21


@record
@dataclass(frozen=True, slots=True)
class SupervisedParams:
    """Mixing weights (K,), factor components, and the parameters of the outputs."""

    weights: Array
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


@dataclass(frozen=True)
class SupervisedModel:
    """A mixture of factor models with outputs; ``start`` makes its first parameters."""

    n_components: int
    family: FactorFamily
    outputs: Outputs
    start: Any
    mixing: FreeWeights = field(default_factory=FreeWeights)

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

    def expect(self, reading: SupervisedReading, block: Block, rng: RowRandom) -> SupervisedStats:
        block = without_empty_rows(block)
        assert block.y is not None
        # columns are tiled where they are read: what is kept here are the latents
        K, d = self.n_components, self.family.size
        size = self.outputs.numbers_per_row(block.y, K, d)
        parts = tiles(block, K * (d + 1) ** 2, max(size, 1))
        return reduce(add, [self._expect_tile(reading, tile) for tile in parts])

    def _expect_tile(self, reading: SupervisedReading, tile: Block) -> SupervisedStats:
        joint, latent = self.latents(reading, tile)
        y = tile.y
        assert y is not None
        copies = self.outputs.copies(y, latent, reading.outputs)
        weight = tile.weights()
        resp, log_likelihood = self._shared(joint, copies, weight)
        outputs = self.outputs.sums(y, copies, resp, reading.outputs)
        used = [belief(c, r) for c, r in zip(copies, resp, strict=True) if c.share.any()]
        sums = given_sums(tile, reading.components, used)
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
    def _shared(joint: Array, copies: Sequence[Copy], weight: Array) -> tuple[list[Array], float]:
        """Weighted responsibilities (n, K) of each copy, and their part of the objective."""
        found, total = [], 0.0
        for copy in copies:
            log_total, resp = normalise(joint + copy.log_probability)
            shared = weight * copy.share
            found.append(resp * shared[:, None])
            total += float(shared @ log_total)
        return found, total

    # ------------------------------------------------ M step

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        components, touched = self.family.estimate(stats.components, params.components)
        outputs = self.outputs.update(stats.outputs, params.outputs)
        fresh = SupervisedParams(self.mixing.posterior(stats.counts), components, outputs)
        told = tuple(
            Event("floor", self.family.floor_words(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(touched)
        )
        return Update(self._expanded(fresh, stats), told)

    def _expanded(self, params: SupervisedParams, stats: SupervisedStats) -> SupervisedParams:
        """The prior of the latents set free and absorbed again (parameter expansion)."""
        if not self.family.size:
            return params
        mean, root = self._latent_prior(params, stats)
        old = params.components
        shift = np.einsum(
            "kjd,kd->kj", old.loadings, np.broadcast_to(mean, old.loadings.shape[::2])
        )
        components = replace(old, means=old.means + shift, loadings=old.loadings @ root)
        outputs = self.outputs.moved(params.outputs, mean, root)
        return replace(params, components=components, outputs=outputs)

    def _latent_prior(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> tuple[Array, Array]:
        """Mean and root of the covariance that the latents are to have."""
        return latent_prior(stats.components.rows, self.outputs.tied)

    def objective(self, params: SupervisedParams, stats: SupervisedStats) -> float:
        return stats.log_likelihood - self.outputs.penalty(params.outputs)

    def total_weight(self, stats: SupervisedStats) -> float:
        return stats.weight

    def entropy(self, stats: SupervisedStats) -> float:
        return stats.entropy

    def n_free(self, n_features: int) -> int:
        """Numbers that are learned, of both views and of the mixing."""
        K = self.n_components
        columns = self.family.n_free(K, n_features) + self.mixing.n_free(K)
        return columns + self.outputs.n_free(K, self.family.size)

    # ------------------------------------------------ extrapolation: none is offered

    def coordinates(self, params: SupervisedParams) -> Array:
        raise TypeError("supervised factor models are not extrapolated")

    def from_coordinates(self, params: SupervisedParams, vector: Array) -> SupervisedParams | None:
        return None

    def derivatives(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> tuple[Array, Metric] | None:
        return None
