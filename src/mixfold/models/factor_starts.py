"""How mixtures of factor models start: by distance to centres, or to planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.math.principal import principal_axes
from mixfold.models.starts import (
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
    """k-means, in turn on scaled columns, on columns in their own units, and on principal axes.

    Scaled columns suit units that mean nothing; own units suit columns that are alike, such as
    pixels, of which those that seldom vary would else be heard most. A few whitened principal axes
    show clusters that differ along directions of little variance.
    """

    n_candidates: int = 6
    n_axes: int = 10

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        views = (lambda: sample.U, lambda: _in_own_units(sample), lambda: self._scores(sample))
        view = Sample(views[attempt % 3](), sample.weight, sample.labels)
        return kmeans_shares(view, n_components, rng)

    def _scores(self, sample: Sample) -> Array:
        """Whitened principal axes."""
        size = min(self.n_axes, *sample.U.shape)
        axes = principal_axes(sample.U, sample.weight, size)
        scale = np.sqrt(np.maximum(axes.values, 1e-12 * max(axes.total, 1e-300)))
        return np.asarray((sample.U - axes.mean) @ (axes.vectors / scale))


def _in_own_units(sample: Sample) -> Array:
    return sample.U if sample.scale is None else sample.U * sample.scale


@dataclass(frozen=True, slots=True)
class SubspaceStart:
    """Planes through a few random rows; each row goes to the nearest plane, a few times over.

    Finds components that cross each other, whose centres tell nothing.
    """

    n_candidates: int = 8
    n_rows: int = 4
    n_steps: int = 10

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        size = max(1, min(self.n_rows - 1, sample.U.shape[1] - 1))
        resp = rng.random((len(sample.U), n_components))
        rows = [
            rng.choice(len(sample.U), min(self.n_rows, len(sample.U)), replace=False)
            for _ in range(n_components)
        ]
        planes = [principal_axes(sample.U[r], np.ones(len(r)), size) for r in rows]
        for _ in range(self.n_steps):
            left = np.stack([_left(sample.U, p.mean, p.vectors) for p in planes], axis=1)
            assigned = left.argmin(axis=1)
            if sample.labels is not None:
                assigned = np.where(sample.labels >= 0, sample.labels, assigned)
            resp = one_hot(assigned, n_components)
            for k in range(n_components):
                mine = assigned == k
                if mine.sum() > size + 1:
                    planes[k] = principal_axes(sample.U[mine], sample.weight[mine], size)
        return resp


def _left(U: Array, mean: Array, vectors: Array) -> Array:
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


FACTOR_STARTS: dict[str, FactorStart] = {
    "kmeans": KMeansFactorStart(),
    "subspaces": SubspaceStart(),
    "k-means++": SimpleStart(PlusPlusStart()),
    "random_from_data": SimpleStart(RandomRowsStart()),
}
