"""Summary of each column: observed entries, mean, deviation, minimum, maximum."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.column_summary import column_summary
from mixfold.report.rows.piece import Piece


class ColumnSums:
    """Sums of the columns (D,) over pieces; moments are about the first piece's means."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.weight = 0.0
        self.is_weighted = False  # whether a row weighs other than one
        self.empty_rows = 0
        self.incomplete_rows = 0
        self.origin: Array = np.zeros(1)
        # of every column, as soon as there is one
        self.observed, self.mass = np.zeros(1), np.zeros(1)
        self.first, self.second = np.zeros(1), np.zeros(1)
        self.minimum, self.maximum = np.full(1, np.nan), np.full(1, np.nan)

    def add(self, piece: Piece) -> None:
        """One more piece."""
        seen, low, high = column_summary(piece.X, piece.seen is None)
        if not self.n_rows:
            self.origin = origin_of(piece)
        mass, first, second = weighted_moments(piece, piece.weight[None], self.origin)
        self.n_rows += len(piece)
        self.weight += float(piece.weight.sum())
        self.is_weighted |= bool((piece.weight != 1).any())
        self.observed = self.observed + seen
        self.minimum, self.maximum = np.fmin(self.minimum, low), np.fmax(self.maximum, high)
        self.mass, self.first = self.mass + mass[0], self.first + first[0]
        self.second = self.second + second[0]
        if piece.seen is not None:
            there = piece.seen.sum(axis=1)
            self.empty_rows += int((there == 0).sum())
            self.incomplete_rows += int((there < piece.X.shape[1]).sum())

    @property
    def missing(self) -> Array:
        """Missing entries of each column."""
        return np.asarray(self.n_rows - self.observed)

    @property
    def mean(self) -> Array:
        """Mean of the entries that are there, NaN where none is."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.origin + self.first / self.mass)

    @property
    def deviation(self) -> Array:
        """Standard deviation of the entries that are there."""
        with np.errstate(invalid="ignore"):
            variance = self.second / self.mass - (self.first / self.mass) ** 2
        return np.sqrt(np.maximum(variance, 0.0))


def origin_of(piece: Piece) -> Array:
    """Means of a piece, from which sums lose no digits; zero for counts that are mostly zero."""
    width = piece.X.shape[1]
    if piece.is_sparse:
        return np.zeros(width)
    X = np.asarray(piece.X, float)
    if piece.seen is None:
        return np.asarray(X.mean(axis=0))
    there = piece.seen.sum(axis=0)
    return np.asarray(np.where(piece.seen, X, 0.0).sum(axis=0) / np.maximum(there, 1))


def weighted_moments(piece: Piece, shares: Array, origin: Array) -> tuple[Array, Array, Array]:
    """Weight, sum and sum of squares about ``origin`` of the entries that are there.

    ``shares`` (K, n) weigh the rows; results are (K, D).
    """
    if piece.is_sparse:
        return _sparse_moments(piece.X, shares)
    apart = np.asarray(piece.X, float) - origin
    if piece.seen is None:
        total = np.broadcast_to(shares.sum(axis=1, keepdims=True), (len(shares), len(origin)))
        return total, shares @ apart, shares @ apart**2
    apart = np.where(piece.seen, apart, 0.0)
    return shares @ piece.seen, shares @ apart, shares @ apart**2


def _sparse_moments(X: Any, shares: Array) -> tuple[Array, Array, Array]:
    """The same of a sparse matrix, about zero; an entry that is not stored is a zero."""
    lacks, there = X.copy().astype(float), X.copy().astype(float)
    lacks.data, there.data = np.isnan(X.data).astype(float), np.nan_to_num(X.data.astype(float))
    total = shares.sum(axis=1, keepdims=True) - np.asarray(shares @ lacks)
    return total, np.asarray(shares @ there), np.asarray(shares @ there.multiply(there).tocsr())
