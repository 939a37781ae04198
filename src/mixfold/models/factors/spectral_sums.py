"""Sums over blocks from which principal axes are found: squares and products, additive.

They are kept about an origin. Where it is zero no block is copied; it should be near the mean
where the data lie so far from zero that their variance would drown in rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Stats, constant, record
from mixfold.math.frame import subtract_origin


class MissingEntries(ValueError):
    """Sums of squares and products were asked of rows that lack entries."""


NO_WEIGHT = "sample_weight: no row has a weight above 0; at least one must have"


@record
@dataclass(frozen=True)
class RowSums(Stats):
    """Number of rows of positive weight, their weight, and their sum (D,) about ``origin``."""

    rows: float
    weight: float
    first: Array
    origin: Array = constant()  # noqa: RUF009 (it makes a field)

    @property
    def shift(self) -> Array:
        """The mean about the origin."""
        if self.weight <= 0:
            raise ValueError(NO_WEIGHT)
        return np.asarray(self.first / self.weight)

    @property
    def squared_shift(self) -> float:
        return float(self.shift @ self.shift)

    @property
    def mean(self) -> Array:
        return np.asarray(self.origin + self.shift)


@dataclass(frozen=True)
class _WithSums(Stats):
    """What sums of the rows say, for statistics that hold more than those."""

    sums: RowSums

    @property
    def rows(self) -> float:
        """Number of rows of positive weight."""
        return self.sums.rows

    @property
    def weight(self) -> float:
        return self.sums.weight

    @property
    def mean(self) -> Array:
        return self.sums.mean


@record
@dataclass(frozen=True)
class SecondMoments(_WithSums):
    """Sums of the rows, and of their squares and products (D, D) about the same origin."""

    second: Array

    def covariance(self, center: bool = True) -> Array:
        """Second moments about the mean, or about zero."""
        shift, mean = self.sums.shift, self.sums.mean
        S = self.second / self.sums.weight
        S -= np.outer(shift, shift)
        if not center:
            S += np.outer(mean, mean)
        return np.asarray(S)

    @property
    def variance(self) -> float:
        """Trace of the covariance about the mean."""
        return float(np.trace(self.second)) / self.sums.weight - self.sums.squared_shift


@record
@dataclass(frozen=True)
class Products(_WithSums):
    """Sums of the rows, and about the same origin sum x x'Q (D, l) and sum x'x.

    ``square``, the latter, is 0 if it was not asked for.
    """

    product: Array
    square: float

    @property
    def variance(self) -> float:
        """Trace of the covariance about the mean."""
        return self.square / self.sums.weight - self.sums.squared_shift

    def covariance_times(self, Q: Array, center: bool) -> Array:
        """S Q, for the covariance S about the mean or about zero."""
        shift, mean = self.sums.shift, self.sums.mean
        out = self.product / self.sums.weight - np.outer(shift, shift @ Q)
        return np.asarray(out if center else out + np.outer(mean, mean @ Q))


@dataclass(frozen=True, slots=True)
class SumSquares:
    """The task of a pass: ``SecondMoments`` of a block about ``origin`` (D,)."""

    origin: Array

    def __call__(self, block: Block) -> SecondMoments:
        X = subtract_origin(complete_rows(block), self.origin)
        weight = block.weights().astype(X.dtype)
        if sparse.issparse(X):
            second = (X.T @ (sparse.diags_array(weight) @ X)).toarray()
        else:  # one factor on both sides: half the work is enough for a symmetric product
            # in double precision: small variances beside large ones need the digits
            X = X.astype(np.float64, copy=False)
            root = X if block.weight is None else np.sqrt(weight)[:, None] * X
            with np.errstate(over="ignore", invalid="ignore"):
                second = root.T @ root
        check_size(np.diagonal(second))
        sums = row_sums(block, weight @ X, self.origin)
        return SecondMoments(sums, second.astype(np.float64, copy=False))


@dataclass(frozen=True, slots=True)
class Multiply:
    """The task of a pass: ``Products`` of a block with Q (D, l), given as Q' (l, D)."""

    rows: Array
    origin: Array
    square: bool = True

    def __call__(self, block: Block) -> Products:
        X = subtract_origin(complete_rows(block), self.origin)
        weight = block.weights().astype(X.dtype)
        rows = self.rows.astype(X.dtype, copy=False)
        # few and long rows: the fastest shape in BLAS, and the last one gives the sum of all rows
        left = np.empty((len(rows) + 1, X.shape[0]), X.dtype)
        left[:-1] = (X @ rows.T).T if sparse.issparse(X) else rows @ X.T
        left[:-1] *= weight
        left[-1] = weight
        with np.errstate(over="ignore", invalid="ignore"):
            right = ((X.T @ left.T).T if sparse.issparse(X) else left @ X).astype(np.float64)
            square = float(block.weights() @ _squared_norms(X)) if self.square else 0.0
        check_size(np.append(right[:, 0], square))
        sums = row_sums(block, right[-1], self.origin)
        return Products(sums, np.ascontiguousarray(right[:-1].T), square)


def complete_rows(block: Block) -> Any:
    """The rows of a block without missing entries."""
    if not block.complete:
        first, last = block.rows.start, block.rows.stop - 1
        raise MissingEntries(f"some of the rows {first} to {last} lack entries")
    return block.X


def check_size(squares: Array) -> None:
    """Refuse squares that overflowed."""
    if not np.isfinite(squares).all():
        raise ValueError(
            "X holds values too large to be squared in its dtype; divide its columns by a large "
            "number first, or use float64"
        )


def row_sums(block: Block, first: Array, origin: Array) -> RowSums:
    """``RowSums`` of a block; the origin is what rounding to the type of X makes of it."""
    weight = block.weights()
    used = origin.astype(block.X.dtype).astype(np.float64)
    positive = float(np.count_nonzero(weight))
    return RowSums(positive, float(weight.sum()), np.asarray(first, np.float64), used)


def _squared_norms(X: Any) -> Array:
    squares = (
        X.astype(np.float64).power(2).sum(axis=1)
        if sparse.issparse(X)
        else np.vecdot(X, X, dtype=np.float64)
    )
    return np.asarray(squares, dtype=np.float64)
