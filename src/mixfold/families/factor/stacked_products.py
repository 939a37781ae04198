"""The stacked matrices with which complete rows are scored and summed at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.factor.reading import AMPLIFICATION_LIMIT, FactorReading, in_data_units
from mixfold.families.factor.records import FactorSums


class Lift:
    """For rows that are entered into the frame; in the precision of the arithmetic."""

    def __init__(self, reading: FactorReading, dtype: np.dtype[Any]) -> None:
        K, D, d = reading.shape
        precision = 1 / reading.noise
        linear = reading.means * precision
        theta = np.concatenate([reading.parts.whiten, linear[:, None]], axis=1)
        shift = np.einsum("kdj,kj->kd", reading.parts.whiten, reading.means)
        constant = reading.constant - 0.5 * (linear * reading.means).sum(axis=1)
        self.reading = reading
        self.dtype = dtype
        self.theta = theta.reshape(K * (d + 1), D).astype(dtype)
        self.shift = np.ascontiguousarray(shift.astype(dtype))
        self.constant = constant.astype(dtype)
        self.precision = (precision[:, :1] if reading.isotropic else precision).astype(dtype)

    def enter(self, X: Any) -> Any:
        """Frame coordinates; the difference is taken in double precision."""
        frame = self.reading.frame
        return ((X - frame.origin) / frame.scale).astype(self.dtype, copy=False)

    def products(self, U: Any) -> tuple[Array, Any, Array]:
        """(n, K (d + 1)) products, squares as they are summed, and weighted squares (n, K)."""
        one = self.precision.shape[1] == 1
        with np.errstate(over="ignore", invalid="ignore"):  # rows beyond 1e154 have density zero
            squares = np.einsum("nd,nd->n", U, U)[:, None] if one else U * U
            return U @ self.theta.T, squares, squares @ self.precision.T

    def sums(self, U: Any, P: Array, out: Array) -> Array:
        """U'P, which may be written to ``out``."""
        return np.matmul(U.T, P, out=out)

    def in_frame(self, sums: FactorSums) -> FactorSums:
        """Sums in the coordinates of the frame."""
        return sums


class SparseLift(Lift):
    """For CSR rows as they are: components in data units, sums about zero before they are moved."""

    def __init__(self, reading: FactorReading, dtype: np.dtype[Any]) -> None:
        super().__init__(in_data_units(reading), dtype)
        self._frame, self._means = reading.frame, reading.means

    def enter(self, X: Any) -> Any:
        return X.astype(self.dtype)

    def products(self, U: Any) -> tuple[Array, Any, Array]:
        squares = U.multiply(U)
        if self.precision.shape[1] == 1:
            squares = np.asarray(squares.sum(axis=1)).reshape(-1, 1)
        product = np.ascontiguousarray(U @ self.theta.T)
        return product, squares, np.asarray(squares @ self.precision.T)

    def sums(self, U: Any, P: Array, out: Array) -> Array:
        return np.asarray(U.T @ P)

    def in_frame(self, sums: FactorSums) -> FactorSums:
        scale = self._frame.scale
        return replace(
            sums,
            first=sums.first / scale,
            squares=sums.squares / scale**2,
            cross=sums.cross / scale[:, None],
            origin=self._means,
        )


def can_lift(block: Block, reading: FactorReading) -> bool:
    """Whether the fast route is exact enough for these components, and fit for this block."""
    if not isinstance(block.X, np.ndarray):
        reading = in_data_units(reading)
    return block.complete and reading.amplification <= AMPLIFICATION_LIMIT


def lift_for(block: Block, reading: FactorReading) -> Lift:
    """The matrices for a block, made once per pass: with many components they are large."""
    thin = not isinstance(block.X, np.ndarray)
    dtype = (in_data_units(reading) if thin else reading).arithmetic(block.X.dtype)
    key = f"{dtype.name} {thin}"
    if key not in reading.kept:  # two threads may both make one, and keep the same
        reading.kept[key] = (SparseLift if thin else Lift)(reading, dtype)
    lift: Lift = reading.kept[key]
    return lift
