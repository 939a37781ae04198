"""Columns of a file that are passed through to the output unread (``--keep``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from mixfold.engine.sources.delimited import open_delimited
from mixfold.engine.sources.files import list_files


class Beside:
    """Some columns of a file or folder, handed out a few rows at a time, in row order.

    Entries of a CSV file stay the text they are: 007 is no number.

    Parameters
    ----------
    path : path
        Parquet or CSV.
    names : list of str

    Raises
    ------
    ValueError
        If the file has no such column, or no names at all.
    """

    def __init__(self, path: Path, names: list[str]) -> None:
        kind, files = list_files(path)
        if kind == "npy":
            raise ValueError(f"{files[0]} has no column names; leave --keep out, or use a table.")
        read = _parquet if kind == "parquet" else _csv
        found = _names(kind, files[0])
        lost = [name for name in names if name not in found]
        if lost:
            raise ValueError(
                f"{str(files[0])!r} has no column {lost[0]!r} to keep; it has {', '.join(found)}."
            )
        self._batches = (batch for file in files for batch in read(file, names))
        self._left: pa.Table | None = None

    def take(self, rows: int) -> dict[str, pa.ChunkedArray]:
        """The next ``rows`` rows, by column."""
        while self._left is None or self._left.num_rows < rows:
            batch = next(self._batches, None)
            if batch is None:
                raise ValueError("the file has fewer rows than before; was it written meanwhile?")
            parts = [pa.Table.from_batches([batch])]
            self._left = pa.concat_tables([*([] if self._left is None else [self._left]), *parts])
        taken, self._left = self._left.slice(0, rows), self._left.slice(rows)
        return {name: taken.column(name) for name in taken.column_names}


def _names(kind: str, file: Path) -> list[str]:
    if kind == "parquet":
        return list(pq.read_schema(file).names)
    with open_delimited(file) as reader:
        return list(reader.schema.names)


def _parquet(file: Path, names: list[str]) -> Iterator[Any]:
    with pq.ParquetFile(file) as parts:
        for batch in parts.iter_batches(columns=names):
            yield batch.select(names)  # the file has an order of its own


def _csv(file: Path, names: list[str]) -> Iterator[Any]:
    options = pa_csv.ConvertOptions(
        include_columns=names, column_types={name: pa.string() for name in names}
    )
    with open_delimited(file, options) as reader:
        yield from reader
