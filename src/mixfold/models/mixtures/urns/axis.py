"""Clusters of Gaussians whose variances are those of columns, or one for all columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from mixfold.contracts import Array, Block
from mixfold.families.bayes.normal_gamma import NormalGamma
from mixfold.families.bayes.records import NormalPrior
from mixfold.math.frame import Frame
from mixfold.math.urn_normals import axis_logs, axis_put, axis_scores, axis_take
from mixfold.models.mixtures.urns.urn import Urn, add_slots, dense_table


class AxisUrn(Urn):
    """Groups of ``width`` columns share a precision; missing entries are left out."""

    def __init__(self, family: NormalGamma, block: Block, prior: NormalPrior, frame: Frame) -> None:
        self._U = frame.enter(dense_table(family, block))
        size = self._U.shape[1]
        groups = family.gather(np.ones((1, size))).size
        self._width = size // groups
        wide = (prior.mean, np.broadcast_to(prior.precision, size))
        grouped = (np.broadcast_to(v, groups) for v in (prior.degrees, prior.scatter))
        self._prior = tuple(np.array(v, dtype=float) for v in (*wide, *grouped))
        columns, of_groups = np.empty((0, size)), np.empty((0, groups))
        logs = np.empty((0, groups, 2))
        self._clusters: tuple[Any, ...] = (columns, columns, of_groups, of_groups, columns, logs)

    def put(self, row: int, slot: int) -> None:
        axis_put(row, slot, self._U, self._width, self._prior, self._clusters)

    def take(self, row: int, slot: int) -> bool:
        return bool(axis_take(row, slot, self._U, self._width, self._prior, self._clusters))

    def clear(self, slot: int) -> None:
        mean, seen, entries, scatter, _, _ = self._clusters
        mean[slot], seen[slot], entries[slot], scatter[slot] = self._prior[0], 0, 0, self._prior[3]
        axis_logs(slot, self._width, self._prior, self._clusters)

    def score(self, row: int, counts: Array, out: Array) -> None:
        axis_scores(row, counts, self._U, self._width, self._prior, self._clusters, out)

    def resize(self, n_slots: int) -> None:
        before = len(self._clusters[0])
        self._clusters = tuple(add_slots(array, n_slots, 0.0) for array in self._clusters)
        for slot in range(before, n_slots):
            self.clear(slot)

    def gain(self, counts: Array) -> float:
        used = counts > 0
        _, beta, degrees, scatter = self._prior
        _, seen, entries, after, _, _ = (array[used] for array in self._clusters)
        laws = _log_norm(degrees + entries, after) - _log_norm(degrees, scatter)
        return float(laws.sum() - 0.5 * np.log1p(seen / beta).sum())


def _log_norm(degrees: Array, scatter: Array) -> Array:
    """B of gammas."""
    return np.asarray(gammaln(degrees / 2) - degrees / 2 * np.log(scatter / 2))
