"""Find the numeric columns of a table, and explain what to do about the others."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

_NAMED, _WRITTEN = 6, 12
# names that people give to a column that tells rows apart and is no measurement
_NAMES_OF_ROWS = ("id", "index", "row", "rowid", "row_id", "key", "unnamed: 0")


def in_options(
    error: ValueError, file: Path, columns: list[str] | None, taken: Collection[str]
) -> ValueError:
    """The error with a remedy to type: all columns that are in the way, and those to use.

    Other errors are returned as they are. ``taken`` are columns that are no features.
    """
    from mixfold.engine.sources.columns import LEAVE_OUT, SHARED

    said, shared, _ = str(error).partition(SHARED)
    if shared:
        return ValueError(f"{said}Name the columns that all files have with --columns.")
    said, found, _ = str(error).partition(LEAVE_OUT)
    if not found:
        return error
    if columns is not None:
        return ValueError(f"{said}Leave it out of --columns, or convert it. {_CATEGORIES}")
    numbers, others = _split_numeric_columns(file, taken)
    several = f"There are {len(others)} such columns: {_some(others)}. "
    same = several if len(others) > 1 else "Correct the entry, or leave it empty if it is missing. "
    return ValueError(f"{said}{same}{_suggest_columns(numbers)}{_CATEGORIES}")


_CATEGORIES = "Categories can be used as columns of 0 and 1, one for each."


def _split_numeric_columns(file: Path, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """Names of the columns of numbers, and of all others; empty columns are neither."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mixfold.engine.sources.arrow import is_number
    from mixfold.engine.sources.delimited import open_delimited
    from mixfold.engine.sources.files import list_files

    kind, files = list_files(file)
    if kind == "parquet":
        schema = pq.read_schema(files[0])
    else:
        with open_delimited(files[0]) as reader:
            schema = reader.schema
    fields = [
        field for field in schema if field.name not in taken and not pa.types.is_null(field.type)
    ]
    numbers = [field.name for field in fields if is_number(field.type)]
    return numbers, [field.name for field in fields if field.name not in numbers]


def _suggest_columns(numbers: list[str]) -> str:
    """What to type, of columns that have a name and are more than a name of the row."""
    if not numbers:
        return "No column holds numbers. "
    measured = [n for n in numbers if n.strip() and n.strip().lower() not in _NAMES_OF_ROWS]
    if not measured:
        return f"No column holds numbers but {_some(numbers)}, which only names the rows. "
    if len(measured) > _WRITTEN or any("," in name or name != name.strip() for name in measured):
        return "Name those to use with --columns. "
    return f"To use the others: --columns {shlex.quote(','.join(measured))}. "


def _some(names: list[str]) -> str:
    shown = [repr(name) for name in names[:_NAMED]]
    hidden = len(names) - len(shown)
    return f"{', '.join(shown)} and {hidden} more" if hidden else ", ".join(shown)
