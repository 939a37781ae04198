"""Clusters of shares that add to one: categories and multinomial counts."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mixfold.contracts import Array, Block
from mixfold.families.exponential.records import SharesPrior
from mixfold.families.exponential.shares import log_norm, segment_sums
from mixfold.families.exponential.simplex import SimplexFamily
from mixfold.math.frame import Frame
from mixfold.math.urn_laws import share_scores, share_shift
from mixfold.models.mixtures.urns.urn import Urn, add_slots


class SharesUrn(Urn):
    """chi = a + sums of the entries; rows are kept by their entries that are not zero."""

    def __init__(
        self, family: SimplexFamily, block: Block, prior: SharesPrior, frame: Frame
    ) -> None:
        self._prior, self._starts = prior, family.starts(prior.size)
        X = csr_array(family.expand_block(block, prior.size).X)
        where, amount = X.indices.astype(np.int64), X.data.astype(float)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        lengths = np.zeros((X.shape[0], len(self._starts)))
        np.add.at(lengths, (row, np.searchsorted(self._starts, where, "right") - 1), amount)
        self._rows = X.indptr.astype(np.int64), where, amount, lengths
        self._totals = segment_sums(prior.a, self._starts)
        self._a, self._total = np.empty((0, prior.a.size)), np.empty((0, len(self._starts)))

    def put(self, row: int, slot: int) -> None:
        share_shift(row, slot, 1.0, *self._rows, self._a, self._total)

    def take(self, row: int, slot: int) -> bool:
        return bool(share_shift(row, slot, -1.0, *self._rows, self._a, self._total))

    def clear(self, slot: int) -> None:
        self._a[slot], self._total[slot] = self._prior.a, self._totals

    def score(self, row: int, counts: Array, out: Array) -> None:
        share_scores(row, counts, *self._rows, self._a, self._total, out)

    def resize(self, n_slots: int) -> None:
        self._a = add_slots(self._a, n_slots, self._prior.a)
        self._total = add_slots(self._total, n_slots, self._totals)

    def gain(self, counts: Array) -> float:
        after = log_norm(self._a[counts > 0], self._starts)
        return float((after - log_norm(self._prior.a, self._starts)).sum())
