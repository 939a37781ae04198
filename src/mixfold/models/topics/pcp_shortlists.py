"""The clusters that a document may be of, where clusters are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, RowMemory
from mixfold.models.topics.pcp_records import PCPReading

# clusters of a list, and passes that a list is used for
LENGTH, PASSES = 50, 5


@dataclass(frozen=True, slots=True)
class Shortlists:
    """Lists of the ``length`` best clusters of each document, which serve for some ``passes``.

    Remembered of a document: the passes that its list has served for, then the identities of its
    clusters, -1 for none. Without a memory documents are compared with all clusters.
    """

    length: int = LENGTH
    passes: int = PASSES

    def current(self, reading: PCPReading, X: Any, rows: slice, memory: RowMemory | None) -> Array:
        """Positions (n, length) of clusters for documents, -1 for none."""
        known = None if memory is None else memory.recall(rows)
        if known is None:
            lists, age = best_clusters(reading, X, self.length), np.zeros(X.shape[0], np.int32)
        else:
            lists, age = self._renew_lists(known, reading, X)
        if memory is not None:
            kept = np.full((X.shape[0], 1 + self.length), -1, np.int32)
            kept[:, 0] = age + 1
            kept[:, 1 : 1 + lists.shape[1]] = np.where(lists >= 0, reading.ids[lists], -1)
            memory.keep(rows, kept)
        return lists

    def _renew_lists(self, known: Array, reading: PCPReading, X: Any) -> tuple[Array, Array]:
        """Lists as they were, but of documents whose list is old, or lost all its clusters."""
        age, lists = known[:, 0].copy(), _positions(reading.ids, known[:, 1:])
        old = age >= self.passes
        age[old] = 0
        again = np.flatnonzero(old | (lists < 0).all(axis=1))
        if len(again):
            found = best_clusters(reading, X if len(again) == len(age) else X[again], self.length)
            lists[again] = -1
            lists[again, : found.shape[1]] = found
        return lists, age


def _positions(present: Array, ids: Array) -> Array:
    """Where the clusters ``ids`` now are; -1 if they were dropped."""
    order = np.argsort(present)
    at = np.minimum(np.searchsorted(present, ids, sorter=order), len(present) - 1)
    found = order[at]
    return np.where(present[found] == ids, found, -1).astype(np.int32)


def best_clusters(reading: PCPReading, X: Any, length: int) -> Array:
    """Positions (n, length) of the clusters that explain each document best.

    Scores of a panel of clusters are forgotten before the next one is looked at.
    """
    n, rows = X.shape[0], np.arange(X.shape[0])[:, None]
    top, who = np.empty((n, 0)), np.empty((n, 0), np.int32)
    for panel in reading.panels:
        fresh = X @ reading.table(panel)[1] + reading.log_weights[panel]
        numbers = np.arange(panel.start, panel.stop, dtype=np.int32)
        top = np.concatenate([top, fresh], axis=1)
        who = np.concatenate([who, np.broadcast_to(numbers, fresh.shape)], axis=1)
        if top.shape[1] > length:
            best = np.argpartition(-top, length - 1, axis=1)[:, :length]
            top, who = top[rows, best], who[rows, best]
    return np.sort(who, axis=1)
