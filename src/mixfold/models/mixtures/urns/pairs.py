"""Clusters of columns with one parameter each: odds with beta laws, rates with gamma laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import dense_rows
from mixfold.families.exponential.conjugate_priors import BETA, GAMMA, Law
from mixfold.families.exponential.records import PairPrior, zero_filled
from mixfold.math.frame import Frame
from mixfold.math.urn_laws import (
    beta_scores,
    gamma_scores,
    pair_shift,
    sparse_beta_scores,
    sparse_gamma_scores,
    sparse_pair_shift,
)
from mixfold.models.mixtures.urns.urn import Urn, add_slots

Kernel = Callable[..., None]


class HasPairs(Protocol):
    """What such an urn asks of a family of a beta or gamma law; its prior is a ``PairPrior``."""

    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        """Sums of T(x), which rows add to a and b, from sums of x and of 1."""
        ...


class PairUrn(Urn):
    """chi = (a, b) + sums of T(x); a missing entry has T = 0."""

    kernel: ClassVar[Kernel]
    law: ClassVar[Law]

    def __init__(self, family: HasPairs, block: Block, prior: PairPrior, frame: Frame) -> None:
        self._law, self._prior = self.law, prior
        self._keep(family, block.X, prior.size)
        self._a = self._b = np.empty((0, prior.a.size))

    def _keep(self, family: HasPairs, X: Any, size: Array) -> None:
        self._rows = _statistics(family, dense_rows(X), size)

    def put(self, row: int, slot: int) -> None:
        self._shift(row, slot, 1.0)

    def take(self, row: int, slot: int) -> bool:
        return self._shift(row, slot, -1.0)

    def _shift(self, row: int, slot: int, sign: float) -> bool:
        return bool(pair_shift(row, slot, sign, *self._rows, self._a, self._b))

    def clear(self, slot: int) -> None:
        self._a[slot], self._b[slot] = self._prior.a, self._prior.b

    def score(self, row: int, counts: Array, out: Array) -> None:
        type(self).kernel(row, counts, *self._rows, self._a, self._b, out)

    def resize(self, n_slots: int) -> None:
        self._a = add_slots(self._a, n_slots, self._prior.a)
        self._b = add_slots(self._b, n_slots, self._prior.b)

    def gain(self, counts: Array) -> float:
        used = counts > 0
        after = self._law.log_norm(self._a[used], self._b[used])
        return float((after - self._law.log_norm(self._prior.a, self._prior.b)).sum())


class SparsePairUrn(PairUrn):
    """Rows by their stored entries: each differs from a zero in its place."""

    sparse_kernel: ClassVar[Kernel]

    def _keep(self, family: HasPairs, X: Any, size: Array) -> None:
        where = X.indices.astype(np.int64)
        entries = _statistics(family, X.data, size[where])
        self._stored = (X.indptr.astype(np.int64), where, *entries)
        self._zero = _statistics(family, np.zeros((1, size.size)), size)
        self._zeros = np.empty(0)

    @property
    def _empty(self) -> tuple[Array, Array, Array]:
        return self._zero[0][0], self._zero[1][0], self._zeros

    def _shift(self, row: int, slot: int, sign: float) -> bool:
        law = self._a, self._b
        lost = sparse_pair_shift(row, slot, sign, self._stored, self._empty, *law)
        if not lost:
            self._score_zeros(slot)
        return bool(lost)

    def _score_zeros(self, slot: int) -> None:
        """A row of zeros under one cluster."""
        mine = slice(slot, slot + 1)
        self._zeros[slot] = 0.0
        law = self._a[mine], self._b[mine]
        type(self).kernel(0, np.ones(1), *self._zero, *law, self._zeros[mine])

    def clear(self, slot: int) -> None:
        super().clear(slot)
        self._score_zeros(slot)

    def score(self, row: int, counts: Array, out: Array) -> None:
        type(self).sparse_kernel(row, counts, self._stored, self._empty, self._a, self._b, out)

    def resize(self, n_slots: int) -> None:
        super().resize(n_slots)
        before, self._zeros = len(self._zeros), add_slots(self._zeros, n_slots, 0.0)
        for slot in range(before, n_slots):
            self._score_zeros(slot)


class BetaUrn(PairUrn):
    """Successes and failures."""

    kernel, law = beta_scores, BETA


class GammaUrn(PairUrn):
    """Events and exposures."""

    kernel, law = gamma_scores, GAMMA


class SparseBetaUrn(SparsePairUrn):
    """Successes and failures."""

    kernel, sparse_kernel, law = beta_scores, sparse_beta_scores, BETA


class SparseGammaUrn(SparsePairUrn):
    """Events and exposures."""

    kernel, sparse_kernel, law = gamma_scores, sparse_gamma_scores, GAMMA


def _statistics(family: HasPairs, x: Array, size: Array) -> tuple[Array, Array]:
    """T of entries, zero where they are missing."""
    filled, seen = zero_filled(x)
    one, two = family.statistics(filled, np.ones_like(filled), size)
    return np.where(seen, one, 0.0), np.where(seen, two, 0.0)
