"""Rows that a kernel model keeps: dense, or as the three arrays of a CSR matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source, record
from mixfold.models.factors.spectral_sums import complete_rows


@record
@dataclass(frozen=True, slots=True)
class KnownRows:
    """``values`` (n, D) alone, or the data of a CSR matrix with indices and pointers.

    Where ``missing`` (n, D) is true, entries are NaN; ``values`` are zero there.
    """

    values: Array
    n_columns: int
    indices: Array | None = None
    pointers: Array | None = None
    missing: Array | None = None

    @classmethod
    def of(cls, X: Any) -> Self:
        if sparse.issparse(X):
            return cls(X.data, int(X.shape[1]), X.indices, X.indptr)
        holes = np.isnan(X)
        if holes.any():
            return cls(np.where(holes, 0.0, X).astype(X.dtype), int(X.shape[1]), missing=holes)
        return cls(X, int(X.shape[1]))

    @property
    def matrix(self) -> Any:
        """As a kernel takes them."""
        if self.missing is not None:
            return np.where(self.missing, np.nan, self.values).astype(self.values.dtype)
        if self.indices is None or self.pointers is None:
            return self.values
        shape = (len(self.pointers) - 1, self.n_columns)
        return sparse.csr_array((self.values, self.indices, self.pointers), shape=shape)

    def __len__(self) -> int:
        return len(self.values if self.pointers is None else self.pointers[1:])


@dataclass(frozen=True, slots=True)
class Collected:
    """All the rows of positive weight: matrix (n, D) dense or CSR, weights (n,) or None.

    ``chosen`` tells which of all rows they are; without weights all weigh the same, and
    together ``total``.
    """

    X: Any
    weight: Array | None
    chosen: Array
    total: float

    def weights(self) -> Array:
        """As an array."""
        n = self.X.shape[0]
        return np.full(n, self.total / n) if self.weight is None else self.weight


def collect_rows(source: Source, executor: Executor, with_holes: bool = False) -> Collected:
    """The rows of a source in memory; a missing entry is an error, unless they may have holes."""
    blocks = list(executor.map_rows(_as_it_is if with_holes else _itself, source))
    weights = np.concatenate([block.weights() for block in blocks])
    chosen = weights > 0
    if not chosen.any():
        raise ValueError("all sample weights are zero: give at least one row a positive weight")
    X = stack_blocks([block.X for block in blocks])
    if not chosen.all():
        X = X[chosen]
    weights = weights[chosen]
    even = bool((weights == weights[0]).all())
    return Collected(X, None if even else weights, chosen, float(weights.sum()))


def stack_blocks(parts: list[Any]) -> Any:
    """Blocks of rows as one matrix."""
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _itself(block: Block) -> Block:
    complete_rows(block)
    return block


def _as_it_is(block: Block) -> Block:
    return block
