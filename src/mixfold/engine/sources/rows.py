"""Sources whose rows can be fetched in any order: everything that is in memory or mapped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixfold.contracts import Block
from mixfold.engine.sources.checks import is_complete
from mixfold.engine.sources.sizes import block_rows, cuts
from mixfold.engine.sources.weights_and_labels import Sides


class RowSource(ABC):
    """Blocks cut out of a table that knows its length.

    Entries are examined on the first visit only: later passes remember which blocks hold NaN.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy dtype
        float32 or float64.
    names : tuple of str or None
        Column names.
    sides : Sides
        Weights and labels, checked.
    complete : bool or None
        True if it is known that all entries are finite; they are then not examined.
    first_row : int
        Global index of the first row, when this is a piece of something larger.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        names: tuple[str, ...] | None,
        sides: Sides,
        complete: bool | None = None,
        first_row: int = 0,
    ) -> None:
        self._shape = shape
        self._dtype = dtype
        self._names = names
        self._sides = sides
        self._first_row = first_row
        self._all_complete = complete is True
        self._seen: dict[int, dict[int, bool]] = {}

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._shape[1]

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, None where there are none."""
        return self._names

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self._dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks in row order."""
        return self._blocks(block_rows(self.n_samples, self._width(), max_rows))

    def _width(self) -> float:
        """Numbers stored per row."""
        return float(self.n_features)

    @abstractmethod
    def _take(self, first: int, last: int) -> Any:
        """The rows ``first:last`` as a float array or CSR array."""

    def _blocks(self, rows: int) -> Iterator[Block]:
        for first, last in cuts(self.n_samples, rows):
            X = self._take(first, last)
            sides = self._sides.part(first, last)
            yield Block(
                X,
                start=self._first_row + first,
                y=sides.y,
                weight=sides.weight,
                complete=self._complete(X, first, rows),
            )

    def _complete(self, X: Any, first: int, rows: int) -> bool:
        if self._all_complete:
            return True
        seen = self._seen.setdefault(rows, {})
        if first not in seen:
            seen[first] = is_complete(X, self._first_row + first, self._names)
            blocks_in_all = -(-self.n_samples // rows)
            self._all_complete = len(seen) == blocks_in_all and all(seen.values())
        return seen[first]
