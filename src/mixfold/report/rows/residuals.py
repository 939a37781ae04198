"""Reconstruction errors by column and by row."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.rows.columns import ColumnSums
from mixfold.report.rows.odd import OddRows
from mixfold.report.rows.piece import Piece


class ResidualSums:
    """Squared errors by column, and the rows with the largest ones.

    Errors are in standard deviations of their columns; of models to which the units of columns
    matter (``one_scale``), and which neglect those of small numbers, of all columns together.
    """

    def __init__(self, one_scale: bool = False) -> None:
        self.worst, self.one_scale = OddRows(), one_scale
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
        scale = self.scale(columns)
        there = np.maximum((~np.isnan(X)).sum(axis=1), 1)
        self.worst.add(piece, -np.sqrt(((apart / scale) ** 2).sum(axis=1) / there))

    def scale(self, columns: ColumnSums) -> Array:
        """What the errors of each column are divided by (D,)."""
        found = columns.deviation
        if self.one_scale:
            found = np.full(len(found), np.sqrt(np.nanmean(found**2)))
        return np.asarray(np.where(np.isfinite(found) & (found > 0), found, 1.0))

    def explained_variance(self, columns: ColumnSums) -> Array:
        """Of each column the part of its variance that the reconstruction keeps."""
        assert self.errors is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(1 - self.errors / (columns.mass * columns.deviation**2))
