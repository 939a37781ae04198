"""How mixtures of factor models start: by distance to centres, or to planes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.math.principal import sample_axes
from mixfold.models.mixtures.starts import (
    PlusPlusStart,
    RandomRowsStart,
    Sample,
    Start,
    kmeans_shares,
    one_hot,
)


class FactorStart(Start, Protocol):
    """A start, and how many of them are worth comparing on a sample."""

    @property
    def n_candidates(self) -> int: ...


@dataclass(frozen=True, slots=True)
class KMeansFactorStart:
    """k-means, in turn on the columns and on a few whitened principal axes of the sample.

    Clusters that differ along directions of little variance are apart in the second, and columns
    that seldom vary, such as pixels of a margin, are not heard too much.
    """

    n_candidates: int = 4
    n_axes: int = 10

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        if attempt % 2:
            sample = Sample(self._scores(sample), sample.weight, sample.labels)
        return kmeans_shares(sample, n_components, rng)

    def _scores(self, sample: Sample) -> Array:
        """Whitened principal axes."""
        size = min(self.n_axes, *sample.U.shape)
        axes = sample_axes(sample.U, sample.weight, size)
        scale = np.sqrt(np.maximum(axes.values, 1e-12 * max(axes.total, 1e-300)))
        return np.asarray((sample.U - axes.mean) @ (axes.vectors / scale))


@dataclass(frozen=True, slots=True)
class SubspaceStart:
    """Planes through a few random rows; each row goes to the nearest plane, a few times over.

    Finds components that cross each other, whose centres tell nothing.
    """

    n_factors: int = 1
    n_candidates: int = 8
    n_steps: int = 10

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        size = max(1, min(self.n_factors, sample.U.shape[1] - 1))
        resp = rng.random((len(sample.U), n_components))
        rows = [
            rng.choice(len(sample.U), min(size + 1, len(sample.U)), replace=False)
            for _ in range(n_components)
        ]
        planes = [sample_axes(sample.U[r], np.ones(len(r)), size) for r in rows]
        for _ in range(self.n_steps):
            left = np.stack(
                [_squared_distances_to_plane(sample.U, p.mean, p.vectors) for p in planes], axis=1
            )
            assigned = left.argmin(axis=1)
            if sample.labels is not None:
                assigned = np.where(sample.labels >= 0, sample.labels, assigned)
            resp = one_hot(assigned, n_components)
            for k in range(n_components):
                mine = assigned == k
                if mine.sum() > size + 1:
                    planes[k] = sample_axes(sample.U[mine], sample.weight[mine], size)
        return resp


def _squared_distances_to_plane(U: Array, mean: Array, vectors: Array) -> Array:
    """Squared distances of rows to a plane."""
    deviation = U - mean
    return np.asarray((deviation**2).sum(axis=1) - ((deviation @ vectors) ** 2).sum(axis=1))


@dataclass(frozen=True, slots=True)
class SimpleStart:
    """A start by rows of the sample, taken as it comes."""

    rule: Start
    n_candidates: int = 1

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        return self.rule(sample, n_components, rng, attempt)


# by name, for a number of factors
FACTOR_STARTS: dict[str, Callable[[int], FactorStart]] = {
    "kmeans": lambda n_factors: KMeansFactorStart(),
    "subspaces": SubspaceStart,
    "k-means++": lambda n_factors: SimpleStart(PlusPlusStart()),
    "random_from_data": lambda n_factors: SimpleStart(RandomRowsStart()),
}


def sizes_of_starts(n_components: int) -> tuple[int, ...]:
    """How many components get rows in each start where their number is learned: all, half of them
    and so on, each in two views. One of large components with many factors may be the best."""
    sizes = [n_components]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] // 2)
    return tuple(size for size in sizes for _ in range(2 if size > 1 else 1))
