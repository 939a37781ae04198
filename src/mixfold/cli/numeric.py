"""Which columns of a table hold numbers, told to those who gave one that does not."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

# of an error about a column without numbers, where its remedy for users of Python begins
_REMEDY = "Leave it out with columns="
_NAMED, _WRITTEN = 6, 12


def in_options(
    error: ValueError, file: Path, columns: list[str] | None, taken: Collection[str]
) -> ValueError:
    """The error with a remedy to type: all columns that are in the way, and those to use.

    Other errors are returned as they are. ``taken`` are columns that are no features.
    """
    said, found, _ = str(error).partition(_REMEDY)
    if not found:
        return error
    if columns is not None:
        return ValueError(f"{said}Leave it out of --columns, or convert it. {_CATEGORIES}")
    numbers, others = _divided(file, taken)
    several = f"There are {len(others)} such columns: {_some(others)}. "
    same = several if len(others) > 1 else "Correct the entry, or leave it empty if it is missing. "
    return ValueError(f"{said}{same}{_chosen(numbers)}{_CATEGORIES}")


_CATEGORIES = "Categories can be used as columns of 0 and 1, one for each."


def _divided(file: Path, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """Names of the columns of numbers, and of all others."""
    import pyarrow.parquet as pq

    from mixfold.engine.sources.arrow import is_number
    from mixfold.engine.sources.delimited import open_delimited
    from mixfold.engine.sources.files import listed_files

    kind, files = listed_files(file)
    if kind == "parquet":
        schema = pq.read_schema(files[0])
    else:
        with open_delimited(files[0]) as reader:
            schema = reader.schema
    fields = [field for field in schema if field.name not in taken]
    numbers = [field.name for field in fields if is_number(field.type)]
    return numbers, [field.name for field in fields if field.name not in numbers]


def _chosen(numbers: list[str]) -> str:
    if not numbers:
        return "No column holds numbers. "
    if len(numbers) > _WRITTEN or any("," in name for name in numbers):
        return "Name those to use with --columns. "
    return f"To use the others: --columns {shlex.quote(','.join(numbers))}. "


def _some(names: list[str]) -> str:
    shown = [repr(name) for name in names[:_NAMED]]
    hidden = len(names) - len(shown)
    return f"{', '.join(shown)} and {hidden} more" if hidden else ", ".join(shown)
