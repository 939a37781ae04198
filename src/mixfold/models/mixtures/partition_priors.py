"""Priors of partitions with the weights integrated out: Dirichlet-multinomial, Dirichlet process.

Of N - 1 others, N_k at table k, a row joins table k in proportion to N_k + alpha / K where the
weights are Dirichlet; of a Dirichlet process in proportion to N_k, or to alpha a new one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln

from mixfold.contracts import Array
from mixfold.math.dirichlet import log_beta_draw
from mixfold.math.gamma_law import log_gamma_draw
from mixfold.math.slice_sampling import slice_sample
from mixfold.mixing.concentration import MOST, clip_alpha, require_hyper
from mixfold.mixing.dirichlet import DirichletWeights, SymmetricDirichlet
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import StickBreaking, StickWeights


class PartitionPrior(Protocol):
    """The law of a partition, and what it says of weights. ``counts`` are those of slots."""

    @property
    def first_alpha(self) -> float: ...

    def masses(self, n_slots: int, alpha: float) -> tuple[Array, float]:
        """What is added to the rows of each slot, and the mass of a new one."""
        ...

    def log_prob(self, counts: Array, alpha: float) -> float:
        """ln P(z | alpha)."""
        ...

    def draw_alpha(self, counts: Array, alpha: float, rng: np.random.Generator) -> float:
        """One transition of alpha given the partition; ``alpha`` itself if it is known."""
        ...

    def list_components(self, counts: Array) -> tuple[Array, int]:
        """The slots that are components of the posterior, in order, and how many (0 or 1) come
        after them for all that has no rows yet."""
        ...

    def weights(self, counts: Array, alpha: float) -> Any:
        """The law of the weights of these given the partition, as the mixing keeps it."""
        ...


@dataclass(frozen=True)
class DirichletMultinomialPrior:
    """K components with Dirichlet weights."""

    mixing: SymmetricDirichlet

    @property
    def first_alpha(self) -> float:
        return float(np.sum(self.mixing.alpha))

    def masses(self, n_slots: int, alpha: float) -> tuple[Array, float]:
        return self.mixing.posterior(np.zeros(n_slots), alpha).concentration, 0.0

    def log_prob(self, counts: Array, alpha: float) -> float:
        return self.mixing.log_prob(counts, alpha)

    def draw_alpha(self, counts: Array, alpha: float, rng: np.random.Generator) -> float:
        if not self.mixing.learn_alpha:
            return alpha
        shape, rate = require_hyper(self.mixing.hyper)

        def target(log_alpha: float) -> float:
            if abs(log_alpha) > math.log(MOST):
                return -math.inf
            fresh = math.exp(log_alpha)
            return self.log_prob(counts, fresh) + shape * log_alpha - rate * fresh

        return clip_alpha(math.exp(slice_sample(target, math.log(clip_alpha(alpha)), rng)))

    def list_components(self, counts: Array) -> tuple[Array, int]:
        return np.arange(len(counts)), 0

    def weights(self, counts: Array, alpha: float) -> DirichletWeights:
        return self.mixing.posterior(counts, alpha)


@dataclass(frozen=True)
class ChineseRestaurantPrior:
    """A Dirichlet process: as many tables as the rows ask for."""

    mixing: StickBreaking

    @property
    def first_alpha(self) -> float:
        return self.mixing.alpha

    def masses(self, n_slots: int, alpha: float) -> tuple[Array, float]:
        return np.zeros(n_slots), alpha

    def log_prob(self, counts: Array, alpha: float) -> float:
        taken = counts[counts > 0]
        rows = float(taken.sum())
        tables = len(taken) * math.log(alpha) + float(gammaln(taken).sum())
        return tables + float(gammaln(alpha) - gammaln(alpha + rows))

    def draw_alpha(self, counts: Array, alpha: float, rng: np.random.Generator) -> float:
        """By an auxiliary beta variable (Escobar and West, 1995)."""
        if not self.mixing.learn_alpha:
            return alpha
        shape, rate = require_hyper(self.mixing.hyper)
        rows, tables = float(counts.sum()), int(np.count_nonzero(counts))
        rate -= float(log_beta_draw(alpha + 1, rows, rng)[0])
        odds = (shape + tables - 1) / (rows * rate)
        more = rng.random() * (1 + odds) < odds
        log_draw = float(log_gamma_draw(shape + tables - (0 if more else 1), rng))
        return clip_alpha(math.exp(log_draw - math.log(rate)))

    def list_components(self, counts: Array) -> tuple[Array, int]:
        """Those with rows, and one for what the process has not used yet."""
        return np.flatnonzero(counts > 0), 1

    def weights(self, counts: Array, alpha: float) -> StickWeights:
        """Of the tables and of all that is not used, (N_1, ..., alpha) in a Dirichlet law: broken
        off one after the other, V_k ~ Beta(N_k, alpha + rows at later tables)."""
        taken = counts[counts > 0]
        later = np.cumsum(taken[::-1])[::-1] - taken
        return StickWeights(taken, alpha + later, alpha)


def partition_prior_of(mixing: Mixing[Any], *, process: bool) -> PartitionPrior:
    """How the rows of a mixture with these weights sit down."""
    if process and isinstance(mixing, StickBreaking):
        return ChineseRestaurantPrior(mixing)
    if not process and isinstance(mixing, SymmetricDirichlet):
        return DirichletMultinomialPrior(mixing)
    wanted = "'stick-breaking'" if process else "'dirichlet'"
    raise ValueError(
        f"a collapsed sampler of {'a process' if process else 'K components'} integrates out "
        f"weights of the kind {wanted}, got {type(mixing).__name__}. Choose weights={wanted}, or "
        "inference='gibbs'"
    )
