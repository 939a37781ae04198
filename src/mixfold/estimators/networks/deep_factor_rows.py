"""Rows of a DeepFactorNetwork: visited where they are, with classes and weights in memory."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Source
from mixfold.estimators.shell.targets import check_two_classes, encode_classes, find_target

# Squares of entries, and of weights in units of one over them, are multiplied with each other.
LARGEST_ENTRY = 1e60


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """The rows of a fit; ``labels`` (n,) are class numbers, -1 where unknown, None without y."""

    source: Source
    labels: Array | None
    weight: Array | None
    n_rows: int

    @property
    def labelled(self) -> Array:
        """Which rows have a class and a weight."""
        none = np.zeros(self.n_rows, bool)
        known = none if self.labels is None else self.labels >= 0
        return known if self.weight is None else known & (self.weight > 0)

    @property
    def weights(self) -> Array:
        """One for each row, also where none were given."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def gather(self) -> Any:
        """All rows in memory, as they are: dense or CSR."""
        parts = [block.X for block in self.source.blocks()]
        if sparse.issparse(parts[0]):
            return sparse.csr_matrix(sparse.vstack(parts))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def fingerprint(self) -> int:
        """A number that other rows, classes or weights will hardly share."""
        mark = 0
        for block in self.source.blocks():
            X = block.X.data if sparse.issparse(block.X) else block.X
            mark = zlib.crc32(np.ascontiguousarray(X[:: max(1, len(X) // 50)]).tobytes(), mark)
        for side in (self.labels, self.weight):
            mark = mark if side is None else zlib.crc32(np.ascontiguousarray(side).tobytes(), mark)
        return mark


def read_training_rows(estimator: Any, X: Any, y: Any, weight: Any) -> tuple[TrainingRows, Array]:
    """What ``fit`` was given, and the classes: none without y."""
    given = find_target(X, y, weight)
    source = given.open(estimator, min_rows=2)
    blocks, largest = [], 0.0
    for block in source.blocks():
        blocks.append((block.n_rows, block.weight))
        entries = np.abs(block.X.data if sparse.issparse(block.X) else block.X)
        largest = max(largest, float(np.fmax.reduce(entries, axis=None, initial=0.0)))
    if largest > LARGEST_ENTRY or 0 < largest < 1 / LARGEST_ENTRY:
        raise ValueError(
            f"the largest entry of X is {largest:g} from zero, and must lie between "
            f"{1 / LARGEST_ENTRY:g} and {LARGEST_ENTRY:g}: layers multiply entries and weights in "
            "units of them. Divide X by a constant"
        )
    n_rows = sum(n for n, _ in blocks)
    weights = None if blocks[0][1] is None else np.concatenate([w for _, w in blocks])
    if given.y is None:
        return TrainingRows(source, None, weights, n_rows), np.zeros(0, np.int64)
    labels, classes = encode_classes(given.y, n_rows, weights)
    without = "leave y out to learn from X alone"
    check_two_classes(classes, nothing=without, one=without)
    return TrainingRows(source, labels, weights, n_rows), classes


def take_labelled(rows: TrainingRows, X: Any) -> Block:
    """The labelled rows of X, complete, as one block."""
    known = rows.labelled
    assert rows.labels is not None
    weight = None if rows.weight is None else rows.weight[known]
    return Block(X if known.all() else X[known], 0, rows.labels[known], weight)
