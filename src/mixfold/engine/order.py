"""Whether the batches of a stream are samples of the same rows: a test with a known error rate.

A stream that learns batch by batch takes each batch for a sample of all rows. Rows that are sorted,
or drift, break that: the last batches win. What is compared is how many entries of each column lie
above a level that stays (the median of the first batch): of the last batches, and of all before.

- **The test.** If rows come in random order, the k2 entries above the level among the n2 of the
  last batches are a draw without replacement from all n1 + n2 entries, k1 + k2 of which are above.
  By Hoeffding (1963, section 6) such a share is beyond k2 / n2 with a probability of at most
  exp(-n2 KL(k2 / n2 || p)), p = (k1 + k2) / (n1 + n2), whatever the distribution of the column.
  The same holds of the rows before. The level halves the first batch by definition; shares then
  differ by as much as if it had been fixed before.
- **The error rate.** Test t of a stream is wrong with probability ``ERROR`` / (t (t + 1)), shared
  by all columns, or less: all tests of a stream together, however long, with ``ERROR``.
- **The window.** The last batches are gathered until they are an eighth of all rows before: so
  small batches are noticed together, and a large one at once.

Rows count once whatever they weigh, if at all; missing entries do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import rel_entr

from mixfold.contracts import Array, Block, Source, Stats, record

# probability that a stream in random order is ever said to be in another
ERROR = 1e-3
# the last batches are compared until they are so many rows, and such a share of those before
_ROWS, _SHARE = 64, 1 / 8
# rows of the first batch that levels are made of
_FIRST = 4096
# entries of sparse columns that are mostly not zero
_ENTRIES = 2**22


@record
@dataclass(frozen=True)
class Tally(Stats):
    """Entries above the level, and entries that were seen, of each column (D,)."""

    above: Array
    seen: Array


@record
@dataclass(frozen=True, slots=True)
class OrderCheck:
    """What is remembered of a stream to notice its order: nothing that grows with it.

    An entry is above a level that it equals if ``inclusive``. ``n_tests`` were made; ``noticed``
    says that one of them has found something, after which there are no more.
    """

    level: Array
    inclusive: Array
    before: Tally
    last: Tally
    n_tests: int = 0
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class Shift:
    """What was noticed: in which column, how many entries above which level, and a bound of the
    log probability of that in any stream of rows in random order."""

    column: int
    level: float
    inclusive: bool
    last: tuple[int, int]
    before: tuple[int, int]
    log_chance: float


@dataclass(frozen=True)
class Watched(Stats):
    """Statistics of a model beside the tally of the same rows."""

    stats: Any
    tally: Tally


def begin_check(source: Source) -> OrderCheck:
    """The levels that the first batch suggests, with nothing counted."""
    block = next(iter(source.blocks(_FIRST)))
    X = block.X[np.flatnonzero(block.weights() > 0)[:_FIRST]]
    level, inclusive = _sparse_levels(X) if sparse.issparse(X) else _levels(X)
    nothing = Tally(np.zeros(len(level)), np.zeros(len(level)))
    return OrderCheck(level, inclusive, nothing, nothing)


def _levels(X: Array) -> tuple[Array, Array]:
    """Medians (D,), and whether entries that equal them are above: whichever halves the column."""
    missing = np.isnan(X)
    ordered = np.sort(X, axis=0)  # NaN last
    middle = np.maximum((~missing).sum(axis=0) - 1, 0) // 2
    level = np.zeros(X.shape[1])
    if len(X):
        level = np.nan_to_num(ordered[middle, np.arange(X.shape[1])].astype(float))
    beyond, at_least = (level < X).sum(axis=0), (level <= X).sum(axis=0)
    half = (~missing).sum(axis=0) / 2
    return level, np.asarray(np.abs(at_least - half) < np.abs(beyond - half))


def _sparse_levels(X: Any) -> tuple[Array, Array]:
    """Zero, which most entries are, and medians of columns in which they are not."""
    n, width = X.shape
    level, inclusive = np.zeros(width), np.zeros(width, bool)
    filled = np.flatnonzero(np.bincount(X.indices, minlength=width) > n / 2)
    filled = filled[: _ENTRIES // max(n, 1)]
    if filled.size:
        own, half = _levels(X[:, filled].toarray())
        # entries that are not stored are zero: they have to be below
        level[filled], inclusive[filled] = np.maximum(own, 0.0), half & (own > 0)
    return level, inclusive


def tally(check: OrderCheck, block: Block) -> Tally:
    """Count the entries of a block."""
    X: Any = block.X
    if block.weight is not None:
        X = X[block.weight > 0]
    if sparse.issparse(X):
        data, where, width = X.data, X.indices, X.shape[1]
        level, missing = check.level[where], np.isnan(data)
        above = (data > level) | (check.inclusive[where] & (data == level))
        seen = X.shape[0] - np.bincount(where[missing], minlength=width)
        return Tally(np.bincount(where[above], minlength=width).astype(float), seen.astype(float))
    above = (check.level < X) | (check.inclusive & (check.level == X))
    seen = np.full(X.shape[1], len(X)) if block.complete else (~np.isnan(X)).sum(axis=0)
    return Tally(above.sum(axis=0).astype(float), seen.astype(float))


def look_at_batch(check: OrderCheck, batch: Tally) -> tuple[OrderCheck, Shift | None]:
    """With one more batch: what is remembered, and a shift if there is one."""
    if not check.before.seen.any():
        return replace(check, before=batch), None
    last, before, number = check.last + batch, check.before, check.n_tests + 1
    bound = _log_chance(before, last)
    column = int(np.argmin(bound))
    shift = None
    bound = bound + np.log(number * (number + 1.0) * len(bound))
    if bound[column] < np.log(ERROR):
        shift = Shift(
            column,
            float(check.level[column]),
            bool(check.inclusive[column]),
            (int(last.above[column]), int(last.seen[column])),
            (int(before.above[column]), int(before.seen[column])),
            float(bound[column]),
        )
    if last.seen.max() >= max(_ROWS, _SHARE * before.seen.max()):
        before, last = before + last, last.zero()
    fresh = replace(check, before=before, last=last, n_tests=number, noticed=shift is not None)
    return fresh, shift


def _log_chance(before: Tally, last: Tally) -> Array:
    """Bound (D,) of the log probability of shares that are as different, in either direction."""
    both = before + last
    share = both.above / np.maximum(both.seen, 1.0)
    bounds = []
    for part in (before, last):
        seen = np.maximum(part.seen, 1.0)
        own = part.above / seen
        divergence = rel_entr(own, share) + rel_entr(1.0 - own, 1.0 - share)
        bounds.append(np.log(2.0) - part.seen * divergence)
    # a column that either has not seen tells nothing
    known = (before.seen > 0) & (last.seen > 0)
    return np.where(known, np.minimum(*bounds), 0.0)
