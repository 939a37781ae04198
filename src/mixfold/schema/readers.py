"""Any table as Arrow columns: text where a file has no types, so that nothing is read too early."""

from __future__ import annotations

import codecs
import csv
import importlib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

# of a delimited file so many bytes are looked at before it is read
_HEAD = 1 << 18
# lines that tell whether a text file has columns
_LINES_OF_COLUMNS, _FEWEST_LINES = 50, 5
_DELIMITERS = ",;\t|"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_TOTALS = frozenset(
    {"total", "totals", "sum", "summe", "gesamt", "totale", "grand total", "average"}
)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name, and what was decided on the way."""

    table: pa.Table
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Any:
        return self.table.column(name)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is said of a delimited file and need not be found out: empty where it is to be.

    ``decimal`` is the mark of numbers in text.
    """

    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        if self.delimiter and len(self.delimiter) != 1:
            raise ValueError(f"sep must be one character, such as ';'; got {self.delimiter!r}")
        if self.decimal not in ("", ".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {self.decimal!r}")
        if self.encoding:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one that Python knows, such as 'utf-8', 'cp1252' or "
                    f"'utf-16'; got {self.encoding!r}"
                ) from None


AS_FOUND = Reading()


def read_table(data: Any, n_rows: int | None = None, reading: Reading = AS_FOUND) -> Table:
    """A table, a file, a dict of columns or an array as Arrow columns.

    Parameters
    ----------
    data : path, table, mapping or array
    n_rows : int, optional
        So many rows at most: the first ones of a file, evenly spaced ones of a table.
    reading : Reading
        What is known of a delimited file.
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, str | os.PathLike):
        return _read_file(Path(data), n_rows, reading)
    table = _arrow_of(data)
    names = [str(name) for name in table.column_names]
    unique = _unique_names(names)
    if unique != table.column_names:
        table = table.rename_columns(unique)
    if n_rows is not None and table.num_rows > n_rows:
        table = table.take(np.linspace(0, table.num_rows - 1, n_rows).astype(np.int64))
    return Table(table, _notes_on_names(names, unique))


# ------------------------------------------------ tables in memory


def _arrow_of(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    package = type(data).__module__.partition(".")[0]
    if package == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        return frame.to_arrow()
    if package == "pandas":
        return _columns_of(
            {name: data.iloc[:, i] for i, name in enumerate(data.columns)}, data.columns
        )
    if package in ("duckdb", "_duckdb"):
        return data.arrow() if not hasattr(data, "to_arrow_table") else data.to_arrow_table()
    if isinstance(data, Mapping):
        return _columns_of(data, list(data))
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    array = np.asarray(data)
    if array.ndim != 2:
        raise ValueError(
            f"a table has rows and columns; got {type(data).__name__} of shape {array.shape}"
        )
    return _columns_of({f"x{j}": array[:, j] for j in range(array.shape[1])}, None)


def _columns_of(columns: Mapping[Any, Any], names: Any) -> pa.Table:
    arrays = [_array_of(values) for values in columns.values()]
    lengths = {len(one) for one in arrays}
    if len(lengths) > 1:
        raise ValueError(f"the columns of a table are equally long; got lengths {sorted(lengths)}")
    given = [str(name) for name in (names if names is not None else columns)]
    return pa.Table.from_arrays(arrays, names=given)


def _array_of(values: Any) -> Any:
    """An Arrow array of a column; of several types as text."""
    try:
        found = pa.array(values, from_pandas=True)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        TypeError,
        OverflowError,
    ):
        values = list(values)
        known = [value for value in values if _as_text(value) is not None]
        if known and all(isinstance(value, date) for value in known):  # midnights lack a clock
            moments = [
                value if isinstance(value, datetime) or value is None
                else datetime(value.year, value.month, value.day)
                for value in values
            ]  # fmt: skip
            return pa.array(moments, pa.timestamp("us"), from_pandas=True)
        found = pa.array([_as_text(value) for value in values], pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _as_text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    return str(value)


def _unique_names(names: Sequence[str]) -> list[str]:
    """Names of which none is empty and none occurs twice."""
    taken: Counter[str] = Counter()
    out: dict[str, None] = {}
    for i, name in enumerate(names):
        name = " ".join(name.split()) or f"column {i + 1}"
        taken[name] += 1
        new = name if taken[name] == 1 else f"{name} ({taken[name]})"
        while new in out:
            taken[name] += 1
            new = f"{name} ({taken[name]})"
        out[new] = None
    return list(out)


def _notes_on_names(names: Sequence[str], unique: Sequence[str]) -> tuple[str, ...]:
    changed = [
        (old, new) for old, new in zip(names, unique, strict=True) if " ".join(old.split()) != new
    ]
    if not changed:
        return ()
    old, new = changed[0]
    more = f" and {len(changed) - 1} others" if len(changed) > 1 else ""
    if not old.strip():
        return (f"a column without a name is called {new!r}{more}",)
    return (f"the name {old!r} belongs to several columns: one is called {new!r}{more}",)


# ------------------------------------------------ files


def _read_file(path: Path, n_rows: int | None, reading: Reading) -> Table:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    ending = next((s for s in reversed(suffixes) if s not in _PACKED), "")
    reader = _READERS.get(ending)
    if reader is None or packed:
        reader = _READERS_OF_PACKED.get(ending) if packed else _by_content(path)
    if reader is None:
        raise ValueError(f"{path} is packed, and files {ending!r} are not read so: unpack it first")
    if reader is _read_delimited:
        return _read_delimited(path, n_rows, reading)
    try:
        return reader(path, n_rows)
    except (ValueError, ImportError, OSError):
        raise
    except Exception as error:  # those who read it have errors of their own
        raise _unreadable(path, ending or "its kind", error) from error


def _unreadable(path: Path, kind: str, error: Exception) -> ValueError:
    return ValueError(
        f"{path} cannot be read as a file of {kind}: {error}. It may be damaged, or of another "
        "kind than its name says; open it where it was made and save it again"
    )


def _by_content(path: Path) -> Callable[[Path, int | None], Table]:
    """The reader of a file whose name says nothing."""
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] == b"PAR1":
        return _read_parquet
    if head[:6] == b"ARROW1":
        return _read_feather
    if head[:4] == b"PK\x03\x04" or head[:4] == b"\xd0\xcf\x11\xe0":
        return _read_spreadsheet
    if head[:4] in (b"$FL2", b"$FL3"):
        return _read_statistics
    if head[:1] == b"{":
        return _read_json_lines
    return _read_delimited


def _read_parquet(path: Path, n_rows: int | None) -> Table:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise _unreadable(path, "Parquet", error) from error
    if n_rows is None or file.metadata.num_rows <= n_rows:
        return read_table(file.read())
    batches = []
    rows = 0
    for batch in file.iter_batches(batch_size=n_rows):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= n_rows:
            break
    return read_table(pa.Table.from_batches(batches).slice(0, n_rows))


def _read_feather(path: Path, n_rows: int | None) -> Table:
    import pyarrow.feather as feather

    table = feather.read_table(path, memory_map=True)
    return read_table(table if n_rows is None else table.slice(0, n_rows))


def _read_json_lines(path: Path, n_rows: int | None) -> Table:
    text = _decoded(path, None)[0]
    try:
        if text.lstrip()[:1] == "[":
            rows = json.loads(text)
        else:
            lines = [line for line in text.splitlines() if line.strip()]
            rows = [json.loads(line) for line in lines[:n_rows]]
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}; correct {error.doc[:60]!r}") from error
    rows = rows[:n_rows]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError(f'{path}: each row must be an object, {{"name": value, ...}}')
    names = list(dict.fromkeys(name for row in rows for name in row))
    return read_table(_columns_of({name: [row.get(name) for row in rows] for name in names}, names))


def _read_spreadsheet(path: Path, n_rows: int | None) -> Table:
    calamine = _import("python_calamine", path, "tables", "python-calamine")
    book = calamine.CalamineWorkbook.from_path(str(path))
    sheets = list(book.sheet_names)
    filled = [(name, book.get_sheet_by_name(name).to_python()) for name in sheets]
    filled = [
        (name, rows) for name, rows in filled if any(any(c != "" for c in row) for row in rows)
    ]
    if not filled:
        raise ValueError(f"{path} has no sheet with entries")
    name, rows = filled[0]
    notes = (
        [f"read is the sheet {name!r}; there are others: {', '.join(n for n, _ in filled[1:])}"]
        if len(filled) > 1
        else []
    )
    width = max(map(len, rows))
    body = [[None if c == "" else c for c in (*row, *[""] * (width - len(row)))] for row in rows]
    return _from_rows(path, body, notes, n_rows)


def _from_rows(path: Path, rows: list[list[Any]], notes: list[str], n_rows: int | None) -> Table:
    """A header somewhere near the top, rows below it, perhaps a total at the end."""
    rows = [row for row in rows if any(cell is not None for cell in row)]
    top = _find_header([[cell is not None for cell in row] for row in rows[:50]])
    if top:
        notes.append(_lines_above(top))
    names = ["" if cell is None else str(cell) for cell in rows[top]]
    body = rows[top + 1 :]
    body, found = _without_total(body)
    notes += found
    if n_rows is not None:
        body = body[:n_rows]
    keep = [j for j, name in enumerate(names) if name or any(row[j] is not None for row in body)]
    unique = _unique_names([names[j] for j in keep])
    notes += _notes_on_names([names[j] for j in keep], unique)
    arrays = [_array_of([row[j] for row in body]) for j in keep]
    return Table(pa.Table.from_arrays(arrays, names=unique), tuple(notes))


def _lines_above(n: int) -> str:
    lines = (
        "line above the names of the columns is"
        if n == 1
        else ("lines above the names of the columns are")
    )
    return f"{n} {lines} left out"


def _find_header(filled: list[list[bool]]) -> int:
    """The first line that has as many entries as most lines below it."""
    widths = [sum(row) for row in filled]
    usual = Counter(widths[len(widths) // 2 :] or widths).most_common(1)[0][0]
    return next((i for i, width in enumerate(widths) if width >= max(2, 0.6 * usual)), 0)


def _without_total(rows: list[list[Any]]) -> tuple[list[list[Any]], list[str]]:
    """The rows but a last one that sums up the others."""
    if len(rows) > 2:
        first = next((cell for cell in rows[-1] if cell is not None and str(cell).strip()), None)
        if isinstance(first, str) and first.strip().rstrip(":").casefold() in _TOTALS:
            return rows[:-1], [f"the last row begins with {first!r} and is left out"]
    return rows, []


def _read_statistics(path: Path, n_rows: int | None) -> Table:
    pyreadstat = _import("pyreadstat", path, "tables", "pyreadstat")
    read = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta",
            ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}[path.suffix.lower()]  # fmt: skip
    limit = {} if n_rows is None else {"row_limit": n_rows}
    frame, meta = getattr(pyreadstat, read)(str(path), apply_value_formats=True, **limit)
    for name, labels in meta.variable_to_label.items():
        if meta.variable_measure.get(name) == "ordinal" and hasattr(frame[name], "cat"):
            seen = set(frame[name].cat.categories)
            by_code = [text for _, text in sorted(meta.value_labels[labels].items())]
            if seen <= set(by_code):
                in_order = [text for text in by_code if text in seen]
                frame[name] = frame[name].cat.reorder_categories(in_order, ordered=True)
    return read_table(frame)


def _import(package: str, path: Path, extra: str, project: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{path.name} is read by {project}, which is not here: pip install 'mixfold[{extra}]'"
        ) from error


# ------------------------------------------------ delimited text


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a delimited file is written: ``skip`` lines stand above the names of the columns."""

    encoding: str
    delimiter: str
    skip: int
    names: tuple[str, ...]
    units: bool = False
    has_header: bool = True


def _decoded(path: Path, limit: int | None, encoding: str = "") -> tuple[str, str]:
    """The text of a file, or its beginning, and its encoding."""
    with pa.input_stream(path) as stream:
        raw = bytes(stream.read() if limit is None else stream.read(limit))
    if encoding:
        try:
            return raw.decode(encoding, "strict" if limit is None else "ignore"), encoding
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not {encoding}: {error}; leave the encoding out"
            ) from error
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return raw.decode(name, "replace").lstrip(
                "\ufeff"
            ), "utf-8-sig" if name == "utf-8" else name
    zeros = [raw[i::2].count(0) / max(1, len(raw) // 2) for i in range(2)]
    if max(zeros) > 0.4 and min(zeros) < 0.05:  # letters of two bytes without a mark
        name = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        return raw.decode(name, "replace"), name
    if b"\0" in raw[:1000]:
        raise ValueError(
            f"{path} is no text: it holds NUL bytes. Tables are CSV, Excel, ODS, JSON lines, "
            "Parquet, Feather, SPSS, Stata or SAS files"
        )
    cut = raw if limit is None or len(raw) < limit else raw[: raw.rfind(b"\n") + 1]
    for name in ("utf-8", "cp1252"):
        try:
            return cut.decode(name), name
        except UnicodeDecodeError:
            pass
    return cut.decode("latin-1"), "latin-1"


def has_columns(path: Path) -> bool:
    """Whether the lines of a text file are parted into columns: each by as many marks."""
    try:
        text, _ = _decoded(path, _HEAD)
    except (OSError, ValueError):
        return False
    lines = [line for line in text.splitlines() if line.strip()][:_LINES_OF_COLUMNS]
    few = len(lines) < _FEWEST_LINES
    return not few and any(
        len({line.count(mark) for line in lines}) == 1 and mark in lines[0] for mark in _DELIMITERS
    )


def find_dialect(path: Path, reading: Reading = AS_FOUND) -> tuple[Dialect, tuple[str, ...]]:
    """How a delimited file is written, and what was decided about it."""
    text, encoding = _decoded(path, _HEAD, reading.encoding)
    if not reading.encoding and encoding == "utf-8" and path.stat().st_size >= _HEAD:
        encoding = _check_encoding(path, encoding)
    notes = [] if encoding in ("utf-8", "utf-8-sig") else [f"the file is read as {encoding}"]
    lines = text.splitlines()
    named = _named_delimiter(lines[0]) if lines else None
    skip = int(named is not None)
    body = "\n".join(lines[skip:])
    delimiter = reading.delimiter or named or _find_delimiter(body)
    rows = list(csv.reader(io.StringIO(body), delimiter=delimiter))
    filled = [i for i, row in enumerate(rows[:60]) if any(cell.strip() for cell in row)]
    if not filled:
        return Dialect(encoding, delimiter, skip, ()), ()
    top = filled[_find_header([[bool(cell.strip()) for cell in rows[i]] for i in filled])]
    if top > filled[0]:
        notes.append(_lines_above(top))
    names, below = tuple(rows[top]), [row for row in rows[top + 1 : top + 200] if row]
    dialect = Dialect(encoding, delimiter, skip + top, names)
    if _looks_like_data(names, below):
        notes.append("the first line holds numbers: the columns are called column 1, 2, ...")
        names = tuple(f"column {j + 1}" for j in range(len(names)))
        return replace(dialect, names=names, has_header=False), tuple(notes)
    if _has_units_line(below):
        shown = ", ".join(cell for cell in below[0] if cell)[:40]
        notes.append(f"the line below the names ({shown}) is left out: it holds no entries")
        return replace(dialect, units=True), tuple(notes)
    return dialect, tuple(notes)


def _named_delimiter(line: str) -> str | None:
    """The mark that a line ``sep=;`` names, as spreadsheets write it."""
    line = line.strip("\r\n").strip('"')
    return line[4] if line.lower().startswith("sep=") and len(line) == 5 else None


def _check_encoding(path: Path, encoding: str) -> str:
    """UTF-8 to the end, or what changes on the way read as Windows text."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with pa.input_stream(path) as stream:
        while True:
            part = bytes(stream.read(1 << 22))
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError:
                return "cp1252"
            if not part:
                return encoding


def _find_delimiter(text: str) -> str:
    """The mark that parts most lines into the same number of pieces, more than one."""
    best, most = ",", -1.0
    for mark in _DELIMITERS:
        widths = [len(row) for row in csv.reader(io.StringIO(text), delimiter=mark) if row][:200]
        if not widths:
            return ","
        width, n = Counter(widths).most_common(1)[0]
        if width < 2:
            continue
        score = n / len(widths) + 0.01 * min(width, 20)
        if score > most:
            best, most = mark, score
    return best


def _looks_like_data(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first line holds entries: numbers where there are numbers below."""
    from mixfold.schema.numbers import NumberFormat

    if not names or not below:
        return False
    numbers = [NumberFormat().parse(name) is not None for name in names]
    return (
        any(numbers)
        and all(
            is_number
            or not name.strip()
            or not any(NumberFormat().parse(row[j]) is not None for row in below if j < len(row))
            for j, (name, is_number) in enumerate(zip(names, numbers, strict=True))
        )
        and sum(numbers) >= 0.5 * len(names)
    )


def _has_units_line(below: Sequence[Sequence[str]]) -> bool:
    """Whether the line below the names is a second header: words where all others are numbers."""
    from mixfold.schema.numbers import find_format

    if len(below) < 8:
        return False
    strange = 0
    columns = 0
    for j in range(len(below[0])):
        rest = [row[j] for row in below[1:-2] if j < len(row) and row[j].strip()]
        if len(rest) < 4:
            continue
        found = find_format(set(rest))
        if found is None or found.unread:
            continue
        columns += 1
        strange += bool(below[0][j].strip()) and found.format.parse(below[0][j]) is None
    return columns >= 2 and strange >= max(2, 0.8 * columns)


def _read_delimited(path: Path, n_rows: int | None, reading: Reading = AS_FOUND) -> Table:
    dialect, notes = find_dialect(path, reading)
    if not dialect.names:
        raise ValueError(f"{path} is empty: it has no line with names of columns")
    if dialect.names[0].lstrip().lower().startswith(("<!doctype", "<html", "<?xml", "<table")):
        raise ValueError(
            f"{path} is a page ({dialect.names[0].strip()[:30]!r}), not a table: open it in a "
            "browser and copy the table, or save what it links to"
        )
    unique = _unique_names(dialect.names)
    ragged: list[tuple[int, int, str]] = []

    def note_ragged(row: Any) -> str:
        ragged.append((row.number or 0, row.actual_columns, str(row.text)))
        return "skip"

    read = pa_csv.ReadOptions(
        use_threads=False, column_names=unique, encoding=dialect.encoding,
        skip_rows=dialect.skip + int(dialect.has_header) + int(dialect.units),
    )  # fmt: skip
    parse = pa_csv.ParseOptions(
        delimiter=dialect.delimiter, quote_char='"', double_quote=True,
        newlines_in_values=True, invalid_row_handler=note_ragged,
    )  # fmt: skip
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in unique}, strings_can_be_null=False
    )
    try:
        table = _read_batches(path, n_rows, read, parse, convert)
    except pa.ArrowInvalid as error:
        # a line with names and no more
        if any(words in str(error) for words in ("Empty CSV", "Could not skip")):
            table = pa.table({name: pa.array([], pa.string()) for name in unique})
        else:
            raise ValueError(f"{path} cannot be read as a table: {error}") from error
    extra = _judge_ragged(path, dialect, table, ragged, n_rows)
    table, total = _drop_total(table) if n_rows is None or table.num_rows < n_rows else (table, ())
    names = _notes_on_names(dialect.names, unique)
    return Table(table, (*notes, *names, *extra, *total))


def _read_batches(path: Path, n_rows: int | None, read: Any, parse: Any, convert: Any) -> pa.Table:
    with pa_csv.open_csv(path, read, parse, convert) as reader:
        batches, rows = [], 0
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            if n_rows is not None and rows >= n_rows:
                break
        table = pa.Table.from_batches(batches, reader.schema)
    return table if n_rows is None else table.slice(0, n_rows)


def _judge_ragged(
    path: Path,
    dialect: Dialect,
    table: pa.Table,
    ragged: list[tuple[int, int, str]],
    n_rows: int | None,
) -> tuple[str, ...]:
    """Lines of another number of entries: a remark at the end of a file, else an error."""
    if not ragged:
        return ()
    last = table.num_rows + len(ragged)
    if all(width == 1 for _, width, _ in ragged) and len(ragged) <= 5:
        return (f"{len(ragged)} lines without columns are left out: {ragged[0][2][:60]!r}",)
    number, width, text = ragged[0]
    line = number + dialect.skip + int(dialect.units)
    raise ValueError(
        f"{path}: {len(ragged)} of {last} rows do not have {len(dialect.names)} entries; "
        f"the first, near line {line}, has {width}: {text[:70]!r}. "
        f"Correct them: text that holds a {dialect.delimiter!r} stands in quotes; each row has "
        "as many entries as there are names"
    )


def _drop_total(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    if table.num_rows < 3:
        return table, ()
    last = [column[-1].as_py() for column in table.columns]
    first = next((cell for cell in last if cell and cell.strip()), "")
    if first.strip().rstrip(":").casefold() in _TOTALS:
        return table.slice(0, table.num_rows - 1), (
            f"the last row begins with {first!r} and is left out",
        )
    return table, ()


_READERS: dict[str, Callable[[Path, int | None], Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab", ".dat", ".psv"), _read_delimited),
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
    **dict.fromkeys((".feather", ".arrow"), _read_feather),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json_lines),
    **dict.fromkeys((".xlsx", ".xls", ".xlsb", ".xlsm", ".ods"), _read_spreadsheet),
    **dict.fromkeys((".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt"), _read_statistics),
}
_READERS_OF_PACKED = {
    ending: reader
    for ending, reader in _READERS.items()
    if reader in (_read_delimited, _read_json_lines)
}
