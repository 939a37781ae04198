"""Matrix factorisation x ~ f(s) codebook + bias with a softmax on the codes f(s).

    E = |X - f(S) A - 1b'|^2 / (2 sigma2) + alpha |S| + beta |A| - sum ln softmax_y(f(S) V + v)
        + gamma |V|

is minimised over codes (in a pass over the rows), codebook and classifier (from sums over rows):
three convex problems in turn. The objective of the engine is -E, and never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Context, Pilot, RowMemory, RowRandom, Update
from mixfold.math.codebooks import RowRule
from mixfold.math.link_functions import Link
from mixfold.math.softmax_regression import bound_value_and_gradient
from mixfold.models.networks.factorization.codebook_rules import CodebookRule, SolvedCodebook
from mixfold.models.networks.factorization.codes import CodeProblem
from mixfold.models.networks.factorization.head_rules import (
    BoundEvidence,
    Evidence,
    HeadRule,
    NewtonHead,
    RowEvidence,
)
from mixfold.models.networks.factorization.records import (
    FactorizationParams,
    FactorizationSums,
    Layer,
)
from mixfold.models.networks.factorization.remembered import (
    pack_codes,
    select_labelled,
    unpack_codes,
)
from mixfold.models.networks.factorization.repair import dead_units, reseed_sources
from mixfold.models.networks.factorization.source_rules import Asked, Minimised, SourceRule
from mixfold.models.networks.factorization.sums import (
    centred_rows,
    known_labels,
    label_sums,
    row_sums,
)
from mixfold.models.networks.factorization.sums import (
    dense_rows as dense_rows,
)


@dataclass(frozen=True, slots=True)
class Penalties:
    """Weights of |S|, |A| and |V|, the balance sigma2, and what may not be negative."""

    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 0.0
    sigma2: float = 1.0
    nonneg_codebook: bool = False
    nonneg_classifier: bool = False
    bias: bool = True


@dataclass(frozen=True, slots=True)
class FactorReading:
    """What a pass needs; ``first`` at the start of the fit."""

    layer: Layer
    problem: CodeProblem
    first: bool


@dataclass(frozen=True, slots=True)
class FactorModel:
    """``guided``: labels move the codes of their rows. Codes are remembered between passes.

    The classifier is fitted to the codes that are remembered; in batches to sums over them.
    """

    remembers_rows: ClassVar[bool] = True

    first: FactorizationParams
    link: Link
    penalties: Penalties
    origin: Array
    sources: SourceRule = field(default_factory=Minimised)
    codebook: CodebookRule = field(default_factory=SolvedCodebook)
    head: HeadRule = field(default_factory=NewtonHead)
    guided: bool = True
    repair: bool = True
    tol: float = 1e-6
    most: int = 500

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> FactorizationParams:
        return self.first

    def prepare(self, params: FactorizationParams) -> FactorReading:
        layer, p = params.layer, self.penalties
        seen = layer if self.guided else layer.without_head()
        problem = CodeProblem(seen, self.link, p.alpha, p.sigma2, self.tol, self.most)
        return FactorReading(layer, problem, params is self.first)

    # ------------------------------------------------ rows

    def expect(
        self,
        reading: FactorReading,
        block: Block,
        rng: RowRandom,
        memory: RowMemory | None = None,
    ) -> FactorizationSums:
        layer = reading.layer
        centred, complete = centred_rows(block, layer)
        y, weight = known_labels(layer, block.y), block.weights()
        known = unpack_codes(layer, None if memory is None else memory.recall(block.rows))
        asked = Asked(reading.problem, centred, y, known, complete, reading.first)
        phi, steps = self.sources.infer(asked)
        if memory is not None:
            memory.keep(block.rows, pack_codes(layer, phi, steps, y, weight))
        alpha = self.penalties.alpha
        cost = float(weight @ self.link.cost(phi).sum(axis=1)) if alpha > 0 else 0.0
        if not complete:
            # what is missing is as reconstructed: it does not pull at the codebook
            np.copyto(centred, phi @ layer.codebook, where=np.isnan(centred))
        F = np.column_stack([phi, np.ones(len(phi))])
        return FactorizationSums(
            cost=cost,
            weight=float(weight.sum()),
            origin=self.origin,
            **row_sums(layer, F, centred, weight, layer.bias - self.origin),
            **label_sums(layer, F, y, weight),
        )

    # ------------------------------------------------ parameters

    def row_rule(self, layer: Layer) -> RowRule:
        p = self.penalties
        return RowRule(p.beta * p.sigma2, p.nonneg_codebook, layer.radius, p.bias)

    def update(
        self, params: FactorizationParams, stats: FactorizationSums, context: Context
    ) -> Update[FactorizationParams]:
        layer, p = params.layer, self.penalties
        B = np.vstack([layer.codebook, layer.bias - self.origin])
        W = np.vstack(layer.head())
        new_B, first = self.codebook.step(
            B, stats.gram, stats.cross, self.row_rule(layer), float(params.steps[0])
        )
        new_W, second = W, float(params.steps[1])
        if layer.classifier is not None:
            new_W, second = self.head.step(
                W, _evidence(layer, stats, context), p.gamma, p.nonneg_classifier, second
            )
        if new_B is B and new_W is W:
            return Update(params)  # nothing left to change
        bias = new_B[-1] + self.origin if p.bias else layer.bias
        new = layer if new_B is B else replace(layer, codebook=new_B[:-1], bias=bias)
        if layer.classifier is not None:
            new = replace(new, classifier=new_W[:-1], intercept=new_W[-1])
        return self._repair_sources(
            FactorizationParams(new, np.array([first, second])), stats, context
        )

    def _repair_sources(
        self, params: FactorizationParams, stats: FactorizationSums, context: Context
    ) -> Update[FactorizationParams]:
        """Sources that explain nothing are moved once, where there is a pilot to move them to."""
        if context.pilot is None or not self.repair:
            return Update(params)
        dead = dead_units(params.layer, stats.gram, context.events)
        if not dead.size:
            return Update(params)
        rows, nonneg = dense_rows(context.pilot.block.X), self.penalties.nonneg_codebook
        problem = replace(self.prepare(params).problem, layer=params.layer.without_head())
        layer, events = reseed_sources(params.layer, dead, problem, rows, nonneg, context)
        if not events:
            return Update(params)
        return Update(replace(params, layer=layer), events, monotone=False)

    def objective(self, params: FactorizationParams, stats: FactorizationSums) -> float:
        return -self._energy(params.layer, stats, stats.squares, stats.loss)

    def free_energy(self, params: FactorizationParams, stats: FactorizationSums) -> float:
        """The objective of batches whose codes and labels were looked at before: never above it."""
        layer = params.layer
        B = np.vstack([layer.codebook, layer.bias - self.origin])
        squares = stats.spread + 2.0 * RowRule().value(B, stats.gram, stats.cross)
        bound = bound_value_and_gradient(np.vstack(layer.head()), stats.known, stats.pull)[0]
        return -self._energy(layer, stats, squares, bound + stats.ground)

    def row_weight(self, stats: FactorizationSums) -> float:
        return stats.weight

    def additive(self, stats: FactorizationSums) -> FactorizationSums:
        return stats

    def _energy(self, layer: Layer, stats: FactorizationSums, squares: float, loss: float) -> float:
        p = self.penalties
        energy = 0.5 * squares / p.sigma2 + p.alpha * stats.cost + loss
        energy += p.beta * float(np.abs(layer.codebook).sum())
        return energy + p.gamma * float(np.abs(layer.head()[0]).sum())

    def total_weight(self, stats: FactorizationSums) -> float:
        return stats.weight

    def entropy(self, stats: FactorizationSums) -> float:
        return 0.0

    def normalised(self, stats: FactorizationSums) -> FactorizationSums:
        """Per unit of weight."""
        return stats.scale(1.0 / stats.weight)

    def coordinates(self, params: FactorizationParams) -> Array:
        layer = params.layer
        W = np.vstack(layer.head())
        return np.concatenate([layer.codebook.ravel(), layer.bias, W.ravel()])

    def from_coordinates(
        self, params: FactorizationParams, vector: Array
    ) -> FactorizationParams | None:
        """The layer there; what is not allowed becomes the nearest that is."""
        if not np.isfinite(vector).all():
            return None
        layer = params.layer
        size, D = layer.codebook.size, len(layer.bias)
        A, bias = vector[:size].reshape(layer.codebook.shape), vector[size : size + D]
        B = self.row_rule(layer).project_to_constraints(np.vstack([A, bias - self.origin]))
        new = replace(layer, codebook=B[:-1])
        if self.penalties.bias:
            new = replace(new, bias=B[-1] + self.origin)
        if layer.classifier is not None:
            W = vector[size + D :].reshape(layer.n_codes + 1, -1)
            V = np.maximum(W[:-1], 0.0) if self.penalties.nonneg_classifier else W[:-1]
            new = replace(new, classifier=V, intercept=W[-1])
        return replace(params, layer=new)

    def derivatives(self, params: FactorizationParams, stats: FactorizationSums) -> None:
        return None


def _evidence(layer: Layer, stats: FactorizationSums, context: Context) -> Evidence:
    """What is known of the codes of labelled rows: all of them, or sums."""
    if context.rows is None:
        return BoundEvidence(stats.known, stats.pull, stats.truth)
    return RowEvidence(context.rows.map(partial(select_labelled, layer.n_codes)), stats.truth)
