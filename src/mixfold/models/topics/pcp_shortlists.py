"""The clusters that a document may be of, where clusters are many.

Kept between passes in this process only: they are a matter of time, not of what is fitted. A model
that travels leaves them behind, and compares its documents with all clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.models.topics.pcp_records import PCPReading

# clusters of a list, and passes that a list is used for
LENGTH, PASSES = 50, 5
# bytes of lists that may be kept
ROOM = 2**30


class Shortlists:
    """Identities of the best clusters of each document, by the first row of a block."""

    def __init__(self, length: int = LENGTH, passes: int = PASSES, room: float = ROOM) -> None:
        self.length, self.passes, self.room = length, passes, room
        self._lists: dict[int, tuple[Array, int]] = {}

    def clear(self) -> None:
        self._lists = {}

    def current(self, reading: PCPReading, X: Any, start: int) -> Array:
        """Positions (n, length) of clusters for the documents of a block, -1 for none."""
        ids, age = self._lists.get(start, (None, self.passes))
        if ids is None or len(ids) != X.shape[0] or age >= self.passes:
            lists, age = best_clusters(reading, X, self.length), 0
        else:
            lists = self._refill_lists(_positions(reading.ids, ids), reading, X)
        self._keep(start, np.where(lists >= 0, reading.ids[lists], -1), age + 1)
        return lists

    def _refill_lists(self, lists: Array, reading: PCPReading, X: Any) -> Array:
        """Documents whose clusters were all dropped look at all again."""
        lost = np.flatnonzero((lists < 0).all(axis=1))
        if len(lost):
            found = best_clusters(reading, X[lost], self.length)
            lists[lost] = -1
            lists[lost, : found.shape[1]] = found
        return lists

    def _keep(self, start: int, ids: Array, age: int) -> None:
        known = sum(one.nbytes for first, (one, _) in list(self._lists.items()) if first != start)
        if known + ids.nbytes <= self.room:
            self._lists[start] = (ids, age)

    def __getstate__(self) -> dict[str, Any]:
        return {"length": self.length, "passes": self.passes, "room": self.room, "_lists": {}}


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
