"""A small mini-batch learner for tests of training: it can be interrupted or made to fail."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.math.rates import Position


@record
@dataclass(frozen=True, slots=True)
class ToyState:
    """A point on its way to the mean of the rows."""

    point: Array


@dataclass
class Toy:
    """Moves a point to the rows, with noise, in place; remembers what it was shown.

    ``scores`` are given out one after the other instead of real ones. The step with the number
    ``interrupt_at`` is a Ctrl-C; after ``trouble_at`` steps there is trouble.
    """

    rate: float = 0.1
    scores: list[float] | None = None
    interrupt_at: int = -1
    trouble_at: int = -1
    shown: list[Array] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)

    def step(
        self, state: ToyState, batch: Block, rng: np.random.Generator, position: Position
    ) -> ToyState:
        if len(self.positions) == self.interrupt_at:
            raise KeyboardInterrupt
        self.shown.append(batch.X[:, 0].copy())
        self.positions.append(position)
        point = state.point
        moves = batch.weights()[:, None] * (batch.X - point)
        point += self.rate * moves.mean(axis=0) + 1e-3 * rng.standard_normal(point.shape)
        return state

    def score(self, state: ToyState, rows: Block) -> float:
        if self.scores is not None:
            return float(self.scores.pop(0))
        return -float(np.average(((rows.X - state.point) ** 2).sum(axis=1), weights=rows.weight))

    def describe_divergence(self, state: ToyState) -> str:
        return "it hurts" if len(self.positions) >= self.trouble_at > 0 else ""
