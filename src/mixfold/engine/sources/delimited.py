"""CSV files and folders of them, read as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from mixfold.engine.sources.arrow import example, is_number, not_a_number
from mixfold.engine.sources.checks import FLOAT64
from mixfold.engine.sources.columns import SHARED, choose, choose_in_file
from mixfold.engine.sources.stream import StreamSource
from mixfold.engine.sources.weights_and_labels import sides_of

_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\S+): invalid value '(.*)'",
    re.DOTALL,
)


class CsvSource(StreamSource):
    """CSV (or tab-separated) files with a header line, one after the other.

    A CSV file has no types: features are read as float64, so that a column may begin with
    integers and go on with decimals. Text among the numbers is an error, with its row.

    Parameters
    ----------
    files : tuple of Path
    columns, weight, y
        As for :class:`~mixfold.engine.sources.parquet.ParquetSource`.
    """

    def __init__(
        self, files: tuple[Path, ...], columns: Any = None, weight: Any = None, y: Any = None
    ) -> None:
        schema, _ = _look(files[0])
        names = schema.names  # pyarrow makes the list anew each time
        choice = choose(names, columns, weight, y, str(files[0]))
        self._names = [names[i] for i in choice.used]
        self._types = {
            name: _reading(schema.field(name).type, label=i == choice.y)
            for name, i in zip(self._names, choice.used, strict=True)
        }
        for file in files:
            self._check(file, files[0], schema, everything=columns is None)
        self._n_samples: int | None = None
        super().__init__(files, choice, FLOAT64, sides_of(weight, y, None))

    @property
    def n_samples(self) -> int | None:
        """Number of rows, known after the first full pass."""
        return self._n_samples

    def _rows_for_blocks(self) -> None:
        return None  # else the blocks would change once the rows are counted

    def _store_row_count(self, n_samples: int) -> None:
        super()._store_row_count(n_samples)
        self._n_samples = n_samples

    def _batches(self, rows: int) -> Iterator[tuple[Path, pa.RecordBatch]]:
        options = pa_csv.ConvertOptions(include_columns=self._names, column_types=self._types)
        for file in self._files:
            try:
                with open_delimited(file, options) as reader:
                    for batch in reader:
                        yield file, batch
            except pa.ArrowInvalid as error:
                raise _explain(file, error) from error

    def _check(self, file: Path, first: Path, schema: pa.Schema, everything: bool) -> None:
        """The file has the columns of the first one, and its top rows hold numbers."""
        found, top = _look(file)
        if everything and set(found.names) != set(schema.names):
            odd = sorted(set(found.names) ^ set(schema.names))[0]
            raise ValueError(
                f"{file} and {first} differ in column {odd!r}, which only one of them has. "
                f"{choose_in_file(SHARED, first.parent)}."
            )
        choose(found.names, self._names, where=str(file))
        for name in self._names:
            kind = found.field(name).type
            if not is_number(kind):
                column = top.column(found.get_field_index(name))
                raise not_a_number(str(file), name, kind, *_odd_one(column))


def _reading(kind: pa.DataType, label: bool) -> pa.DataType:
    """The type a column is read as, from what its first rows look like."""
    if pa.types.is_boolean(kind) or (label and pa.types.is_integer(kind)):
        return kind
    return pa.float64()


def open_delimited(file: Path, options: pa_csv.ConvertOptions | None = None) -> Any:
    """A reader of batches of a CSV or tab-separated file."""
    delimiter = "\t" if ".tsv" in (suffix.lower() for suffix in file.suffixes) else ","
    return pa_csv.open_csv(
        file,
        # One thread: only then does the reader know the row of an error. It is not slower.
        read_options=pa_csv.ReadOptions(use_threads=False),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter),
        convert_options=options,
    )


def _look(file: Path) -> tuple[pa.Schema, pa.RecordBatch]:
    """Column names and guessed types, and the first rows."""
    try:
        with open_delimited(file) as reader:
            schema = reader.schema
            top = next(iter(reader), None)
        names = schema.names
    except pa.ArrowInvalid as error:
        raise _explain(file, error) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} cannot be read as CSV, since it is no text in UTF-8 ({error}). Write it so, "
            "or check that it is the right file."
        ) from error
    if top is None:
        top = pa.RecordBatch.from_pylist([], schema=schema)
    _check_header(file, names)
    return schema, top


def _check_header(file: Path, names: list[str]) -> None:
    if all(_is_float(name) for name in names):
        raise ValueError(
            f"{file}: the first line must hold the names of the columns, but it holds the numbers "
            f"{', '.join(names[:4])}. Add a header line."
        )
    if len(names) == 1:
        _check_separator(file, names[0])


def _check_separator(file: Path, line: str) -> None:
    if "," not in line and any(mark in line for mark in ";\t|"):
        raise ValueError(
            f"{file} is not separated by commas: its first line is {line[:80]!r}. Write it "
            "with commas, and with points in numbers, as by pandas.read_csv(name, sep=';', "
            "decimal=',').to_csv(new, index=False); or name it .tsv if it is separated by tabs."
        )


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _odd_one(column: Any) -> tuple[str, str]:
    """The first value that is no number, and its row, for a message."""
    for row, value in enumerate(column):
        text = value.as_py()
        if not _is_missing(text) and not (isinstance(text, str) and _is_float(text)):
            return example([value]), f" in row {row} (rows count from 0)"
    return example(column), ""


def _is_missing(value: Any) -> bool:
    """Whether an entry would be missing in a column of numbers, as pyarrow reads them."""
    return value is None or value in pa_csv.ConvertOptions().null_values


def _explain(file: Path, error: Exception) -> ValueError:
    """What pyarrow says of a CSV file, with the file, the column and the row."""
    match = _CONVERSION.search(str(error))
    if match is None:
        _check_separator(file, _first_line(file))
        return ValueError(f"{file} cannot be read as CSV: {error}. Correct that line.")
    position, line, kind, value = match.groups()
    names = _header(file)
    name = names[int(position)] if int(position) < len(names) else f"#{position}"
    row = "" if line is None else f" in row {int(line) - 2} (rows count from 0)"
    return ValueError(
        f"{file}: column {name!r} holds {value!r}{row}, but numbers ({kind}) before; a column must "
        "have one type. Correct the entry, or leave it empty if it is missing."
    )


def _first_line(file: Path) -> str:
    with pa.input_stream(file) as stream:  # packed files as well
        return bytes(stream.read(1000)).split(b"\n")[0].decode("utf-8", "replace").strip()


def _header(file: Path) -> list[str]:
    with open_delimited(file) as reader:
        return list(reader.schema.names)
