"""The rows of a stream, kept while they are few, so that a model can look at all of them again.

A row that comes a second time adds to the weight of the first: what has been seen several times
takes no more room than once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, NotNegative, Source, record
from mixfold.engine.sources import open_source

# numbers that are kept at most, of columns and outputs together
MOST_NUMBERS = 2**20
# of the rows that were there at the last look: by how much they have grown when they are looked at
# again, and when they are worth a start of their own
_LOOK, _START = 1 / 8, 1 / 2


@record
@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows ``X`` (m, D) with outputs ``y`` (m,) or (m, L), and weights (m,).

    Entries that are missing are zero in them, since a file holds no NaN: ``holes`` (m, D or 0) and
    ``unknown`` (of the shape of y, or (m, 0)) say which.
    ``n_added`` counts the rows that were new when they came, ``n_started`` those of the last start,
    ``looked`` is the weight at the last look; ``settled``: whether the last batch brought no new
    row.
    """

    X: Array
    y: Array
    weight: NotNegative
    holes: Array
    unknown: Array
    n_added: int = 0
    n_started: int = 0
    looked: float = 0.0
    settled: bool = False

    def __post_init__(self) -> None:
        parts = (self.y, self.weight, self.holes, self.unknown)
        if self.X.ndim != 2 or any(len(part) != len(self.X) for part in parts):
            raise ValueError("kept rows, their outputs and their weights differ in number")

    def replace_rows(self, X: Array, y: Array, weight: Array) -> Self:
        """Other rows, NaN where entries are missing."""
        (X, holes), (y, unknown) = _fill(X), _fill(y)
        return replace(self, X=X, y=y, weight=weight, holes=holes, unknown=unknown)

    def with_holes(self) -> tuple[Array, Array]:
        """Rows and outputs, NaN where entries are missing."""
        return _put_holes(self.X, self.holes), _put_holes(self.y, self.unknown)

    @property
    def wants_look(self) -> bool:
        """Whether the rows have grown by so much that they are to be looked at again."""
        return float(self.weight.sum()) >= (1 + _LOOK) * self.looked

    @property
    def wants_start(self) -> bool:
        """Whether the rows are so many more, or so surely all, that a new start is worth it."""
        grown = self.n_added >= (1 + _START) * self.n_started
        return grown or (self.settled and self.n_added > self.n_started)

    def after_look(self, started: bool) -> Self:
        """The same rows, looked at, and ``started`` from."""
        n_started = self.n_added if started else self.n_started
        return replace(self, looked=float(self.weight.sum()), n_started=n_started)

    def source(self) -> Source:
        X, y = self.with_holes()
        return open_source(X, weight=self.weight, y=y)


def _fill(values: Array) -> tuple[Array, Array]:
    """Zero in place of NaN, and where; of no columns if there is none."""
    missing = np.isnan(values)
    if not missing.any():
        return values, np.zeros((len(values), 0), bool)
    return np.where(missing, values.dtype.type(0), values), missing


def _put_holes(values: Array, missing: Array) -> Array:
    return np.where(missing, values.dtype.type(np.nan), values) if missing.size else values


def keep_rows(
    kept: KeptRows | None,
    batch: Source,
    unknown: Callable[[int], Array],
    compress: Callable[[KeptRows], KeptRows] | None = None,
) -> KeptRows | None:
    """With the rows of one more batch; None if they are more than are kept.

    ``unknown`` gives the outputs of so many rows of which none is known; ``compress`` makes
    rows fewer that say the same.
    """
    wide = batch.n_features + unknown(1)[0].size
    most = max(MOST_NUMBERS // wide, 1)
    parts = [] if kept is None else [(*kept.with_holes(), kept.weight)]
    fresh = 0
    for block in batch.blocks():
        X, y, weight = _dense_rows(block, unknown)
        fresh += len(X)
        parts.append((X, y, weight))
        if fresh > most:
            return None
    X, y, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    before = 0 if kept is None else len(kept.X)
    X, y, weight = _join_equals(X, y, weight)
    n_new = len(X) - before
    nothing = np.zeros((len(X), 0), bool)
    grown = KeptRows(X, y, weight, nothing, nothing) if kept is None else kept
    grown = grown.replace_rows(X, y, weight)
    grown = replace(grown, n_added=grown.n_added + n_new, settled=n_new == 0)
    if compress is not None:
        grown = compress(grown)
    return grown if len(grown.X) <= most else None


def _dense_rows(block: Block, unknown: Callable[[int], Array]) -> tuple[Array, Array, Array]:
    """The rows of positive weight."""
    y = unknown(block.n_rows) if block.y is None else block.y
    weight = np.asarray(block.weights(), dtype=float)
    used = weight > 0
    X: Any = block.X[used]
    X = X.toarray() if sparse.issparse(X) else X
    return np.asarray(X), y[used], weight[used]


def _join_equals(X: Array, y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Rows without repetition in the order in which they came, their weights added."""
    # (adding zero makes one zero of both)
    table = np.column_stack([X + 0.0, y + 0]).astype(np.float64)
    bits = np.ascontiguousarray(table).view(np.dtype((np.void, table.shape[1] * 8))).ravel()
    _, first, which = np.unique(bits, return_index=True, return_inverse=True)
    if len(first) == len(X):
        return X, y, weight
    total = np.bincount(which.ravel(), weight, minlength=len(first))
    order = np.argsort(first)
    return X[first[order]], y[first[order]], total[order]
