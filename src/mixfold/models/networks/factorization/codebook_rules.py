"""How the codebook follows from the second moments of codes and rows; no rule increases E."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.math.adaptive import adaptive_step
from mixfold.math.codebooks import RowRule, solve_codebook, swept


class CodebookRule(Protocol):
    """[A; b] (H + 1, D), about the origin of the statistics, and the length of the next step."""

    @property
    def first_step(self) -> float: ...

    def step(
        self, B: Array, gram: Array, cross: Array, rows: RowRule, size: float
    ) -> tuple[Array, float]: ...


@dataclass(frozen=True, slots=True)
class SolvedCodebook:
    """The best one: by a solve where rows are free, else row by row."""

    first_step: float = 1.0

    def step(
        self, B: Array, gram: Array, cross: Array, rows: RowRule, size: float
    ) -> tuple[Array, float]:
        return (solve_codebook if rows.is_free else swept)(B, gram, cross, rows), size


@dataclass(frozen=True, slots=True)
class KeptCodebook:
    """As it is: only the classifier is learned."""

    first_step: float = 1.0

    def step(
        self, B: Array, gram: Array, cross: Array, rows: RowRule, size: float
    ) -> tuple[Array, float]:
        return B, size


@dataclass(frozen=True, slots=True)
class GradientCodebook:
    """One step down the gradient, drawn back to what is allowed."""

    first_step: float = 1e-3

    def step(
        self, B: Array, gram: Array, cross: Array, rows: RowRule, size: float
    ) -> tuple[Array, float]:
        slope = gram @ B - cross
        slope[:-1] += rows.threshold * np.sign(B[:-1])
        if not rows.bias:
            slope[-1] = 0.0
        return adaptive_step(
            B,
            size,
            lambda x, length: rows.project_to_constraints(x - length * slope),
            lambda x: rows.value(x, gram, cross),
        )


@dataclass(frozen=True, slots=True)
class MultiplicativeCodebook:
    """Each entry times a power of the ratio of the negative to the positive part of the gradient;
    of rows, codes and codebooks that are not negative."""

    first_step: float = 1.0

    def step(
        self, B: Array, gram: Array, cross: Array, rows: RowRule, size: float
    ) -> tuple[Array, float]:
        up = gram @ B
        up[:-1] += rows.threshold
        ratio = np.where(up > 0, cross / np.where(up > 0, up, 1.0), 1.0)
        ratio = np.maximum(ratio, 0.0)
        if not rows.bias:
            ratio[-1] = 1.0
        return adaptive_step(
            B,
            min(size, 1.0),  # descent is proved up to here
            lambda x, power: rows.project_to_constraints(x * ratio**power),
            lambda x: rows.value(x, gram, cross),
        )
