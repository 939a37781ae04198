"""Clusters of Gaussians with covariance matrices of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.families.bayes.records import NormalPrior
from mixfold.math.frame import Frame
from mixfold.math.symmetric import log_determinants
from mixfold.math.urn_matrices import wishart_logs, wishart_scores, wishart_shift
from mixfold.math.wishart import log_norm
from mixfold.models.mixtures.urns.urn import Urn, add_slots, dense_table, no_gaps


class WishartUrn(Urn):
    """The scatter of a cluster by its Cholesky factor."""

    def __init__(self, family: BayesFull, block: Block, prior: NormalPrior, frame: Frame) -> None:
        no_gaps(family, block)
        self._U = frame.enter(dense_table(family, block))
        self._prior = prior
        self._strength = float(prior.precision), float(prior.degrees)
        self._factor = np.linalg.cholesky(prior.scatter)
        size = self._U.shape[1]
        vectors, numbers = np.empty((0, size)), np.empty(0)
        matrices, work = np.empty((0, size, size)), np.empty(size)
        self._clusters: tuple[Any, ...] = (vectors, numbers, matrices, numbers, work)

    def put(self, row: int, slot: int) -> None:
        wishart_shift(row, slot, 1.0, self._U, *self._strength, self._clusters)

    def take(self, row: int, slot: int) -> bool:
        return bool(wishart_shift(row, slot, -1.0, self._U, *self._strength, self._clusters))

    def clear(self, slot: int) -> None:
        mean, seen, factor, _, _ = self._clusters
        mean[slot], seen[slot], factor[slot] = self._prior.mean, 0.0, self._factor
        wishart_logs(slot, *self._strength, self._clusters)

    def score(self, row: int, counts: Array, out: Array) -> None:
        wishart_scores(row, counts, self._U, *self._strength, self._clusters, out)

    def resize(self, n_slots: int) -> None:
        before = len(self._clusters[0])
        grown_up = tuple(add_slots(array, n_slots, 0.0) for array in self._clusters[:-1])
        self._clusters = (*grown_up, self._clusters[-1])
        for slot in range(before, n_slots):
            self.clear(slot)

    def gain(self, counts: Array) -> float:
        used = counts > 0
        _, seen, factors, _, _ = self._clusters
        beta, degrees = self._strength
        size = self._U.shape[1]
        after = log_norm(log_determinants(factors[used]), degrees + seen[used], size)
        before = log_norm(log_determinants(self._factor[None])[0], degrees, size)
        return float((after - before - 0.5 * size * np.log1p(seen[used] / beta)).sum())
