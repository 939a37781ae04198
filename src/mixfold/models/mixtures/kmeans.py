"""K-means: hard assignments to the nearest of K centres.

minimise  J = sum_n w_n min_k sum_{d observed} (x_nd - c_kd)^2

Missing entries are left out of the distance, and a centre is the mean of the observed entries of
its rows, column by column: both steps then lower J, as without missing entries. The columns keep
their units: unlike a mixture, k-means depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Event,
    Metric,
    Pilot,
    RowRandom,
    Stats,
    Update,
    record,
)
from mixfold.families.component import dense_rows
from mixfold.math import assignment, sparse_assignment
from mixfold.math.centres import Centres
from mixfold.math.frame import Frame, bulk_of
from mixfold.models.mixtures.kmeans_starts import (
    CentreStart,
    PlusPlusCentres,
    SampleRows,
    sample_rows,
)
from mixfold.models.mixtures.outliers import Place, outlier_events


@record
@dataclass(frozen=True, slots=True)
class KMeansParams:
    """Centres (K, D) in frame coordinates; ``variance`` is the unit of the objective there."""

    frame: Frame
    centres: Array
    variance: float


@record
@dataclass(frozen=True)
class KMeansStats(Stats):
    """Sums in frame coordinates.

    ``mass`` (K,) is the weight of the rows of each cluster, ``count`` the weight of their observed
    entries, (K, D) or, where nothing is missing, (K, 1); ``first`` (K, D) the sum of these entries.
    """

    mass: Array
    count: Array
    first: Array
    inertia: float
    weight: float


@dataclass(frozen=True)
class KMeansModel:
    """The model of k-means: what an engine needs to fit it, and nothing of a particular fit.

    The objective is -J in units of the total variance of the pilot, so that tolerances mean the
    same for any units of the data: per row it is the share of the variance within clusters.
    """

    n_clusters: int
    start: CentreStart = field(default_factory=PlusPlusCentres)

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> KMeansParams:
        rows, variance = self._start_rows(pilot.block, rng)
        return KMeansParams(rows.frame, self.start(rows, self.n_clusters, rng), variance)

    def _start_rows(self, block: Block, rng: np.random.Generator) -> tuple[SampleRows, float]:
        """What the starts of a fit share; of sparse rows each start may draw others."""
        if issparse(block.X):
            rows = sample_rows(block, self.n_clusters, rng)
            return rows, rows.variance
        if "centres" not in block.known:
            rows = sample_rows(block, self.n_clusters, rng)
            block.known["centres"] = rows, rows.variance
        found: tuple[SampleRows, float] = block.known["centres"]
        return found

    # ------------------------------------------------ assignment

    def prepare(self, params: KMeansParams) -> Centres:
        return Centres(params.frame, params.centres)

    def expect(self, reading: Centres, block: Block, rng: RowRandom) -> KMeansStats:
        return self.tally(reading, block)

    def tally(self, reading: Centres, block: Block) -> KMeansStats:
        """The sums of the rows of each centre: nothing is drawn."""
        sums = _kernels(block).assign(block, reading)
        return KMeansStats(sums.mass, sums.count, sums.first, sums.inertia, sums.weight)

    def labels(self, reading: Centres, block: Block) -> Array:
        """The nearest centre of each row, int32; the lowest index of several."""
        return np.asarray(_kernels(block).nearest(block, reading)[0])

    def cost(self, reading: Centres, block: Block) -> Array:
        """Weighted squared distance of each row to its nearest centre, in frame coordinates."""
        return np.asarray(_kernels(block).nearest(block, reading)[1] * block.weights())

    def distances(self, reading: Centres, block: Block) -> Array:
        """Distances (n, K) in data coordinates."""
        squared = _kernels(block).squared_distances(block, reading)
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)) * reading.frame.scale[0])

    # ------------------------------------------------ centres

    def update(
        self, params: KMeansParams, stats: KMeansStats, context: Context
    ) -> Update[KMeansParams]:
        """Each centre to the mean of its rows; the same object if none moves."""
        known = np.broadcast_to(stats.count > 0, stats.first.shape)
        centres = np.divide(stats.first, stats.count, out=params.centres.copy(), where=known)
        empty = np.flatnonzero(stats.mass <= 0)
        events: tuple[Event, ...] = ()
        if empty.size and context.pilot is not None:
            centres, events = self._reseed(replace(params, centres=centres), empty, context)
        events += self._tell_of_outliers(replace(params, centres=centres), stats, context)
        if np.array_equal(centres, params.centres):
            return Update(params, events)
        return Update(replace(params, centres=centres), events)

    def _tell_of_outliers(
        self, params: KMeansParams, stats: KMeansStats, context: Context
    ) -> tuple[Event, ...]:
        def place() -> Place:
            return Place(params.frame.leave(params.centres), 0.0, stats.count)

        return outlier_events(bulk_of, place, stats.mass, context, "cluster")

    def _reseed(
        self, params: KMeansParams, empty: Array, context: Context
    ) -> tuple[Array, tuple[Event, ...]]:
        """Empty clusters take the rows of the pilot that are farthest from their centres.

        The objective cannot fall by it: no row was assigned to the centres that move.
        """
        assert context.pilot is not None
        block, frame, centres = context.pilot.block, params.frame, params.centres.copy()
        alive = np.setdiff1d(np.arange(self.n_clusters), empty)
        nearest = _kernels(block).nearest
        labels, distance = nearest(block, Centres(frame, centres[alive]))
        events = []
        for k in empty:
            row = _farthest(block, distance)
            # what rounding makes of a row that lies on its centre
            moves = distance[row] > 1e-26 * (1 + np.square(centres).sum(axis=1).max())
            if moves:
                point = frame.enter(dense_rows(block.X[row : row + 1]))[0]
                centres[k] = np.where(np.isnan(point), centres[alive[labels[row]]], point)
                distance = np.minimum(distance, nearest(block, Centres(frame, centres[[k]]))[1])
            events.append(_event(int(k), bool(moves), context.iteration))
        return centres, tuple(events)

    def objective(self, params: KMeansParams, stats: KMeansStats) -> float:
        return -stats.inertia / params.variance

    def inertia(self, params: KMeansParams, objective: float) -> float:
        """J in data coordinates, from the objective."""
        return -objective * params.variance * float(params.frame.scale[0]) ** 2

    def total_weight(self, stats: KMeansStats) -> float:
        return stats.weight

    def entropy(self, stats: KMeansStats) -> float:
        return 0.0

    def row_weight(self, stats: KMeansStats) -> float:
        return stats.weight

    def additive(self, stats: KMeansStats) -> KMeansStats:
        return stats

    def normalised(self, stats: KMeansStats) -> KMeansStats:
        """Statistics per unit of weight: what schedules blend."""
        return stats.scale(1.0 / stats.weight)

    # ------------------------------------------------ extrapolation: not offered

    def coordinates(self, params: KMeansParams) -> Array:
        return params.centres.ravel()

    def from_coordinates(self, params: KMeansParams, vector: Array) -> KMeansParams:
        return replace(params, centres=vector.reshape(params.centres.shape))

    def derivatives(self, params: KMeansParams, stats: KMeansStats) -> tuple[Array, Metric] | None:
        """None: the objective is not smooth where rows change their cluster."""
        return None


def _kernels(block: Block) -> Any:
    return sparse_assignment if issparse(block.X) else assignment


def _farthest(block: Block, distance: Array) -> int:
    """The row of the largest distance; of several the first in an order of their content."""
    rows = np.flatnonzero(distance == distance.max())
    if len(rows) > 1 and not issparse(block.X):
        rows = rows[np.lexsort(block.X[rows].T)]
    return int(rows[0])


def _event(cluster: int, moves: bool, iteration: int) -> Event:
    if moves:
        what = "lost all its rows and was moved to a row far from its centre"
        return Event("reseed", f"cluster {cluster} {what}", iteration, cluster)
    what = "has no rows: there are fewer distinct rows than clusters"
    return Event("empty", f"cluster {cluster} {what}", iteration, cluster)
