"""Predictions against the truth, summed over rows: classes, labels beside groups, numbers."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.rows.piece import Piece

BINS = 10
_LEAST = 1e-15


class ClassSums:
    """Sums over rows whose class is known; ``codes`` of a piece are their numbers, -1 unknown."""

    def __init__(self, size: int) -> None:
        self.confusion = np.zeros((size, size))
        self.bins = np.zeros((3, BINS))  # weight, confidence, correct
        self.log_loss = self.brier = self.weight = 0.0
        self.unknown = 0

    def add(self, piece: Piece, codes: Array) -> None:
        """One more piece."""
        chances = piece.chances
        assert chances is not None
        known = codes >= 0
        self.unknown += int((~known).sum())
        chances, truth, weight = chances[known], codes[known], piece.weight[known]
        if not len(truth):
            return
        best, top = chances.argmax(axis=1), chances.max(axis=1)
        np.add.at(self.confusion, (truth, best), weight)
        place = np.minimum((top * BINS).astype(int), BINS - 1)
        for i, value in enumerate((weight, weight * top, weight * (best == truth))):
            self.bins[i] += np.bincount(place, value, BINS)
        own = chances[np.arange(len(truth)), truth]
        self.log_loss -= float(weight @ np.log(np.maximum(own, _LEAST)))
        wrong = (chances**2).sum(axis=1) - 2 * own + 1
        self.brier += float(weight @ wrong)
        self.weight += float(weight.sum())

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion) / self.weight)

    @property
    def calibration_error(self) -> float:
        """By how much confidence and truth differ, on average."""
        return float(np.abs(self.bins[1] - self.bins[2]).sum() / self.weight)


class LabelSums:
    """How often each label occurs in each group, where labels were given but not fitted."""

    def __init__(self, groups: int, labels: int) -> None:
        self.counts = np.zeros((labels, groups))

    def add(self, piece: Piece, codes: Array) -> None:
        """One more piece."""
        assert piece.shares is not None
        known = codes >= 0
        best = piece.shares.argmax(axis=1)
        np.add.at(self.counts, (codes[known], best[known]), piece.weight[known])


class NumberSums:
    """Predicted numbers against what they are, (L,) each."""

    def __init__(self, size: int) -> None:
        self.weight, self.first, self.second = np.zeros(size), np.zeros(size), np.zeros(size)
        self.errors = np.zeros(size)
        self.origin: Array | None = None

    def add(self, piece: Piece, truth: Array) -> None:
        """One more piece, ``truth`` (n, L) with NaN where unknown."""
        predicted = np.asarray(piece.predicted, float).reshape(len(truth), -1)
        known = ~np.isnan(truth)
        if self.origin is None:
            seen = np.where(known, truth, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
            self.origin = seen
        apart = np.where(known, truth - self.origin, 0.0)
        self.weight += piece.weight @ known
        self.first += piece.weight @ apart
        self.second += piece.weight @ apart**2
        self.errors += piece.weight @ np.where(known, truth - predicted, 0.0) ** 2

    @property
    def root_mean_square(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.errors / self.weight)

    @property
    def deviation(self) -> Array:
        """Standard deviation of the true numbers."""
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.second / self.weight - (self.first / self.weight) ** 2
        return np.sqrt(np.maximum(variance, 0.0))

    @property
    def explained(self) -> Array:
        """R^2 of each output."""
        with np.errstate(invalid="ignore", divide="ignore"):
            total = self.second - self.first**2 / self.weight
            return np.asarray(1 - self.errors / total)
