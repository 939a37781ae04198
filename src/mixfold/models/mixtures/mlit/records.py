"""Parameters of the model, the iterates that led to them, and what is summed over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Shares, Stats, constant, record


@record
@dataclass(frozen=True, slots=True)
class Transformed:
    """f(x) = sum_k weights_k N(transforms_k x; means_k, covariances_k).

    Shapes (K,), (K, d, D), (K, d), (K, d, d); the ridge is part of the covariances.
    """

    weights: Shares
    transforms: Array
    means: Array
    covariances: Array


@record
@dataclass(frozen=True, slots=True)
class Iterates:
    """Where the algorithm is, where it has been (the start first), and the score at each of those.

    The score of ``now`` is not among them.
    """

    now: Transformed
    past: tuple[Transformed, ...] = ()
    scores: tuple[float, ...] = ()

    @property
    def iterates(self) -> tuple[Transformed, ...]:
        return (*self.past, self.now)


@record
@dataclass(frozen=True)
class TransformSums(Stats):
    """Weighted counts (K,), first (K, D) and second (K, D, D) moments about ``origin`` (D,).

    ``score`` is the sum of log f (with the offset of the rule) and ``weight`` that of all rows.
    """

    count: Array
    first: Array
    second: Array
    score: float
    weight: float
    origin: Array = constant()  # noqa: RUF009 (it makes a field)


@dataclass(frozen=True, slots=True)
class Moments:
    """Of one component: weight n, mean m and covariance S, and about zero a = n m and A.

    ``of_all`` is the covariance of the rows of all components.
    """

    n: float
    mean: Array
    covariance: Array
    of_all: Array

    @property
    def first(self) -> Array:
        return np.asarray(self.n * self.mean)

    @property
    def second(self) -> Array:
        return np.asarray(self.n * (self.covariance + np.outer(self.mean, self.mean)))


def moments_of(sums: TransformSums, k: int) -> Moments:
    """The moments of component k, whose weight is positive."""
    n = float(sums.count[k])
    shift = sums.first[k] / n
    covariance = sums.second[k] / n - np.outer(shift, shift)
    return Moments(n, sums.origin + shift, covariance, pool_moments(sums).covariance)


def pool_moments(sums: TransformSums) -> Moments:
    """The moments of all components together."""
    n = float(sums.count.sum())
    shift = sums.first.sum(axis=0) / n
    second = sums.second.sum(axis=0) / n - np.outer(shift, shift)
    return Moments(n, sums.origin + shift, second, second)
