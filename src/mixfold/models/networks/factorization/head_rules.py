"""How the softmax on the codes is learned; no rule increases E.

What is known of the codes is either all of them (``RowEvidence``) or sums over them
(``BoundEvidence``), which bound the log loss from above.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from mixfold.contracts import Array, RowParts
from mixfold.math.adaptive import adaptive_step
from mixfold.math.softmax_regression import (
    bound_value_and_gradient,
    improve_by_bound,
    improve_by_rows,
    l1_penalty,
    sum_losses,
)

# sweeps over the bound: it is quadratic, and small
_SWEEPS = 20
# no coefficient is larger
_FAR = 1e100


class Evidence(Protocol):
    """The log loss of the labels as a function of coefficients W = [V; v] (H + 1, C)."""

    @property
    def truth(self) -> Array:
        """F'T of one-hot labels T, (H + 1, C)."""
        ...

    def value_and_gradient(self, W: Array) -> tuple[float, Array]: ...

    def improve(self, W: Array, gamma: float, nonneg: bool, steps: int) -> Array: ...


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """All labelled rows, where they lie: parts of ``LabelledRows``."""

    parts: RowParts
    truth: Array

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        sums = self.parts.sum(partial(sum_losses, W))
        return sums.value, sums.gradient

    def improve(self, W: Array, gamma: float, nonneg: bool, steps: int) -> Array:
        return improve_by_rows(W, self.value_and_gradient, gamma, nonneg, steps)


@dataclass(frozen=True, slots=True)
class BoundEvidence:
    """Sums over labelled rows."""

    gram: Array
    pull: Array
    truth: Array

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        return bound_value_and_gradient(W, self.gram, self.pull)

    def improve(self, W: Array, gamma: float, nonneg: bool, steps: int) -> Array:
        return improve_by_bound(W, self.gram, self.pull, gamma, nonneg, _SWEEPS)


class HeadRule(Protocol):
    """Coefficients (H + 1, C) and the length of the next step."""

    @property
    def first_step(self) -> float: ...

    def step(
        self, W: Array, evidence: Evidence, gamma: float, nonneg: bool, size: float
    ) -> tuple[Array, float]: ...


@dataclass(frozen=True, slots=True)
class NewtonHead:
    """Some quasi-Newton steps."""

    steps: int = 15
    first_step: float = 1.0

    def step(
        self, W: Array, evidence: Evidence, gamma: float, nonneg: bool, size: float
    ) -> tuple[Array, float]:
        return evidence.improve(W, gamma, nonneg, self.steps), size


@dataclass(frozen=True, slots=True)
class GradientHead:
    """One step down the gradient."""

    first_step: float = 1e-2

    def step(
        self, W: Array, evidence: Evidence, gamma: float, nonneg: bool, size: float
    ) -> tuple[Array, float]:
        slope = evidence.value_and_gradient(W)[1]
        slope[:-1] += gamma * np.sign(W[:-1])

        def move(x: Array, length: float) -> Array:
            new = x - length * slope
            if nonneg:
                new[:-1] = np.maximum(new[:-1], 0.0)
            return new

        return adaptive_step(W, size, move, lambda x: _value(x, evidence, gamma))


@dataclass(frozen=True, slots=True)
class MultiplicativeHead:
    """Each entry times a power of F'T / (F'Q + gamma); the intercept likewise, without gamma."""

    first_step: float = 1.0

    def step(
        self, W: Array, evidence: Evidence, gamma: float, nonneg: bool, size: float
    ) -> tuple[Array, float]:
        up = evidence.value_and_gradient(W)[1] + evidence.truth
        up[:-1] += gamma
        ratio = np.where(up > 0, evidence.truth / np.where(up > 0, up, 1.0), 1.0)

        def move(x: Array, power: float) -> Array:
            with np.errstate(over="ignore"):
                return np.minimum(x * np.maximum(ratio, 0.0) ** power, _FAR)

        return adaptive_step(W, size, move, lambda x: _value(x, evidence, gamma))


def _value(W: Array, evidence: Evidence, gamma: float) -> float:
    return evidence.value_and_gradient(W)[0] + l1_penalty(W, gamma)
