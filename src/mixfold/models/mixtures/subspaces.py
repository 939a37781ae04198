"""K-subspaces: hard assignments to the nearest of K planes.

minimise  J = sum_n w_n min_k |(I - A_k A_k') (x_n - mu_k)|^2,   A_k' A_k = I_d

Given the assignments, mu_k is the mean of the rows of cluster k and A_k has their first d principal
axes: both steps lower J. With d = 0 it is k-means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Block, Context, Event, Pilot, RowRandom, Stats, Update, record
from mixfold.math.frame import Frame, frame_of, uniform
from mixfold.math.seeding import distinct
from mixfold.math.signs import fix_signs
from mixfold.models.factors.factor_starts import SubspaceStart
from mixfold.models.mixtures.starts import KMeansStart, Sample, Start


@record
@dataclass(frozen=True, slots=True)
class Planes:
    """Means (K, D) and orthonormal axes (K, D, d) in frame coordinates.

    ``values`` (K, d) are the mean squares along the axes, ``weights`` (K,) the shares of the rows
    and ``variance`` the unit of the objective.
    """

    frame: Frame
    means: Array
    axes: Array
    values: Array
    weights: Array
    variance: float


@record
@dataclass(frozen=True)
class PlaneSums(Stats):
    """By cluster: weight (K,), sums (K, D) and products (K, D, D) of rows; J and all weight."""

    mass: Array
    first: Array
    second: Array
    cost: float
    weight: float


@dataclass(frozen=True)
class SubspaceModel:
    """The model of K-subspaces; the objective is -J in units of the variance of the sample."""

    n_clusters: int
    n_axes: int

    @property
    def start(self) -> Start:
        """Planes through random rows; centres where planes are points."""
        return SubspaceStart(self.n_axes) if self.n_axes else KMeansStart()

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> Planes:
        X, weight, _ = distinct(rows_of(pilot.block), pilot.block.weights(), None)
        frame = uniform(frame_of(X, weight))
        U = frame.enter(X)
        resp = self.start(Sample(U, weight, None), self.n_clusters, rng, attempt)
        centred = U - np.average(U, axis=0, weights=weight)
        variance = float(weight @ (centred**2).sum(axis=1) / weight.sum())
        K, D, d = self.n_clusters, U.shape[1], self.n_axes
        axes = np.repeat(np.eye(D, d)[None], K, axis=0)
        empty = np.zeros((K, D)), axes, np.zeros((K, d)), np.full(K, 1.0 / K)
        params = Planes(frame, *empty, variance if variance > 0 else 1.0)
        return _fit_planes(params, _tally(U, weight, resp.argmax(axis=1), K, 0.0))

    # ------------------------------------------------ assignment

    def prepare(self, params: Planes) -> Planes:
        return params

    def expect(self, reading: Planes, block: Block, rng: RowRandom) -> PlaneSums:
        U, weight = reading.frame.enter(rows_of(block)), block.weights()
        squares = squared_distances(reading, U)
        assigned = squares.argmin(axis=1)
        cost = float(weight @ squares[np.arange(len(U)), assigned])
        return _tally(U, weight, assigned, self.n_clusters, cost)

    # ------------------------------------------------ planes

    def update(self, params: Planes, stats: PlaneSums, context: Context) -> Update[Planes]:
        moved = _fit_planes(params, stats)
        empty = np.flatnonzero(stats.mass <= 0)
        events: tuple[Event, ...] = ()
        if empty.size and context.pilot is not None:
            moved, events = _reseed(moved, empty, context.pilot.block, context.iteration)
        same = np.array_equal(moved.means, params.means) and np.array_equal(moved.axes, params.axes)
        return Update(params if same else moved, events)

    def objective(self, params: Planes, stats: PlaneSums) -> float:
        return -stats.cost / params.variance

    def inertia(self, params: Planes, objective: float) -> float:
        """J in data coordinates, from the objective."""
        return -objective * params.variance * float(params.frame.scale[0]) ** 2

    def total_weight(self, stats: PlaneSums) -> float:
        return stats.weight

    def entropy(self, stats: PlaneSums) -> float:
        return 0.0

    # ------------------------------------------------ extrapolation: not offered

    def coordinates(self, params: Planes) -> Array:
        return np.empty(0)

    def from_coordinates(self, params: Planes, vector: Array) -> None:
        return None

    def derivatives(self, params: Planes, stats: PlaneSums) -> None:
        return None


def rows_of(block: Block) -> Array:
    """The rows of a block in float64; an error if an entry is missing."""
    if not block.complete:
        raise ValueError(
            "Input X contains NaN: KSubspaces needs complete rows; fill them first, for example by "
            "mixfold.PPCA(n_components).fit(X).impute(X), or use MixtureOfPPCA, which needs none"
        )
    return np.asarray(block.X, np.float64)


def squared_distances(params: Planes, U: Array) -> Array:
    """Squared distances (n, K) of rows in frame coordinates from the planes."""
    out = np.empty((len(U), len(params.means)))
    for k, (mean, axes) in enumerate(zip(params.means, params.axes, strict=True)):
        deviation = U - mean
        out[:, k] = ((deviation - (deviation @ axes) @ axes.T) ** 2).sum(axis=1)
    return out


def _tally(U: Array, weight: Array, assigned: Array, n_clusters: int, cost: float) -> PlaneSums:
    D = U.shape[1]
    mass = np.bincount(assigned, weight, minlength=n_clusters).astype(float)
    first, second = np.zeros((n_clusters, D)), np.zeros((n_clusters, D, D))
    for k in np.unique(assigned):
        rows, w = U[assigned == k], weight[assigned == k, None]
        first[k], second[k] = (w * rows).sum(axis=0), (w * rows).T @ rows
    return PlaneSums(mass, first, second, cost, float(weight.sum()))


def _fit_planes(params: Planes, sums: PlaneSums) -> Planes:
    """Mean and principal axes of the rows of each cluster; one without rows stays as it is."""
    means, axes, values = params.means.copy(), params.axes.copy(), params.values.copy()
    d = axes.shape[2]
    for k in np.flatnonzero(sums.mass > 0):
        means[k] = sums.first[k] / sums.mass[k]
        covariance = sums.second[k] / sums.mass[k] - np.outer(means[k], means[k])
        found, vectors = np.linalg.eigh(covariance)
        axes[k] = fix_signs(vectors[:, ::-1][:, :d])
        values[k] = np.maximum(found[::-1][:d], 0.0)
    weights = sums.mass / sums.mass.sum()
    return replace(params, means=means, axes=axes, values=values, weights=weights)


def _reseed(
    params: Planes, empty: Array, block: Block, iteration: int
) -> tuple[Planes, tuple[Event, ...]]:
    """Planes without rows go through rows far from all others; the objective cannot fall by it."""
    U, means = params.frame.enter(rows_of(block)), params.means.copy()
    events = []
    for k in empty:
        left = squared_distances(replace(params, means=means), U).min(axis=1)
        far = np.flatnonzero(left == left.max())
        means[k] = U[far[np.lexsort(U[far].T)[0]]]
        what = "lost all its rows and was moved to a row far from its plane"
        events.append(Event("reseed", f"cluster {k} {what}", iteration, int(k)))
    return replace(params, means=means), tuple(events)
