"""How statistics of successive batches become one: schedules act on statistics alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from mixfold.contracts import record


@record
@dataclass(frozen=True, slots=True)
class Stepwise:
    """Stepwise EM (Cappe and Moulines, 2009): a running average that forgets its start.

    s <- (1 - rho_t) s + rho_t s_batch with rho_t = (t + delay)^-decay, statistics per unit of
    weight.
    """

    stats: Any
    n_batches: int = 1
    decay: float = 0.7
    delay: float = 1.0

    def blend(self, batch: Any) -> Self:
        rate = (self.n_batches + self.delay) ** -self.decay
        stats = self.stats.scale(1 - rate) + batch.scale(rate)
        return type(self)(stats, self.n_batches + 1, self.decay, self.delay)


@record
@dataclass(frozen=True, slots=True)
class Accumulated:
    """All batches count alike, for ever: the posterior of one is the prior of the next."""

    stats: Any
    n_batches: int = 1

    def blend(self, batch: Any) -> Self:
        return type(self)(self.stats + batch, self.n_batches + 1)
