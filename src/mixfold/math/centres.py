"""Centres of clusters as the kernels read them, and the sums over rows that they give back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.frame import Frame

_NO_WEIGHT = np.empty(0)
# Squared lengths of centres up to which scores are made in float32 for rows of float32.
_LARGEST_NORM = 1e30


@dataclass(frozen=True)
class Centres:
    """K centres in frame coordinates (float64), and the forms in which the kernels read them."""

    frame: Frame
    points: Array

    @cached_property
    def norms(self) -> Array:
        """|c_k|^2, (K,)."""
        return np.asarray(np.einsum("kd,kd->k", self.points, self.points))

    @cached_property
    def columns(self) -> Array:
        """The centres in data coordinates, transposed to (D, K)."""
        return np.ascontiguousarray(self.frame.leave(self.points).T)

    @cached_property
    def column_norms(self) -> Array:
        """Squared lengths of the centres in data coordinates, (K,)."""
        return np.asarray(np.einsum("dk,dk->k", self.columns, self.columns))

    def scoring(self, dtype: np.dtype[Any], complete: bool) -> tuple[Array, Array]:
        """(K, D) or (K, 2 D) coefficients of (u, seen), and what is added to each score."""
        key = (np.dtype(dtype).str, complete)
        if key not in self._scorings:  # the same for every block of a pass
            self._scorings[key] = self._scoring(dtype, complete)
        return self._scorings[key]

    @cached_property
    def _scorings(self) -> dict[tuple[str, bool], tuple[Array, Array]]:
        return {}

    def _scoring(self, dtype: np.dtype[Any], complete: bool) -> tuple[Array, Array]:
        if self.norms.max(initial=0.0) > _LARGEST_NORM:
            dtype = np.dtype(np.float64)
        if complete:
            return (-2 * self.points).astype(dtype), self.norms.astype(dtype)
        theta = np.concatenate([-2 * self.points, self.points**2], axis=1)
        return theta.astype(dtype), np.zeros(len(theta), dtype)


@dataclass(frozen=True, slots=True)
class Assigned:
    """What one pass over a block adds up, in frame coordinates.

    ``mass`` (K,) is the weight of the rows of each centre, ``count`` (K, D), or (K, 1) where
    nothing is missing, the weight of its observed entries, ``first`` (K, D) their sum.
    """

    mass: Array
    count: Array
    first: Array
    inertia: float
    weight: float


def row_weights(block: Block) -> Array:
    """Weights of a block for the kernels; an empty array where there are none."""
    return _NO_WEIGHT if block.weight is None else np.ascontiguousarray(block.weight, np.float64)
