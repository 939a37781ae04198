"""Rows about a point, for a projection: a few products are all it needs of them.

Dense rows are moved; sparse ones stay as they are and the results are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.math.frame import Frame
from mixfold.models.factors.spectral_sums import MissingEntries, about

# squared lengths in units of the noise beyond which differences of them lose the digits
_LIMIT = 1e-8 / np.finfo(float).eps


class Rows(Protocol):
    """Rows x (n, D) in a frame, about a point."""

    def onto(self, axes: Array) -> Array:
        """X A (n, d)."""
        ...

    def squares(self) -> Array:
        """Squared lengths (n,)."""
        ...

    def across(self, Z: Array) -> Array:
        """X'Z (D, d)."""
        ...

    def left(self, scores: Array, axes: Array, noise: float) -> Array:
        """Squared distances (n,) from the span of orthonormal ``axes``, given X A."""
        ...


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Dense rows."""

    U: Array

    def onto(self, axes: Array) -> Array:
        return np.asarray(self.U @ axes)

    def squares(self) -> Array:
        return np.asarray(np.vecdot(self.U, self.U))

    def across(self, Z: Array) -> Array:
        return np.asarray(self.U.T @ Z)

    def left(self, scores: Array, axes: Array, noise: float) -> Array:
        squares = self.squares()
        if squares.max(initial=0.0) <= _LIMIT * noise * self.U.shape[1]:
            return np.asarray(np.maximum(squares - np.vecdot(scores, scores), 0.0))
        rest = self.U - scores @ axes.T
        return np.asarray(np.vecdot(rest, rest))


@dataclass(frozen=True, slots=True)
class ThinRows:
    """Sparse rows divided by the scale; ``point`` is still to be taken off."""

    X: Any
    point: Array

    def onto(self, axes: Array) -> Array:
        return np.asarray(self.X @ axes - self.point @ axes)

    def squares(self) -> Array:
        own = np.asarray(self.X.power(2).sum(axis=1)).ravel()
        lengths = own - 2 * (self.X @ self.point) + self.point @ self.point
        return np.asarray(np.maximum(lengths, 0.0))

    def across(self, Z: Array) -> Array:
        return np.asarray(self.X.T @ Z - np.outer(self.point, Z.sum(axis=0)))

    def left(self, scores: Array, axes: Array, noise: float) -> Array:
        return np.asarray(np.maximum(self.squares() - np.vecdot(scores, scores), 0.0))


def rows_about(block: Block, frame: Frame, point: Array) -> MovedRows | ThinRows:
    """The rows of a block in a frame of one scale, about a point in its coordinates.

    Raises
    ------
    MissingEntries
        (a ValueError) If an entry is missing.
    """
    if not block.complete:
        raise MissingEntries(
            f"X holds NaN between rows {block.rows.start} and {block.rows.stop - 1}: this model "
            "needs complete rows. Fill them first, with PPCA(...).fit(X).impute(X) say, or leave "
            "them out"
        )
    if not sparse.issparse(block.X):
        return MovedRows(frame.enter(block.X) - point)
    moved = about(block.X.astype(np.float64), frame.origin)
    return ThinRows(sparse.csr_array(moved) / frame.scale[0], point)


def row_width(block: Block, n_latents: int) -> int:
    """Numbers that the E step holds for one row."""
    if sparse.issparse(block.X):
        return int(max(block.X.nnz // max(block.n_rows, 1), n_latents, 1))
    return int(max(block.X.shape[1], n_latents))
