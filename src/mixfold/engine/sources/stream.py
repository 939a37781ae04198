"""Base of sources that are read batch by batch (files), never whole in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mixfold.contracts import Array, Block
from mixfold.engine.sources.arrow import labels, matrix, weights
from mixfold.engine.sources.checks import is_complete, nothing_weighs
from mixfold.engine.sources.columns import Choice
from mixfold.engine.sources.readahead import read_ahead
from mixfold.engine.sources.sizes import block_rows
from mixfold.engine.sources.weights_and_labels import Sides

# One piece of a block: features, weight, label.
_Piece = tuple[Array, Array | None, Array | None]


class StreamSource(ABC):
    """Blocks cut out of a stream of record batches, so that row groups and files do not show.

    Reading, decoding and checking run in the background, two blocks ahead at most.

    Parameters
    ----------
    files : tuple of Path
        In the order of the rows.
    choice : Choice
        Which columns are features, weight and label.
    dtype : numpy dtype
        float32 or float64.
    sides : Sides
        Weights and labels given as arrays, checked but for their length.
    """

    def __init__(
        self, files: tuple[Path, ...], choice: Choice, dtype: np.dtype[Any], sides: Sides
    ) -> None:
        self._files = files
        self._choice = choice
        self._dtype = dtype
        self._sides = sides

    @property
    @abstractmethod
    def n_samples(self) -> int | None:
        """Number of rows, None as long as nobody has counted."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._choice.features)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self._choice.names

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self._dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks in row order."""
        rows = block_rows(self._rows_for_blocks(), float(self.n_features), max_rows)
        return self._pass(rows)

    def _rows_for_blocks(self) -> int | None:
        """The number of rows that decides the size of a block: the same in every pass."""
        return self.n_samples

    @abstractmethod
    def _batches(self, rows: int) -> Iterator[tuple[Path, pa.RecordBatch]]:
        """Batches of at most about ``rows`` rows: features, then weight, then label."""

    def _store_row_count(self, n_samples: int) -> None:
        """Told at the end of every full pass."""
        self._sides.check_length(n_samples)

    def _pass(self, rows: int) -> Iterator[Block]:
        """The blocks, and what can be said only when all of them were handed out."""
        n_samples, heaviest = 0, 0.0
        for block in read_ahead(lambda: self._blocks(rows)):
            n_samples = block.rows.stop
            if block.weight is not None:
                heaviest = max(heaviest, float(block.weight.max()))
            yield block
            del block  # or it would stay while the next one is waited for
        if n_samples == 0:
            raise ValueError(
                f"{self._files[0]} has 0 sample(s) (shape=(0, {self.n_features})) while a minimum "
                "of 1 is required. Check the filter the file was written with."
            )
        self._store_row_count(n_samples)
        if self._choice.weight is not None and heaviest == 0.0:
            raise nothing_weighs()

    def _blocks(self, rows: int) -> Iterator[Block]:
        start = 0
        begins: list[tuple[int, Path]] = []
        for piece in self._recut(rows, begins):
            yield self._block(piece, start, begins)
            start += len(piece[0])
            del piece

    def _block(self, piece: _Piece, start: int, begins: list[tuple[int, Path]]) -> Block:
        X, weight, y = piece
        place = partial(_place, begins=begins)
        own = Sides(weight, y).check_values(start, whole=False, place=place)
        given = self._sides.part(start, start + len(X))
        for values in (given.weight, given.y):
            if values is not None and len(values) < len(X):
                # More rows than entries: the count so far is enough to say so.
                self._sides.check_length(start + len(X))
        return Block(
            X,
            start=start,
            y=given.y if own.y is None else own.y,
            weight=given.weight if own.weight is None else own.weight,
            complete=is_complete(X, start, self.feature_names, place),
        )

    def _recut(self, rows: int, begins: list[tuple[int, Path]]) -> Iterator[_Piece]:
        """Pieces of exactly ``rows`` rows, the last one excepted; notes where files begin."""
        pieces: list[_Piece] = []
        filled = seen = 0
        for file, batch in self._batches(rows):
            if not begins or begins[-1][1] != file:
                begins.append((seen, file))
            at, seen = 0, seen + batch.num_rows
            while at < batch.num_rows:
                taken = min(rows - filled, batch.num_rows - at)
                pieces.append(self._convert(batch.slice(at, taken)))
                at, filled = at + taken, filled + taken
                if filled == rows:
                    yield _join(pieces)
                    pieces, filled = [], 0
        if pieces:
            yield _join(pieces)

    def _convert(self, batch: pa.RecordBatch) -> _Piece:
        columns = batch.columns
        features = matrix(columns[: self.n_features], self.dtype)
        rest = iter(columns[self.n_features :])
        weight = None if self._choice.weight is None else weights(next(rest))
        y = None if self._choice.y is None else labels(next(rest))
        return features, weight, y


def _place(row: int, begins: list[tuple[int, Path]]) -> str:
    """The name of a row of a file."""
    first, file = max(begin for begin in begins if begin[0] <= row)
    return f"row {row - first} of {file}"


def _join(pieces: list[_Piece]) -> _Piece:
    if len(pieces) == 1:
        return pieces[0]
    X, weight, y = zip(*pieces, strict=True)
    return (
        np.concatenate(X),
        None if weight[0] is None else np.concatenate(weight),
        None if y[0] is None else np.concatenate(y),
    )
