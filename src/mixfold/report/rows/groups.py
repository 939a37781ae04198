"""Sizes of groups, certainty of assignments, and moments of the columns in each group."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.rows.columns import origin_of, weighted_moments
from mixfold.report.rows.piece import Piece

# below this a row is not surely of its group
SURE = 0.8


class GroupSums:
    """Sums over rows, by group (K,) or by pairs of groups (K, K)."""

    def __init__(self, size: int) -> None:
        self.mass = np.zeros(size)
        self.count = np.zeros(size)
        self.certainty = np.zeros(size)
        self.unsure = np.zeros(size)
        self.together = np.zeros((size, size))
        self.origin: Array | None = None

    def add(self, piece: Piece) -> None:
        """One more piece."""
        shares, weight = piece.shares, piece.weight
        if shares is None:
            return
        best, top = shares.argmax(axis=1), shares.max(axis=1)
        size = len(self.mass)
        self.mass += weight @ shares
        self.count += np.bincount(best, weight, size)
        self.certainty += np.bincount(best, weight * top, size)
        self.unsure += np.bincount(best, weight * (top < SURE), size)
        self.together += (shares * weight[:, None]).T @ shares
        if self.origin is None:
            self.origin = origin_of(piece)
            self.seen, self.first, self.second = (np.zeros((size, piece.X.shape[1])) for _ in "abc")
        found = weighted_moments(piece, (shares * weight[:, None]).T, self.origin)
        self.seen, self.first = self.seen + found[0], self.first + found[1]
        self.second = self.second + found[2]

    @property
    def means(self) -> Array:
        """Mean of each column in each group, of the entries that are there."""
        assert self.origin is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.origin + self.first / self.seen)

    @property
    def deviations(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.second / self.seen - (self.first / self.seen) ** 2
        return np.sqrt(np.maximum(variance, 0.0))

    @property
    def overlap(self) -> Array:
        """Of the rows of group j, by what part they may as well be of group k."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.together / self.mass[:, None])
