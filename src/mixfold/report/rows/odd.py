"""The least usual rows by the score of the model, and the distribution of that score."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.rows.piece import Piece

SHOWN = 15
# logarithm of a tail probability, where values are such, from which on a row is counted as odd
RARE = 0.01
LOG_RARE = float(np.log(RARE))


class OddRows:
    """The lowest of a number per row, with the rows themselves."""

    def __init__(self, size: int = SHOWN) -> None:
        self.size = size
        self.total = self.weight = self.beyond = 0.0
        self.values, self.rows = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.group = np.zeros(0, dtype=np.int64)
        self._X: list[Any] = []

    def add(self, piece: Piece, values: Array) -> None:
        """One more piece and its numbers."""
        finite = np.isfinite(values)
        self.total += float(piece.weight[finite] @ values[finite])
        self.weight += float(piece.weight[finite].sum())
        self.beyond += float(piece.weight[finite] @ (values[finite] < LOG_RARE))
        low = np.argsort(values, kind="stable")[: self.size]
        group = np.full(len(low), -1) if piece.shares is None else piece.shares[low].argmax(axis=1)
        together = np.concatenate([self.values, values[low]])
        best = np.argsort(together, kind="stable")[: self.size]
        self.rows = np.concatenate([self.rows, piece.rows[low]])[best]
        self.group = np.concatenate([self.group, group])[best]
        self._X = [[*self._X, *(_row(piece.X, i) for i in low)][i] for i in best]
        self.values = together[best]

    @property
    def X(self) -> Array:
        """The rows, (n, D)."""
        return np.stack(self._X)

    @property
    def mean(self) -> float:
        return self.total / self.weight if self.weight else float("nan")


def _row(X: Any, i: int) -> Array:
    row = X[[i]]
    return np.asarray(row.toarray() if hasattr(row, "toarray") else row, float).ravel()
