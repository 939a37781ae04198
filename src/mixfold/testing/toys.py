"""Small models and executors for tests: a known optimum, failures on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Metric,
    Pilot,
    RowRandom,
    Source,
    Stats,
    Update,
)
from mixfold.families.gaussian import DiagonalMetric


class Serial:
    """One block after the other. ``before`` is called with the number of each pass, from 0.

    Let it raise to see what becomes of a fit.
    """

    def __init__(
        self, before: Callable[[int], None] | None = None, max_rows: int | None = None
    ) -> None:
        self.before, self.max_rows, self.n_passes = before, max_rows, 0

    def map_reduce(self, task: Callable[[Block], Any], source: Source) -> Any:
        self.n_passes += 1
        if self.before is not None:
            self.before(self.n_passes - 1)
        return reduce(lambda a, b: a + b, map(task, source.blocks(self.max_rows)))

    def map_rows(self, task: Callable[[Block], Any], source: Source) -> Iterator[Any]:
        return map(task, source.blocks(self.max_rows))


@dataclass(frozen=True)
class BowlStats(Stats):
    """Weight, sum of the rows, sum of their squared lengths in the metric of the bowl."""

    weight: float
    first: Array
    second: float


@dataclass(frozen=True)
class Bowl:
    """-1/2 sum_n w_n (t - x_n)' A (t - x_n): a concave objective in t, best at the mean.

    A step is t + M^-1 gradient with M = diag(``damping``): it creeps where M is much
    larger than A, as EM does where little is known of the latents.
    """

    curvature: Array
    damping: Array
    start: Array = field(default_factory=lambda: np.zeros(2))

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> Array:
        return self.start + attempt

    def prepare(self, params: Array) -> Array:
        return params

    def expect(self, reading: Array, block: Block, rng: RowRandom) -> BowlStats:
        X, w = np.asarray(block.X, float), block.weights()
        second = float(w @ np.einsum("nd,de,ne->n", X, self.curvature, X))
        return BowlStats(float(w.sum()), w @ X, second)

    def update(self, params: Array, stats: BowlStats, context: Context) -> Update[Array]:
        gradient, metric = self.derivatives(params, stats)
        return Update(params + metric.solve(gradient))

    def objective(self, params: Array, stats: BowlStats) -> float:
        pull = self.curvature @ params
        value = 2 * stats.first @ pull - stats.weight * params @ pull - stats.second
        return float(0.5 * value)

    def total_weight(self, stats: BowlStats) -> float:
        return stats.weight

    def entropy(self, stats: BowlStats) -> float:
        return 0.0

    def coordinates(self, params: Array) -> Array:
        return params

    def from_coordinates(self, params: Array, vector: Array) -> Array | None:
        return vector

    def derivatives(self, params: Array, stats: BowlStats) -> tuple[Array, Metric]:
        gradient = self.curvature @ (stats.first - stats.weight * params)
        return gradient, DiagonalMetric(stats.weight * self.damping)
