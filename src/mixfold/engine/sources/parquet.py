"""Parquet files and folders of them, read a few thousand rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mixfold.engine.sources.arrow import arrow_dtype, example, is_number, not_a_number
from mixfold.engine.sources.checks import check_shape
from mixfold.engine.sources.columns import SHARED, Choice, choose, choose_in_file
from mixfold.engine.sources.stream import StreamSource
from mixfold.engine.sources.weights_and_labels import sides_of

# Bytes read at a time from each column. Without it a reader loads whole column chunks:
# all of a file that was written as one row group.
_BUFFER = 2**18


class ParquetSource(StreamSource):
    """Parquet files, one after the other.

    Parameters
    ----------
    files : tuple of Path
    columns : sequence of str, optional
        The features, by name.
    weight, y : array-like or str, optional
        One entry per row, or the name of a column.
    """

    def __init__(
        self, files: tuple[Path, ...], columns: Any = None, weight: Any = None, y: Any = None
    ) -> None:
        schema, lengths = _look(files[0])
        names = schema.names  # pyarrow makes the list anew each time
        choice = choose(names, columns, weight, y, str(files[0]))
        _check_numbers(files[0], schema, choice)
        self._lengths = [lengths]
        for file in files[1:]:
            other, length = _look(file)
            _check_same(files[0], schema, file, other, choice, everything=columns is None)
            self._lengths.append(length)
        self._names = [names[i] for i in choice.used]
        dtype = arrow_dtype(schema.field(i).type for i in choice.features)
        check_shape((self.n_samples, len(choice.features)), str(files[0]))
        super().__init__(files, choice, dtype, sides_of(weight, y, self.n_samples))

    @property
    def n_samples(self) -> int:
        """Number of rows, from the files' metadata."""
        return sum(self._lengths)

    def _batches(self, rows: int) -> Iterator[tuple[Path, pa.RecordBatch]]:
        for file in self._files:
            with _open(file) as reader:
                try:
                    for batch in reader.iter_batches(batch_size=rows, columns=self._names):
                        yield file, batch.select(self._names)
                except (OSError, pa.ArrowException) as error:
                    raise _damaged_file_error(file, error) from error


def _open(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise _damaged_file_error(file, error) from error


def _damaged_file_error(file: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{file} is not a Parquet file, or it is truncated or damaged: {error} "
        "Write it again, or check that the download is whole."
    )


def _look(file: Path) -> tuple[pa.Schema, int]:
    with _open(file) as reader:
        return reader.schema_arrow, int(reader.metadata.num_rows)


def _check_numbers(file: Path, schema: pa.Schema, choice: Choice) -> None:
    for i in choice.used:
        field = schema.field(i)
        if not is_number(field.type):
            with _open(file) as reader:
                top = next(reader.iter_batches(batch_size=64, columns=[field.name]), None)
            shown = "" if top is None else example(top.column(0))
            raise not_a_number(str(file), field.name, field.type, shown)


def _check_same(
    first: Path, schema: pa.Schema, file: Path, other: pa.Schema, choice: Choice, everything: bool
) -> None:
    """The files of a folder agree in the columns that are read (in all, if all are read)."""
    remedy = f"{choose_in_file(SHARED, first.parent)}. Or write the files with one schema."
    known, counts = set(schema.names), Counter(other.names)
    for i in choice.used:
        field = schema.field(i)
        if counts[field.name] != 1:
            raise ValueError(
                f"{file} has no column {field.name!r} (or several); {first} has one. {remedy}"
            )
        found = other.field(field.name).type
        if found != field.type:
            raise ValueError(
                f"{file}: column {field.name!r} has type {found}, but {field.type} in {first}; "
                f"a column must have one type in all files. {remedy}"
            )
    extra = [name for name in other.names if name not in known]
    if everything and extra:
        raise ValueError(f"{file} has a column {extra[0]!r} that {first} has not. {remedy}")
