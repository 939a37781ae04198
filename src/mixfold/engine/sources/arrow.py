"""Columns of Arrow tables and record batches as numbers: nulls become NaN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from mixfold.contracts import Array
from mixfold.engine.sources.checks import FLOAT32, FLOAT64
from mixfold.engine.sources.columns import LEAVE_OUT, choose_in_file


def is_number(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are numbers (a column of nulls counts)."""
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)


def arrow_dtype(kinds: Iterable[pa.DataType]) -> np.dtype[Any]:
    """float32 if every column is single or half precision, else float64."""
    small = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in kinds)
    return FLOAT32 if small else FLOAT64


def matrix(columns: list[Any], dtype: np.dtype[Any]) -> Array:
    """Arrow columns of equal length side by side, row after row."""
    target = pa.from_numpy_dtype(dtype)
    out = np.empty((len(columns[0]), len(columns)), dtype=dtype)
    for j, column in enumerate(columns):
        out[:, j] = _floats(column, target)
    return out


def weights(column: Any) -> Array:
    """An Arrow column as float64; a null becomes NaN, which no weight may be."""
    return _floats(column, pa.float64())


def labels(column: Any) -> Array:
    """An Arrow column of labels: integers with -1 for null, real outputs with NaN for null."""
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        known = column.cast(pa.int64()).fill_null(-1)
        return np.asarray(known.to_numpy(zero_copy_only=False) if _plain(known) else known)
    return _floats(column, pa.float64())


def example(column: Any) -> str:
    """The first value of a column that is not null, for a message; empty if there is none."""
    for value in column:
        if value.is_valid:
            shown = value.as_py()
            return repr(shown) if isinstance(shown, str) else str(shown)
    return ""


def not_a_number(
    where: object, name: str, kind: Any, shown: str, row: str = "", remedy: str = ""
) -> ValueError:
    """The error for a column that holds something else than numbers.

    ``remedy`` says how to leave it out of a table; of files (``where`` is a path) that is known.
    """
    such = f", such as {shown}{row}" if shown else ""
    leave = f"{LEAVE_OUT}{remedy}" if remedy else choose_in_file(LEAVE_OUT, where)
    return ValueError(
        f"{where}: column {name!r} has type {kind}{such}; it must hold numbers to be used. "
        f"{leave}. Or convert it: cast it to float, encode categories as 0/1 columns."
    )


def _plain(column: Any) -> bool:
    return isinstance(column, pa.Array)


def _floats(column: Any, target: pa.DataType) -> Array:
    # Not `safe`: integers beyond 2**53 are rounded, as numpy does.
    cast = column if column.type == target else column.cast(target, safe=False)
    values = cast.to_numpy(zero_copy_only=False) if _plain(cast) else cast.to_numpy()
    return np.asarray(values)
