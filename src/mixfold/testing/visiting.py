"""Laws of sources and executors: every row once and in order, whatever the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source, Stats
from mixfold.testing.compare import require, require_same


@dataclass(frozen=True)
class _Sums(Stats):
    """Integers held in floats: sums that any order gives exactly."""

    rows: float
    positions: float
    entries: Array


def _sums(block: Block) -> _Sums:
    X = _dense(block.X)
    positions = float(np.arange(block.start, block.start + block.n_rows).sum())
    return _Sums(float(block.n_rows), positions, (~np.isnan(X)).sum(axis=0).astype(float))


def _first_row(block: Block) -> int:
    return block.start


def source_blocks(source: Source, sizes: tuple[int | None, ...] = (None, 7, 10**6)) -> None:
    """Blocks of any size hold the same rows in the same order, at every pass."""
    wanted = _table(source, None)
    for size in sizes:
        for _ in range(2):
            got = _table(source, size)
            require_same("same rows in any blocks", got, wanted, what=f"rows by {size}")
    n_samples, columns = source.n_samples, source.n_features
    require(
        wanted.shape == (n_samples, columns), "shape of a source", f"{wanted.shape} rows, columns"
    )
    require(
        wanted.dtype == source.dtype, "dtype of a source", f"{wanted.dtype}, not {source.dtype}"
    )


def _table(source: Source, size: int | None) -> Array:
    parts, at = [], 0
    for block in source.blocks(size):
        require(
            block.start == at, "consecutive blocks", f"a block starts at {block.start}, not {at}"
        )
        at += block.n_rows
        X = _dense(block.X)
        holes = bool(np.isnan(X).any())
        require(not (block.complete and holes), "complete blocks", f"NaN in block at {block.start}")
        for name, side in (("weight", block.weight), ("y", block.y)):
            fits = side is None or len(side) == block.n_rows
            require(fits, "sides of a block", f"{name} has another length than the rows")
        parts.append(X)
    return np.concatenate(parts)


def executor_visits(executor: Executor, source: Source) -> None:
    """``map_reduce`` adds every block once; ``map_rows`` keeps the order of the rows."""
    blocks = list(source.blocks())
    wanted = reduce(lambda a, b: a + b, [_sums(block) for block in blocks])
    for _ in range(2):
        require_same("every block once", executor.map_reduce(_sums, source), wanted)
    got = list(executor.map_rows(_first_row, source))
    require(got == sorted(set(got)), "rows in order", f"blocks came in the order {got[:10]}")
    require(got[0] == 0, "rows in order", f"the first block started at {got[0]}")


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
