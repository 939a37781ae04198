"""Visible units: the distribution of a column given the hidden units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from mixfold.contracts import Array, record

# shares of a column that is always 0, or always 1, stay away from those by this
CLIPPED = 1e-3


class Units(Protocol):
    """One kind of visible units; ``drive`` (n, D) is bias + hW' below.

    ``countable`` if they have finitely many states.
    """

    countable: ClassVar[bool]

    def bias(self, mean: Array) -> Array:
        """The bias by which units without weights have this mean."""
        ...

    def mean(self, drive: Array) -> Array:
        """E[v | h], in place."""
        ...

    def draw(self, drive: Array, rng: np.random.Generator) -> Array:
        """v given h; ``drive`` may be changed."""
        ...

    def weigh(self, v: Array, bias: Array) -> Array:
        """The part of -E(v, h) that v has without hidden units, (n,)."""
        ...

    def log_sum(self, bias: Array, added: Array) -> Array:
        """ln of the sum over all v of exp(weigh(v) + v'added), for each row of (n, D)."""
        ...

    def log_density(self, v: Array, drive: Array) -> Array:
        """ln p(v | h), (n,); of shares between 0 and 1 the expected one of their bits."""
        ...


@record
@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Bits, or probabilities of bits."""

    countable: ClassVar[bool] = True

    def bias(self, mean: Array) -> Array:
        share = np.clip(mean, CLIPPED, 1 - CLIPPED)
        return np.asarray(np.log(share / (1 - share)))

    def mean(self, drive: Array) -> Array:
        return sigmoid(drive)

    def draw(self, drive: Array, rng: np.random.Generator) -> Array:
        return bits(sigmoid(drive), rng)

    def weigh(self, v: Array, bias: Array) -> Array:
        return np.asarray(v @ bias)

    def log_sum(self, bias: Array, added: Array) -> Array:
        return np.asarray(softplus(bias + added).sum(axis=1, dtype=np.float64))

    def log_density(self, v: Array, drive: Array) -> Array:
        return np.asarray((v * drive - softplus(drive)).sum(axis=1, dtype=np.float64))


@record
@dataclass(frozen=True, slots=True)
class Gaussian:
    """Real numbers of variance 1 given the hidden units."""

    countable: ClassVar[bool] = False

    def bias(self, mean: Array) -> Array:
        return np.array(mean)

    def mean(self, drive: Array) -> Array:
        return drive

    def draw(self, drive: Array, rng: np.random.Generator) -> Array:
        drive += rng.standard_normal(drive.shape, dtype=drive.dtype.type)
        return drive

    def weigh(self, v: Array, bias: Array) -> Array:
        return np.asarray(-0.5 * np.square(v - bias, dtype=np.float64).sum(axis=1))

    def log_sum(self, bias: Array, added: Array) -> Array:
        both = (added * (bias + 0.5 * np.asarray(added, np.float64))).sum(axis=1)
        return np.asarray(0.5 * len(bias) * np.log(2 * np.pi) + both)

    def log_density(self, v: Array, drive: Array) -> Array:
        squares = np.square(v - drive, dtype=np.float64).sum(axis=1)
        return np.asarray(-0.5 * (v.shape[1] * np.log(2 * np.pi) + squares))


UNITS: dict[str, Units] = {"bernoulli": Bernoulli(), "gaussian": Gaussian()}


def sigmoid(x: Array) -> Array:
    """Logistic function, in place; by tanh, which does not overflow."""
    x *= 0.5
    np.tanh(x, out=x)
    x += 1.0
    x *= 0.5
    return x


def softplus(x: Array) -> Array:
    """ln(1 + exp(x))."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def bits(shares: Array, rng: np.random.Generator) -> Array:
    """1 with these probabilities, else 0, in the same precision."""
    drawn = rng.random(shares.shape, dtype=shares.dtype.type)
    return np.less(drawn, shares, out=drawn)
