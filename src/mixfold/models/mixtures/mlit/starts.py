"""Where a mixture under transformations begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixfold.contracts import Array, Pilot
from mixfold.math.seeding import distinct
from mixfold.math.signs import fix_signs
from mixfold.models.mixtures.mlit.model import law
from mixfold.models.mixtures.mlit.records import (
    Moments,
    Transformed,
    TransformSums,
    moments_of,
    pool_moments,
)
from mixfold.models.mixtures.mlit.rules import Rule
from mixfold.models.mixtures.starts import Sample, kmeans_shares


def windows(n_components: int, n_dims: int, n_columns: int, shift: int) -> Array:
    """Which eigenvectors each component takes, (K, d): neighbours, from k * shift on.

    A shift that leads beyond the last one is lowered; if even 1 is too much they begin anew.
    """
    room = n_columns - n_dims
    step = min(shift, room // max(1, n_components - 1)) if n_components > 1 else shift
    first = np.arange(n_components) * max(1, step)
    return np.asarray((first[:, None] + np.arange(n_dims)) % n_columns)


def window_start(
    rule: Rule, moments: Moments, n_components: int, n_dims: int, *, smallest: bool, shift: int,
    ridge: float,
) -> Transformed:  # fmt: skip
    """Each component with its window of eigenvectors, and the law of all rows in it.

    As published, the covariance of all rows is divided by their number less one.
    """
    unbiased = moments.n / max(moments.n - 1.0, 1.0)
    moments = replace(moments, covariance=moments.covariance * unbiased)
    _, vectors = np.linalg.eigh(moments.covariance)
    vectors = fix_signs(vectors if smallest else vectors[:, ::-1])
    chosen = windows(n_components, n_dims, len(vectors), shift)
    transforms = [rule.start(np.ascontiguousarray(vectors[:, window].T)) for window in chosen]
    laws = [law(omega, moments, ridge) for omega in transforms]
    return Transformed(
        np.full(n_components, 1.0 / n_components),
        np.stack(transforms),
        np.stack([mean for mean, _ in laws]),
        np.stack([covariance for _, covariance in laws]),
    )


def cluster_start(
    rule: Rule, n_components: int, n_dims: int, ridge: float, pilot: Pilot, rng: np.random.Generator
) -> Transformed:
    """From clusters of a sample of the rows, in columns of unit variance."""
    rows = np.asarray(pilot.block.X, np.float64)
    X, weight, _ = distinct(rows, pilot.block.weights(), None)
    origin = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - origin) ** 2, axis=0, weights=weight))
    U = (X - origin) / np.where(spread > 0, spread, 1.0)
    shares = kmeans_shares(Sample(U, weight, None), n_components, rng) * weight[:, None]
    rows = X - origin
    second = np.stack([(rows * share[:, None]).T @ rows for share in shares.T])
    total = float(weight.sum())
    sums = TransformSums(shares.sum(axis=0), shares.T @ rows, second, 0.0, total, origin)
    return start_from_responsibilities(rule, sums, n_dims, ridge)


def start_from_responsibilities(
    rule: Rule, sums: TransformSums, n_dims: int, ridge: float
) -> Transformed:
    """From rows that are shared among the components already."""
    parts = []
    for k in range(len(sums.count)):
        few = sums.count[k] < n_dims + 1
        moments = pool_moments(sums) if few else moments_of(sums, k)
        nothing = np.eye(n_dims, len(sums.origin))
        omega = rule.move(nothing, np.zeros(n_dims), np.eye(n_dims), moments, 1)
        parts.append((omega, *law(omega, moments, ridge)))
    counts = np.maximum(sums.count, 1e-3 * sums.weight / len(sums.count))
    stacked = (np.stack(part) for part in zip(*parts, strict=True))
    return Transformed(counts / counts.sum(), *stacked)
