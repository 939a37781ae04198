"""How a projection with clusters starts: principal axes, and groups among the scores on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Pilot, Source
from mixfold.families.gaussian import Moments
from mixfold.math.seeding import distinct
from mixfold.math.symmetric import pack
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.factors.spectral_table import look
from mixfold.models.mixtures.rows import with_labels
from mixfold.models.mixtures.starts import Sample, Start
from mixfold.models.projection.projection_records import Plane, plane_of
from mixfold.models.projection.projection_rows import rows_about

# digits of the scores by which repeated rows are known again
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class _Sampled:
    """A sample of rows as a source, and whoever visits it."""

    block: Block

    @property
    def n_samples(self) -> int:
        return self.block.n_rows

    @property
    def n_features(self) -> int:
        return int(self.block.X.shape[1])

    @property
    def feature_names(self) -> None:
        return None

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.block.X.dtype
        return dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        yield self.block

    def map_reduce(self, task: Callable[[Block], Any], source: Source) -> Any:
        return reduce(add, map(task, source.blocks()))

    def map_rows(self, task: Callable[[Block], Any], source: Source) -> Iterator[Any]:
        return map(task, source.blocks())


def find_plane(
    source: Source, executor: Any, size: int, floor: float, rng: np.random.Generator
) -> Plane:
    """The principal axes of all rows, in the frame of a fit to them."""
    spectrum = principal_axes(source, executor, size, rng=rng)
    table = look(source, executor, True, None)
    return plane_of(spectrum, table.origin if table.thin else spectrum.mean, floor)


def sample_plane(pilot: Pilot, size: int, floor: float) -> Plane:
    """The principal axes of a sample."""
    rows = _Sampled(pilot.block)
    return find_plane(rows, rows, size, floor, np.random.default_rng(0))


def start_moments(
    pilot: Pilot,
    plane: Plane,
    start: Start,
    n_clusters: int,
    n_used: int,
    rng: np.random.Generator,
    attempt: int,
) -> Moments:
    """Moments of the latents of each cluster that ``start`` finds among the scores.

    Only the first ``n_used`` clusters get rows, unless some are known.
    """
    block = with_labels(pilot.block, n_clusters)
    kept = np.flatnonzero(block.weights() > 0)
    scores = rows_about(block, plane.frame, plane.offset).onto(plane.axes)[kept]
    labels = None if block.y is None else block.y[kept]
    unit = np.sqrt(plane.variance + plane.noise)
    # what is repeated differs in its last digits, for products depend on where a row stands
    rounded = np.round(scores / unit, _DIGITS) * unit
    U, weight, labels = distinct(rounded, block.weights()[kept], labels)
    used = n_used if labels is None else n_clusters
    shares = start(Sample(U, weight, labels), used, rng, attempt)
    resp = np.pad(shares, ((0, 0), (0, n_clusters - used))) * weight[:, None]
    # the sample stands for all rows
    resp *= pilot.total_weight / max(resp.sum(), np.finfo(float).tiny)
    return _latent_moments(U, resp, plane.noise)


def _latent_moments(U: Array, resp: Array, noise: float) -> Moments:
    """Scores are latents with noise: what they vary more than it is the latents' own."""
    count = resp.sum(axis=0)
    means = (resp.T @ U) / np.where(count > 0, count, 1.0)[:, None]
    size = U.shape[1]
    second = np.empty((len(count), size, size))
    for k, own in enumerate(count):
        away = U - means[k]
        values, vectors = np.linalg.eigh((resp[:, k, None] * away).T @ away / max(own, 1e-300))
        # a direction that starts without variance would stay so
        second[k] = own * (vectors * np.maximum(values - noise, 0.1 * noise)) @ vectors.T
    counts = np.repeat(count[:, None], size, axis=1)
    return Moments(counts, np.zeros_like(means), pack(second), means)
