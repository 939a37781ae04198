"""Factorisation x ~ f(s) codebook + bias of rows that are not negative, by a beta divergence.

    E = sum d(x | f(s) A + b) / sigma2 + alpha |S| + beta |A|

Codes and codebook are not negative, and each is moved to the minimum of a bound of E that is a sum
of functions of single entries (``math.beta_divergence``). So E never rises. Entries stay above a
tiny share of their usual size: where v = 0 and x > 0 the loss may be infinite, and an entry at zero
would stay there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Pilot,
    RowMemory,
    RowRandom,
    Stats,
    Update,
    record,
)
from mixfold.math.beta_divergence import BetaDivergence, check_range
from mixfold.math.link_functions import Link
from mixfold.models.networks.factorization.records import FactorizationParams, Layer
from mixfold.models.networks.factorization.sums import dense_rows

# the least entry, as a share of a usual one
TINY = 1e-12
# what a code is at least where nothing is known of its size
_LEAST = 1e-150
# a step that went well may be so much longer next time, and up to so many times its own length
_GROWTH, _LONGEST = 1.5, 64.0
# and changes the logarithm of an entry by no more
_FURTHEST = 7.0
# an extrapolation that multiplies the largest entry of the codebook by more is not looked at
_TOO_FAR = 1e3
# how exact codes of another power are, from which those of this one begin
_ROUGH = 1e-3
# steps over the codes of a pass, where those of the pass before are known
_STEPS = 10


@dataclass(frozen=True, slots=True)
class DivergenceCodes:
    """Codes of rows given a layer.

    Only alpha * sigma2 matters. From power 1 to 2 the problem is convex; otherwise codes begin,
    unless something is known of them, where they are best for the nearest power of these.
    """

    layer: Layer
    link: Link
    alpha: float
    sigma2: float
    divergence: BetaDivergence
    tol: float = 1e-6
    most: int = 2000

    def solve(self, X: Array, start: Array | None = None) -> Array:
        """Codes (n, H) of rows X (n, D), dense, with NaN where entries are missing.

        A step takes each entry of a row to phi (phi_bound / phi)^w, where w > 1 grows as long as
        the cost of the row falls; the step of w = 1 cannot raise it.
        """
        check_range(X, self.divergence)
        seen = _seen(X)
        X = X if seen is None else np.where(seen, X, 1.0)
        usual, fills = self._typical(X, seen)
        low = np.maximum(self.link.lower, np.maximum(TINY * usual, _LEAST))[:, None]
        if start is None:
            start = np.repeat(usual[:, None], self.layer.n_codes, axis=1)
            if not self.divergence.is_convex:
                nearest = BetaDivergence(min(max(self.divergence.power, 1.0), 2.0))
                first = replace(self, divergence=nearest, tol=_ROUGH)
                start = first.solve(X if seen is None else np.where(seen, X, np.nan))
        phi = np.clip(start, low, self.link.upper)
        phi[~fills] = max(self.link.lower, 0.0)
        self._descend(phi, X, seen, low, np.flatnonzero(fills))
        return phi

    def _typical(self, X: Array, seen: Array | None) -> tuple[Array, Array]:
        """The size of codes that gives a row its sum, and whether the row has any entry."""
        size = np.broadcast_to(self.layer.codebook.sum(axis=0), X.shape)
        rest = np.maximum(X - self.layer.bias, 1e-3 * X)
        if seen is not None:
            size, rest = np.where(seen, size, 0.0), np.where(seen, rest, 0.0)
        whole = size.sum(axis=1)
        usual = rest.sum(axis=1) / np.where(whole > 0, whole, 1.0)
        fills = np.ones(len(X), bool) if seen is None else np.asarray(seen.any(axis=1))
        return np.asarray(usual), fills

    def _descend(self, phi: Array, X: Array, seen: Array | None, low: Array, rows: Array) -> None:
        """Steps on the rows that still move, into ``phi``."""
        lengths = np.ones(len(phi))
        some, V = phi[rows], self._rows_of(phi[rows])
        cost = self._costs(some, V, X[rows], None if seen is None else seen[rows])
        for _ in range(self.most):
            if not rows.size:
                break
            x, mask, least = X[rows], None if seen is None else seen[rows], low[rows]
            plain = self._bound_step(some, V, x, mask, least)
            further = np.clip(lengths[rows, None] * np.log(plain / some), -_FURTHEST, _FURTHEST)
            new = np.where(lengths[rows, None] == 1.0, plain, some * np.exp(further))
            new = np.clip(new, least, self.link.upper)
            V_new = self._rows_of(new)
            cost_new = self._costs(new, V_new, x, mask)
            worse = np.flatnonzero(~(cost_new <= cost))
            lengths[rows] = np.minimum(lengths[rows] * _GROWTH, _LONGEST)
            if worse.size:
                lengths[rows[worse]] = 1.0
                new[worse] = plain[worse]
                V_new[worse] = self._rows_of(new[worse])
                part = None if mask is None else mask[worse]
                cost_new[worse] = self._costs(new[worse], V_new[worse], x[worse], part)
            moved = np.abs(new - some).max(axis=1)
            phi[rows] = new
            on = moved > self.tol * new.max(axis=1)
            rows, some, V, cost = rows[on], new[on], V_new[on], cost_new[on]

    def _rows_of(self, phi: Array) -> Array:
        return np.asarray(phi @ self.layer.codebook + self.layer.bias)

    def _costs(self, phi: Array, V: Array, X: Array, seen: Array | None) -> Array:
        values = self.divergence.value(X, V)
        if seen is not None:
            values = np.where(seen, values, 0.0)
        found = values.sum(axis=1)
        if self.alpha > 0:
            found = found + self.alpha * self.sigma2 * self.link.cost(phi).sum(axis=1)
        return np.asarray(found)

    def _bound_step(self, phi: Array, V: Array, X: Array, seen: Array | None, low: Array) -> Array:
        up, down = masked_slopes(self.divergence, X, V, seen)
        A = self.layer.codebook
        found = self.divergence.step(up @ A.T + self.alpha * self.sigma2, down @ A.T, phi)
        return np.asarray(np.clip(found, low, self.link.upper))


def _seen(X: Array) -> Array | None:
    """Where entries are; None if none is missing."""
    missing = np.isnan(X)
    return ~missing if missing.any() else None


def masked_slopes(
    divergence: BetaDivergence, X: Array, V: Array, seen: Array | None
) -> tuple[Array, Array]:
    """Both parts of dd/dv, zero where entries are missing."""
    up, down = divergence.slopes(X, V)
    return (up, down) if seen is None else (np.where(seen, up, 0.0), np.where(seen, down, 0.0))


@record
@dataclass(frozen=True)
class DivergenceSums(Stats):
    """Weighted sums over rows: ``push`` and ``pull`` (H + 1, D) of the bound as a function of
    [codebook; bias], and the ``ground`` that it stands on; ``loss`` of the rows, ``cost`` of their
    sources, ``weight``."""

    push: Array
    pull: Array
    ground: float
    loss: float
    cost: float
    weight: float


@dataclass(frozen=True, slots=True)
class DivergenceModel:
    """``alpha``, ``beta`` and ``sigma2`` as in E; ``single``: one step over the codes of a pass."""

    remembers_rows: ClassVar[bool] = True

    first: FactorizationParams
    link: Link
    divergence: BetaDivergence
    alpha: float = 0.0
    beta: float = 0.0
    sigma2: float = 1.0
    bias: bool = True
    single: bool = False
    tol: float = 1e-6
    most: int = 500

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> FactorizationParams:
        return self.first

    def prepare(self, params: FactorizationParams) -> DivergenceCodes:
        return DivergenceCodes(
            params.layer, self.link, self.alpha, self.sigma2, self.divergence, self.tol, self.most
        )

    def expect(
        self,
        reading: DivergenceCodes,
        block: Block,
        rng: RowRandom,
        memory: RowMemory | None = None,
    ) -> DivergenceSums:
        X, weight = dense_rows(block.X), block.weights()
        if memory is None:
            phi = reading.solve(X)
        else:
            steps = 1 if self.single else _STEPS
            phi = replace(reading, most=steps).solve(X, memory.recall(block.rows))
            memory.keep(block.rows, phi)
        seen = _seen(X)
        X = X if seen is None else np.where(seen, X, 1.0)
        F, B = np.column_stack([phi, np.ones(len(phi))]), _stacked(reading.layer)
        V = F @ B if seen is None else np.where(seen, F @ B, 1.0)
        values = self.divergence.value(X, V)  # (zero where an entry is missing)
        loss = float(weight @ values.sum(axis=1))
        up, down = masked_slopes(self.divergence, X, V, seen)
        weighted = F * weight[:, None]
        push, pull = self._sums(weighted.T @ up, weighted.T @ down, B)
        at = self._moving(B)
        ground = loss - self.divergence.bound_value(self._moving(push), self._moving(pull), at)
        cost = float(weight @ self.link.cost(phi).sum(axis=1)) if self.alpha > 0 else 0.0
        return DivergenceSums(push, pull, ground, loss, cost, float(weight.sum()))

    def _sums(self, up: Array, down: Array, B: Array) -> tuple[Array, Array]:
        if self.bias:
            return self.divergence.bound_sums(up, down, B)
        push, pull = self.divergence.bound_sums(up[:-1], down[:-1], B[:-1])
        none = np.zeros_like(B[:1])
        return np.vstack([push, none]), np.vstack([pull, none])

    def _moving(self, B: Array) -> Array:
        """The rows that are learned."""
        return B if self.bias else B[:-1]

    # ------------------------------------------------ parameters

    def update(
        self, params: FactorizationParams, stats: DivergenceSums, context: Context
    ) -> Update[FactorizationParams]:
        B = _stacked(params.layer)
        at, push = self._moving(B), self._moving(stats.push).copy()
        H = params.layer.n_codes
        push[:H] += self.divergence.penalty(self.beta * self.sigma2, at[:H])
        found = self.divergence.bound_minimum(push, self._moving(stats.pull), at)
        return Update(self._with_rows(params, found))

    def _with_rows(self, params: FactorizationParams, rows: Array) -> FactorizationParams:
        H = params.layer.n_codes
        rows = np.maximum(rows, self.least)
        bias = rows[H] if self.bias else params.layer.bias
        return replace(params, layer=replace(params.layer, codebook=rows[:H], bias=bias))

    @property
    def least(self) -> float:
        """No entry of codebook and bias is less."""
        return TINY * float(self.first.layer.codebook.mean())

    def objective(self, params: FactorizationParams, stats: DivergenceSums) -> float:
        return -self._energy(params, stats, stats.loss)

    def free_energy(self, params: FactorizationParams, stats: DivergenceSums) -> float:
        """The objective of batches that were looked at before: never above it."""
        at = self._moving(_stacked(params.layer))
        bound = self.divergence.bound_value(self._moving(stats.push), self._moving(stats.pull), at)
        return -self._energy(params, stats, bound + stats.ground)

    def _energy(self, params: FactorizationParams, stats: DivergenceSums, loss: float) -> float:
        energy = loss / self.sigma2 + self.alpha * stats.cost
        return energy + self.beta * float(params.layer.codebook.sum())

    def row_weight(self, stats: DivergenceSums) -> float:
        return stats.weight

    def additive(self, stats: DivergenceSums) -> DivergenceSums:
        return stats

    def total_weight(self, stats: DivergenceSums) -> float:
        return stats.weight

    def entropy(self, stats: DivergenceSums) -> float:
        return 0.0

    def normalised(self, stats: DivergenceSums) -> DivergenceSums:
        """Per unit of weight."""
        return stats.scale(1.0 / stats.weight)

    def coordinates(self, params: FactorizationParams) -> Array:
        """Logarithms: an extrapolation keeps signs."""
        return np.log(self._moving(_stacked(params.layer))).ravel()

    def from_coordinates(
        self, params: FactorizationParams, vector: Array
    ) -> FactorizationParams | None:
        with np.errstate(over="ignore"):
            rows = np.exp(vector).reshape(-1, len(params.layer.bias))
        near = rows.max() <= _TOO_FAR * self._moving(_stacked(params.layer)).max()  # NaN is not
        return self._with_rows(params, rows) if near else None

    def derivatives(self, params: FactorizationParams, stats: DivergenceSums) -> None:
        return None


def _stacked(layer: Layer) -> Array:
    return np.vstack([layer.codebook, layer.bias])
