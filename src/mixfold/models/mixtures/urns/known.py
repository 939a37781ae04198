"""Clusters of Gaussians whose covariance is known: only their means are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.known_records import KnownPrior
from mixfold.math.frame import Frame
from mixfold.math.missing import patterns_of
from mixfold.math.urn_matrices import known_covariance_scores, known_covariance_shift
from mixfold.models.mixtures.urns.urn import Urn, add_slots, dense_table


class KnownUrn(Urn):
    """The law of a mean by its precision and its linear coordinate about the mean of the prior.

    A row with gaps pulls, by the inverse covariance of what it has, in those directions alone.
    """

    def __init__(
        self, family: KnownCovariance, block: Block, prior: KnownPrior, frame: Frame
    ) -> None:
        away = frame.enter(dense_table(family, block)) - prior.mean
        self._prior = prior
        self._rows = _pulls(np.asarray(away, dtype=float), family.known_covariance(frame))
        size = away.shape[1]
        matrices, vectors = np.empty((0, size, size)), np.empty((0, size))
        self._clusters: tuple[Any, ...] = (matrices, vectors, np.empty(0))
        square, vector = np.zeros((size, size)), np.zeros(size)
        self._work = (square, square.copy(), vector, vector.copy())
        self._norm = -0.5 * float(np.linalg.slogdet(prior.precision)[1])

    def put(self, row: int, slot: int) -> None:
        known_covariance_shift(row, slot, 1.0, *self._rows, self._clusters, self._work)

    def take(self, row: int, slot: int) -> bool:
        return bool(
            known_covariance_shift(row, slot, -1.0, *self._rows, self._clusters, self._work)
        )

    def clear(self, slot: int) -> None:
        precision, linear, norm = self._clusters
        precision[slot], linear[slot], norm[slot] = self._prior.precision, 0.0, self._norm

    def score(self, row: int, counts: Array, out: Array) -> None:
        known_covariance_scores(row, counts, *self._rows, self._clusters, self._work, out)

    def resize(self, n_slots: int) -> None:
        before = len(self._clusters[0])
        self._clusters = tuple(add_slots(array, n_slots, 0.0) for array in self._clusters)
        for slot in range(before, n_slots):
            self.clear(slot)

    def gain(self, counts: Array) -> float:
        norms = self._clusters[2][counts > 0]
        return float((norms - self._norm).sum())


def _pulls(away: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """A (x - mean) of each row, A of each pattern of gaps, and the pattern of each row."""
    patterns = patterns_of(away)
    size = len(covariance)
    curvature = np.zeros((len(patterns.missing), size, size))
    which, pulls = np.empty(len(away), np.int64), np.empty_like(away)
    for p, missing in enumerate(patterns.missing):
        seen = np.flatnonzero(~missing)
        curvature[p][np.ix_(seen, seen)] = np.linalg.inv(covariance[np.ix_(seen, seen)])
        rows = patterns.order[patterns.start[p] : patterns.start[p + 1]]
        which[rows] = p
        pulls[rows] = np.where(missing, 0.0, away[rows]) @ curvature[p]
    return pulls, curvature, which
