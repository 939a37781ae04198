"""The kernel matrix of all rows, known by its products with a few vectors.

The matrix is symmetric, so half of its tiles are enough: tile (i, j) multiplies the part j of the
vectors for the rows i, and its transpose the part i for the rows j. Strip i has the tiles
i, i + 1, ..., around the clock up to the opposite side, so that all strips are as much work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Executor, Stats
from mixfold.math.kernels import Kernel

# rows of a tile: 8 MB in double precision
TILE = 1024


@dataclass(frozen=True)
class Product(Stats):
    """A product, or the part of it that some rows or tiles give."""

    values: Array


class Gram:
    """G (N, N) of rows X (dense or CSR), as tiles that are kept while ``cache_bytes`` lasts.

    The others are computed again for each product; which ones are kept does not depend on
    threads.
    """

    def __init__(
        self, X: Any, kernel: Kernel, executor: Executor, cache_bytes: float, tile: int = TILE
    ) -> None:
        self.X, self.kernel, self.executor = X, kernel, executor
        self.strips: Strips = Strips(X, tile)
        per_strip = self.strips.count // 2 + 1
        # tiles of the last strips are those that are made again
        room = cache_bytes / max(1, X.dtype.itemsize * self.strips.tile**2)
        self._kept_strips: int = int(min(self.strips.count, room // per_strip))
        self._tiles: dict[tuple[int, int], Array] = {}

    @property
    def size(self) -> int:
        return int(self.X.shape[0])

    @property
    def is_kept(self) -> bool:
        """Whether no tile has to be computed twice."""
        return self._kept_strips == self.strips.count

    def times(self, Q: Array) -> Array:
        """G Q, by one pass over the tiles."""
        rows = np.ascontiguousarray(Q.T, self.X.dtype)
        return self.executor.map_reduce(_StripTimes(self, rows), self.strips).values.T

    def diagonal(self) -> Array:
        """k(x, x) of every row."""
        return np.asarray(self.kernel.diagonal(self.X), np.float64)

    def tile(self, i: int, j: int) -> Array:
        known = self._tiles.get((i, j))
        if known is not None:
            return known
        made = self.kernel.block(self.X[self.strips.rows(i)], self.X[self.strips.rows(j)])
        if i < self._kept_strips:
            self._tiles[i, j] = made
        return made

    def strip_times(self, rows: Array, block: Block) -> Array:
        """The part of (G Q)' that the tiles of one strip give, from ``rows`` = Q'.

        Long rows rather than long columns: BLAS is a quarter faster.
        """
        i = block.start // self.strips.tile
        mine, out = self.strips.rows(i), np.zeros(rows.shape)
        for j in self.strips.partners(i):
            tile, others = self.tile(i, j), self.strips.rows(j)
            out[:, mine] += rows[:, others] @ tile.T
            if i != j:
                out[:, others] += rows[:, mine] @ tile
        return out

    def __getstate__(self) -> dict[str, Any]:
        # tiles do not travel: a worker makes its own; neither does a connection to a cluster
        return {**self.__dict__, "_tiles": {}, "_kept_strips": 0, "executor": None}


class GivenGram(Gram):
    """A kernel matrix that was given: its tiles are views."""

    def __init__(self, G: Array, executor: Executor, tile: int = TILE) -> None:
        self.X, self.executor = G, executor
        self.strips = Strips(G, tile)
        self._kept_strips: int = self.strips.count
        self._tiles: dict[tuple[int, int], Array] = {}

    def diagonal(self) -> Array:
        return np.diagonal(self.X).astype(np.float64)

    def tile(self, i: int, j: int) -> Array:
        return np.asarray(self.X[self.strips.rows(i), self.strips.rows(j)])


class FactoredGram(Gram):
    """X X' by products with X: no tile is ever made."""

    def __init__(self, X: Any, kernel: Kernel, executor: Executor) -> None:
        super().__init__(X, kernel, executor, 0.0)

    @property
    def is_kept(self) -> bool:
        return True

    def times(self, Q: Array) -> Array:
        Q = np.ascontiguousarray(np.ascontiguousarray(Q, self.X.dtype))
        back = self.executor.map_reduce(_Back(Q), self.strips).values
        return np.concatenate(list(self.executor.map_rows(_Forth(back), self.strips)))


class Strips:
    """The rows as blocks of one tile each; a source for the executors."""

    def __init__(self, X: Any, tile: int = TILE) -> None:
        n = X.shape[0]
        self.X = X
        self.count: int = -(-n // tile)
        self.tile = -(-n // self.count)  # of about the same length
        self.n_samples, self.n_features = n, int(X.shape[1])
        self.feature_names, self.dtype = None, X.dtype

    def rows(self, i: int) -> slice:
        return slice(i * self.tile, min((i + 1) * self.tile, self.n_samples))

    def partners(self, i: int) -> list[int]:
        """The tiles of strip i; of two opposite ones an even clock has only one."""
        half, even = self.count // 2, self.count % 2 == 0
        steps = half if even and i >= half else half + 1
        return [(i + step) % self.count for step in range(max(1, steps))]

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        for i in range(self.count):
            yield Block(self.X[self.rows(i)], start=i * self.tile)


@dataclass(frozen=True, slots=True)
class _StripTimes:
    """The products of the tiles of one strip; picklable."""

    gram: Gram
    rows: Array

    def __call__(self, block: Block) -> Product:
        return Product(self.gram.strip_times(self.rows, block))


@dataclass(frozen=True, slots=True)
class _Back:
    """X'Q of some rows; picklable."""

    Q: Array

    def __call__(self, block: Block) -> Product:
        return Product(np.asarray(block.X.T @ self.Q[block.rows], np.float64))


@dataclass(frozen=True, slots=True)
class _Forth:
    """X P of some rows; picklable."""

    P: Array

    def __call__(self, block: Block) -> Array:
        return np.asarray(block.X @ self.P.astype(block.X.dtype), np.float64)
