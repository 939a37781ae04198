"""Reconstruction errors by column and by row."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.rows.columns import ColumnSums
from mixfold.report.rows.odd import OddRows
from mixfold.report.rows.piece import Piece


class ResidualSums:
    """Squared errors by column, and the rows with the largest ones (in units of the columns)."""

    def __init__(self) -> None:
        self.worst = OddRows()
        self.errors: Array | None = None

    def add(self, piece: Piece, columns: ColumnSums) -> None:
        """One more piece; ``columns`` lend the scale of the rows seen so far."""
        rebuilt = piece.rebuilt
        if rebuilt is None:
            return
        X = np.asarray(piece.X.toarray() if piece.is_sparse else piece.X, float)
        apart = np.where(np.isnan(X), 0.0, X - rebuilt)
        found = piece.weight @ apart**2
        self.errors = found if self.errors is None else self.errors + found
        scale = columns.deviation
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        there = np.maximum((~np.isnan(X)).sum(axis=1), 1)
        self.worst.add(piece, -np.sqrt(((apart / scale) ** 2).sum(axis=1) / there))

    def explained_variance(self, columns: ColumnSums) -> Array:
        """Of each column the part of its variance that the reconstruction keeps."""
        assert self.errors is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(1 - self.errors / (columns.mass * columns.deviation**2))
