"""Starts of mixtures: rules that assign the rows of a sample to components.

The sample is complete, in frame coordinates, without repeated rows. ``attempt`` counts the
starts of one fit, so that a rule can try another view of the data each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.math.frame import bulk_of, far_rows
from mixfold.math.seeding import lloyd, plus_plus, squared_distances
from mixfold.math.softmax import clamp, normalise
from mixfold.math.symmetric import cholesky, inverse_factor


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows (n, D), their weights, and known labels or None."""

    U: Array
    weight: Array
    labels: Array | None
    # views of these rows that several starts take
    known: dict[str, Sample] = field(default_factory=dict, init=False, compare=False, repr=False)


class Start(Protocol):
    """A rule of starting."""

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        """Responsibilities (n, K)."""
        ...


def one_hot(assigned: Array, n_components: int) -> Array:
    return np.asarray((assigned[:, None] == np.arange(n_components)).astype(float))


_WIDE = 500  # columns


def _labelled_centres(sample: Sample, n_components: int) -> tuple[Array, Array]:
    """Centres of the components that own labelled rows, and which components those are."""
    if sample.labels is None:
        return np.empty((0, sample.U.shape[1])), np.empty(0, np.int64)
    owners = np.unique(sample.labels[sample.labels >= 0])
    centres = [np.average(sample.U[sample.labels == k], axis=0,
                          weights=sample.weight[sample.labels == k]) for k in owners]  # fmt: skip
    return np.reshape(centres, (-1, sample.U.shape[1])), owners


def _seed_centres(sample: Sample, n_components: int, rng: np.random.Generator) -> Array:
    """k-means++ centres (K, D), with the labelled components in their own places."""
    known, owners = _labelled_centres(sample, n_components)
    centres = plus_plus(sample.U, sample.weight, n_components, rng, known if len(known) else None)
    order = np.concatenate([owners, np.setdiff1d(np.arange(n_components), owners)])
    placed = np.empty_like(centres)
    placed[order] = centres
    return placed


def _whiten(sample: Sample) -> Sample:
    """The sample in coordinates in which its covariance is the identity; rows far away from most
    others do not count in it."""
    if "white" not in sample.known:
        sample.known["white"] = _make_white(sample)
    return sample.known["white"]


def _make_white(sample: Sample) -> Sample:
    w = sample.weight * ~far_rows(sample.U, bulk_of(sample.U, sample.weight))
    w = w / w.sum()
    centred = sample.U - w @ sample.U
    if centred.shape[1] > max(_WIDE, 2 * len(centred)):
        return Sample(_whitened_wide(centred, w), sample.weight, sample.labels)
    covariance = (centred * w[:, None]).T @ centred
    ridge = 1e-6 * max(np.trace(covariance) / len(covariance), np.finfo(float).tiny)
    factor = cholesky(covariance + ridge * np.eye(len(covariance)))
    if factor is None:
        return sample
    return Sample(centred @ inverse_factor(factor), sample.weight, sample.labels)


def _whitened_wide(centred: Array, w: Array) -> Array:
    """As many whitened coordinates as there are rows, which have the same distances: for rows of
    very many columns, whose covariance costs the cube of their number."""
    _, scale, axes = np.linalg.svd(centred * np.sqrt(w)[:, None], full_matrices=False)
    variances = scale**2
    ridge = 1e-6 * max(variances.sum() / centred.shape[1], np.finfo(float).tiny)
    return np.asarray((centred @ axes.T) / np.sqrt(variances + ridge))


def _one_column(sample: Sample, rng: np.random.Generator) -> Sample:
    """A single column: clusters that are apart in one are lost in the distance over many."""
    chosen = int(rng.integers(sample.U.shape[1]))
    return Sample(sample.U[:, chosen : chosen + 1], sample.weight, sample.labels)


def kmeans_shares(
    sample: Sample, n_components: int, rng: np.random.Generator, n_steps: int = 10
) -> Array:
    """k-means++ and a few Lloyd steps."""
    centres = _seed_centres(sample, n_components, rng)
    assigned, _ = lloyd(sample.U, sample.weight, centres, n_steps, sample.labels)
    return one_hot(assigned, n_components)


def _one_direction(sample: Sample, rng: np.random.Generator) -> Sample:
    """Whitened rows along one direction, drawn at random."""
    white = _whiten(sample).U
    direction = rng.normal(size=(white.shape[1], 1))
    return Sample(white @ direction, sample.weight, sample.labels)


def _distances(sample: Sample, rng: np.random.Generator | None) -> Sample:
    """The distance of each whitened row from one point: a row drawn by its weight, or the middle.

    A cluster inside a ring, or inside a wider one, has no centre that k-means could find, and long
    clusters beside each other are cut across by it.
    """
    white = _whiten(sample).U
    if rng is None:
        centre = np.median(white, axis=0)
    else:
        mass = np.cumsum(sample.weight)
        centre = white[np.searchsorted(mass, rng.random() * mass[-1], side="right")]
    distance = np.sqrt(((white - centre) ** 2).sum(axis=1, keepdims=True))
    return Sample(distance, sample.weight, sample.labels)


@dataclass(frozen=True, slots=True)
class KMeansStart:
    """k-means++ and a few Lloyd steps, in turn on several views of the rows: the scaled columns,
    whitened data, one column or direction alone, the distance from the middle or from a row."""

    n_steps: int = 10

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        if n_components == 1:
            return np.ones((len(sample.U), 1))
        views = (
            lambda: sample,
            lambda: _whiten(sample),
            lambda: _one_column(sample, rng),
            lambda: _distances(sample, rng),
            lambda: _one_direction(sample, rng),
            lambda: _distances(sample, rng),
            lambda: _distances(sample, None),
            lambda: _distances(sample, rng),
        )
        view = views[attempt % len(views)]()
        if view.U.shape[1] == 1 and len(np.unique(view.U)) < n_components:
            view = sample  # of two values, say: k-means would leave components empty
        return kmeans_shares(view, n_components, rng, self.n_steps)


@dataclass(frozen=True, slots=True)
class PlusPlusStart:
    """Nearest of k-means++ centres, without Lloyd steps."""

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        centres = _seed_centres(sample, n_components, rng)
        assigned, _ = lloyd(sample.U, sample.weight, centres, 1, sample.labels)
        return one_hot(assigned, n_components)


@dataclass(frozen=True, slots=True)
class RandomRowsStart:
    """Nearest of randomly chosen rows."""

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        chosen = rng.choice(len(sample.U), n_components, replace=len(sample.U) < n_components)
        assigned = np.argmin(squared_distances(sample.U, sample.U[chosen]), axis=1)
        return one_hot(_obey(assigned, sample.labels), n_components)


@dataclass(frozen=True, slots=True)
class RandomStart:
    """Random responsibilities: r_nk ~ U(0, 1), normalised."""

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        resp = rng.random((len(sample.U), n_components))
        resp /= resp.sum(axis=1, keepdims=True)
        if sample.labels is not None:
            known = sample.labels >= 0
            resp[known] = one_hot(sample.labels[known], n_components)
        return resp


@dataclass(frozen=True, slots=True)
class RandomGaussiansStart:
    """The responsibilities of Gaussians drawn around the mean of all rows (randConst).

    With the mean m and the standard deviations s of the columns, and a constant c,

        weights ~ c + U(0, 1),   means ~ N(m, (s / c)^2),   variances 2 s^2

    so that a larger c makes components that are more alike. A column without variance tells
    nothing.
    """

    constant: float = 1.0

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        share = sample.weight / sample.weight.sum()
        mean = share @ sample.U
        deviation = np.sqrt(share @ (sample.U - mean) ** 2)
        used = np.ptp(sample.U, axis=0) > 0
        weights = self.constant + rng.random(n_components)
        means = rng.normal(size=(n_components, sample.U.shape[1])) / self.constant
        Z = (sample.U - mean)[:, used] / deviation[used]
        log_joint = np.log(weights) - squared_distances(Z, means[:, used]) / 4
        return normalise(clamp(log_joint, sample.labels))[1]


def _obey(assigned: Array, labels: Array | None) -> Array:
    return assigned if labels is None else np.where(labels >= 0, labels, assigned)


STARTS: dict[str, Start] = {
    "kmeans": KMeansStart(),
    "k-means++": PlusPlusStart(),
    "random": RandomStart(),
    "random_from_data": RandomRowsStart(),
    "randconst": RandomGaussiansStart(),
}


@dataclass(frozen=True, slots=True)
class FewerClusters:
    """A start that gives rows to the first clusters only, to another number of them in each
    attempt, unless some rows are labelled.

    Where the number is learned, a cluster that shares the rows of another dies slowly, and one that
    never had any costs little.
    """

    start: Start
    sizes: tuple[int, ...]

    def __call__(
        self, sample: Sample, n_components: int, rng: np.random.Generator, attempt: int
    ) -> Array:
        used = self.sizes[attempt % len(self.sizes)] if sample.labels is None else n_components
        shares = self.start(sample, used, rng, attempt)
        return np.pad(shares, ((0, 0), (0, n_components - used)))
