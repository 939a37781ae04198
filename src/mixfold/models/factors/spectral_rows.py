"""The rows of a table with few rows, in memory: their Gram matrix and span.

With A the rows (N, D) about their mean, each times the root of its share of the weight, A'A is
the covariance; A A' (N, N) has the same eigenvalues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.math.frame import subtract_origin
from mixfold.models.factors.spectral_sums import NO_WEIGHT, RowSums, complete_rows, row_sums

# Entries of a panel of columns that is worked on at a time.
PANEL = 2**22


@dataclass(frozen=True, slots=True)
class DenseRows:
    """Blocks of rows as they came; only a panel of columns is copied at a time."""

    parts: tuple[Array, ...]
    root: Array
    mean: Array

    def gram(self) -> Array:
        """A A'."""
        out = np.zeros((len(self.root), len(self.root)))
        with np.errstate(over="ignore", invalid="ignore"):
            for panel in self._panels():
                out += panel @ panel.T
        return out

    def back(self, U: Array) -> Array:
        """A'U (D, k)."""
        return np.concatenate([panel.T @ U for panel in self._panels()])

    def _panels(self) -> Iterator[Array]:
        width = max(64, PANEL // len(self.root))
        for first in range(0, len(self.mean), width):
            columns = slice(first, first + width)
            panel = np.concatenate([part[:, columns] for part in self.parts], dtype=np.float64)
            panel -= self.mean[columns]
            panel *= self.root[:, None]
            yield panel


@dataclass(frozen=True, slots=True)
class SparseRows:
    """One CSR matrix, already times the roots; the mean is taken off the results."""

    matrix: Any
    root: Array
    mean: Array

    def gram(self) -> Array:
        """A A'."""
        cross = np.outer(self.matrix @ self.mean, self.root)
        squares = float(self.mean @ self.mean) * np.outer(self.root, self.root)
        return np.asarray((self.matrix @ self.matrix.T).toarray() - cross - cross.T + squares)

    def back(self, U: Array) -> Array:
        """A'U (D, k)."""
        return np.asarray(self.matrix.T @ U - np.outer(self.mean, self.root @ U))


def collect(
    source: Source, executor: Executor, origin: Array, center: bool
) -> tuple[DenseRows | SparseRows, RowSums]:
    """All the rows, and their sums about ``origin``."""
    blocks = list(executor.map_rows(_itself, source))
    thin = sparse.issparse(blocks[0].X)
    sums = reduce(add, (_sums(block, origin) for block in blocks))
    if sums.weight <= 0:
        raise ValueError(NO_WEIGHT)
    root = np.sqrt(np.concatenate([block.weights() for block in blocks]) / sums.weight)
    if not thin:
        mean = sums.mean if center else np.zeros_like(origin)
        return DenseRows(tuple(block.X for block in blocks), root, mean), sums
    moved = sparse.vstack([subtract_origin(block.X, sums.origin) for block in blocks], format="csr")
    matrix = sparse.diags_array(root) @ moved.astype(np.float64)
    return SparseRows(matrix, root, sums.shift if center else -sums.origin), sums


def _sums(block: Block, origin: Array) -> RowSums:
    X = subtract_origin(block.X, origin)
    return row_sums(block, block.weights().astype(X.dtype) @ X, origin)


def _itself(block: Block) -> Block:
    complete_rows(block)
    return block
