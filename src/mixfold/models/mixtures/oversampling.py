"""k-means||: candidates for centres, a few rounds of many at once, over all the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mixfold.contracts import Array, Block, Pilot
from mixfold.families.component import dense_rows
from mixfold.math.centres import Centres
from mixfold.models.mixtures.kmeans import KMeansModel, KMeansStats
from mixfold.models.mixtures.kmeans_starts import CandidateCentres, sample_rows

# as in the paper: after five rounds of 2 K rows more rounds do not pay
ROUNDS, PER_CLUSTER = 5, 2

Draw = Callable[[Callable[[Block], Array], int, int], Block]
Total = Callable[[Callable[[Block], KMeansStats]], KMeansStats]


def oversample(
    model: KMeansModel, pilot: Pilot, rng: np.random.Generator, draw: Draw, total: Total
) -> CandidateCentres:
    """Weighted candidates by the rounds of Bahmani et al. (Scalable k-means++, VLDB 2012).

    From one row on, each round adds rows drawn in proportion to their squared distance to the
    candidates so far; a candidate then weighs as much as the rows that are nearest to it. In
    the paper a round draws each row by itself, in expectation 2 K; here it draws 2 K.

    Parameters
    ----------
    model : KMeansModel
    pilot : Pilot
    rng : Generator
    draw : callable
        (mass of the rows of a block, number of rows, round) -> the rows drawn, in one pass.
    total : callable
        Sum of the statistics of all blocks, in one pass.
    """
    rows = sample_rows(pilot.block, model.n_clusters, rng)
    share = rows.weight / rows.weight.sum()
    points = rows.whole(rows.U[[rng.choice(len(share), p=share)]])
    for number in range(ROUNDS):
        mass = partial(model.cost, Centres(rows.frame, points))
        more = draw(mass, PER_CLUSTER * model.n_clusters, number)
        fresh = rows.frame.enter(dense_rows(more.X))
        points = np.concatenate([points, np.where(np.isnan(fresh), 0.0, fresh)])
    stats = total(partial(model.tally, Centres(rows.frame, points)))
    filled = stats.mass > 0
    return CandidateCentres(rows.frame.leave(points[filled]), stats.mass[filled])
