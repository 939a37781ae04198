"""Which codes of categories occur, in how many rows, and what there is to say about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Source
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.fitting import Survey
from mixfold.families.component import dense_rows
from mixfold.families.exponential.categorical import MOST_CATEGORIES
from mixfold.families.product.family import PlainProduct

# a column with more categories than these, most of them in fewer rows than those, is doubtful
_MANY_CATEGORIES, _FEW_ROWS = 20, 5


def counted_columns(family: Any) -> list[int] | None:
    """Columns of codes whose categories the user has not numbered; None: all columns."""
    if isinstance(family, PlainProduct):
        lists = [(counted_columns(part.family), part.columns) for part in family.parts]
        return [d for counted, columns in lists if counted is None for d in columns]
    return None if family.needs_codes else []


def count_codes(
    columns: list[int] | None, survey: Survey, maxima: Array
) -> tuple[Array, ...] | None:
    """Rows (V_d,) of each code of each column, empty for columns without codes.

    One pass over the data; None if no column has codes. ``maxima`` (D,) are the largest codes.
    """
    names = range(survey.source.n_features) if columns is None else columns
    if not len(names):
        return None
    n_features = survey.source.n_features
    sizes = [int(maxima[d]) + 1 if d in names else 0 for d in range(n_features)]
    total = [np.zeros(size, np.int64) for size in sizes]
    for counts in survey.executor.map_rows(_CountCodes(tuple(sizes)), survey.source):
        for old, (codes, rows) in zip(total, counts, strict=True):
            old[codes] += rows
    return tuple(total)


@dataclass(frozen=True, slots=True)
class _CountCodes:
    """The task of the pass: codes and their rows, for each column of a block. Picklable."""

    sizes: tuple[int, ...]

    def __call__(self, block: Block) -> list[tuple[Array, Array]]:
        X = dense_rows(block.X)
        X = X if block.weight is None else X[block.weight > 0]
        nothing = np.empty(0, np.int64)
        found = []
        for d, size in enumerate(self.sizes):
            if not size:
                found.append((nothing, nothing))
                continue
            codes, rows = np.unique(X[:, d][~np.isnan(X[:, d])], return_counts=True)
            found.append((codes.astype(np.int64), rows))
        return found


def occurring_codes(
    counts: tuple[Array, ...] | None, elsewhere: tuple[Array, ...] | None = None
) -> tuple[Array, ...] | None:
    """The codes of each column that occur in a row, or ``elsewhere``."""
    if counts is None:
        return None
    found = tuple(np.flatnonzero(rows) for rows in counts)
    if elsewhere is None:
        return found
    return tuple(np.union1d(here, there) for here, there in zip(found, elsewhere, strict=True))


def find_codes(
    columns: list[int] | None, source: Source, maxima: list[Array]
) -> tuple[Array, ...] | None:
    """The codes of each column in any row of a source, empty for columns without codes.

    ``maxima`` are largest codes (D,) of earlier rows, which have been in use up to there. What is
    no code is left out, for the fit to refuse. None if no column has codes.
    """
    names = range(source.n_features) if columns is None else columns
    if not len(names):
        return None
    found = [np.empty(0, np.int64) for _ in range(source.n_features)]
    for block in source.blocks():
        X = dense_rows(block.X)
        for d in names:
            x = X[:, d]
            codes = np.unique(x[(x >= 0) & (x < MOST_CATEGORIES) & (x == np.round(x))])
            found[d] = np.union1d(found[d], codes.astype(np.int64))
    for earlier in maxima:
        for d in names:
            found[d] = np.union1d(found[d], np.arange(earlier[d] + 1, dtype=np.int64))
    return tuple(found)


def extend_maxima(maxima: Array, elsewhere: tuple[Array, ...] | None) -> Array:
    """The largest entries (D,) of a fit, or codes ``elsewhere`` that are larger."""
    tops = [np.nan if not len(codes) else float(codes[-1]) for codes in elsewhere or ()]
    return np.fmax(maxima, tops) if tops else maxima


def warn_about_rare_categories(counts: tuple[Array, ...] | None, names: Array | None) -> None:
    """Warn of columns, such as a zip code, most of whose categories have few rows."""
    for d, rows in enumerate(counts or ()):
        used = rows[rows > 0]
        rare = int((used < _FEW_ROWS).sum())
        if len(used) > _MANY_CATEGORIES and 2 * rare > len(used):
            name = f"column {d}" if names is None else repr(str(names[d]))
            warn(
                f"{name} has {len(used):,} categories, {rare:,} of them in fewer than {_FEW_ROWS} "
                "rows: they say little about groups and count as parameters; put rare categories "
                "together, or leave the column out",
                UserWarning,
            )
