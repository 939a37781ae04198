"""Entries of a column as numbers, and numbers as entries, by what its ``Column`` says."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mixfold.contracts import Array
from mixfold.schema import words
from mixfold.schema.column import Column
from mixfold.schema.dates import from_days, parse_clock, parse_date, to_days, to_hours
from mixfold.schema.numbers import NumberFormat
from mixfold.schema.scales import NAMES, from_scale, to_scale

_SHOWN = 3


class SchemaWarning(UserWarning):
    """Entries that a column did not have where its schema was made."""


# ------------------------------------------------ to numbers


def encode(column: Column, entries: Any) -> Array:
    """Entries (Arrow array of one column) as float64; missing and unknown ones are NaN.

    Warns of categories that the column does not have, and of a few entries that cannot be read;
    refuses a column most of whose entries cannot be read.
    """
    if isinstance(entries, pa.ChunkedArray):
        entries = entries.combine_chunks()
    if pa.types.is_dictionary(entries.type):
        entries = entries.cast(entries.type.value_type)
    if _is_numeric(entries.type) and not column.has_levels:
        values = entries.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).copy()
        values[~np.isfinite(values)] = np.nan
        for stand_in in column.missing:
            number = _as_float(stand_in)
            if number is not None:
                values[values == number] = np.nan
        return _to_scale(column, values)
    coded = entries.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    parse = _parser(column)
    stand_ins = {number for text in column.missing if (number := _as_float(text)) is not None}
    unread: list[Any] = []
    found = np.full(len(distinct) + 1, np.nan)
    for i, value in enumerate(distinct):
        if value is None or _stands_for_missing(column, value):
            continue
        number = parse(value)
        if number is None:
            unread.append(value)
        elif number not in stand_ins or column.has_levels:
            found[i] = number
    codes = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    if unread:
        _report_unread(
            column,
            unread,
            np.isin(codes, [distinct.index(v) for v in unread]),
            codes < len(distinct),
        )
    return _to_scale(column, found[codes])


def _to_scale(column: Column, values: Array) -> Array:
    if column.scale == "plain" or column.kind != "number":
        return values
    with np.errstate(invalid="ignore"):
        share = column.scale == "share"
        bad = (values < 0) | (values > 1) if share else values <= 0
    if bad.any():
        was = "between 0 and 1" if share else "positive"
        how = "as a share" if share else f"by its {NAMES[column.scale]}"
        raise ValueError(
            f"column {column.name!r} was {was} throughout and is modelled {how}, but "
            f"row {int(np.flatnonzero(bad)[0])} (rows count from 0) holds {values[bad][0]:g}; use "
            f"schema.set({column.name!r}, scale='plain') before the fit"
        )
    return to_scale(column, values)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _stands_for_missing(column: Column, value: Any) -> bool:
    if isinstance(value, str):
        among_numbers = not column.has_levels or column.numbers is not None
        folded = value.strip()
        if column.has_levels and folded in column.levels:
            return False
        return folded in column.missing or words.is_missing(folded, among_numbers)
    if isinstance(value, float) and math.isnan(value):
        return True
    if isinstance(value, date):
        return value.isoformat()[:10] in column.missing
    return f"{value:g}" in column.missing if isinstance(value, int | float) else False


def _parser(column: Column) -> Callable[[Any], float | None]:
    if column.has_levels:
        return _level_parser(column)
    if column.kind == "date":
        return lambda value: _days_of(column, value)
    if column.kind == "cyclic" and (column.dates or column.stored == "time"):
        return lambda value: _hours_of(column, value)
    return lambda value: _number_of(column, value)


def _level_parser(column: Column) -> Callable[[Any], float | None]:
    codes = {level: float(i) for i, level in enumerate(column.levels)}
    folded = {" ".join(str(level).split()).casefold(): code for level, code in codes.items()}
    numbers = {
        n: code for level, code in codes.items() if (n := _number_of(column, level)) is not None
    }

    def parse(value: Any) -> float | None:
        if value in codes:
            return codes[value]
        text = " ".join(str(value).split()).casefold()
        if text in folded:
            return folded[text]
        number = _number_of(column, value)  # 1, 1.0 and '1' are one level
        return None if number is None else numbers.get(number)

    return parse


def _number_of(column: Column, value: Any) -> float | None:
    if isinstance(value, bool | np.bool_):
        return float(value)
    if isinstance(value, int | float | Decimal | np.number):
        return float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return (column.numbers or NumberFormat()).parse(value)
    return None


def _days_of(column: Column, value: Any) -> float | None:
    if isinstance(value, date | datetime):
        return to_days(value)
    if isinstance(value, str):
        found = parse_date(value, column.dates) if column.dates else None
        if found is not None:
            return found
        try:
            return to_days(datetime.fromisoformat(value.strip()))
        except ValueError:
            return None
    return None


def _hours_of(column: Column, value: Any) -> float | None:
    if isinstance(value, time):
        return to_hours(value)
    return parse_clock(value, column.dates) if isinstance(value, str) and column.dates else None


def _report_unread(column: Column, unread: list[Any], which: Array, known: Array) -> None:
    shown = ", ".join(repr(value) for value in unread[:_SHOWN])
    more = f" and {len(unread) - _SHOWN} others" if len(unread) > _SHOWN else ""
    first, count = int(np.flatnonzero(which)[0]), int(which.sum())
    if column.has_levels:
        warnings.warn(
            f"column {column.name!r} has values that it did not have before: {shown}{more}, first "
            f"in row {first} (rows count from 0); they count as missing in {count} rows",
            SchemaWarning,
            stacklevel=2,
        )
        return
    what = {"date": "dates", "cyclic": "numbers or times"}.get(column.kind, "numbers")
    if 2 * count > known.sum():
        raise ValueError(
            f"column {column.name!r} should hold {what}, but most of its entries are none, such as "
            f"{shown} in row {first} (rows count from 0); correct them, or make a schema of this "
            "table by Schema.infer"
        )
    warnings.warn(
        f"column {column.name!r} should hold {what}; {count} entries are none and count as "
        f"missing: {shown}{more}, first in row {first} (rows count from 0)",
        SchemaWarning,
        stacklevel=2,
    )


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# ------------------------------------------------ to entries


def fill(column: Column, entries: Any, found: pa.ChunkedArray) -> Any:
    """The entries of a column, with ``found`` where they are missing or cannot be read.

    Of the type of the entries, or that of ``found`` where the first cannot hold it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        known = pa.array(np.isfinite(encode(column, entries)))
    as_codes = pa.types.is_dictionary(entries.type)
    if as_codes:
        entries = entries.cast(entries.type.value_type)
    for kind in (entries.type, found.type):
        try:
            filled = pc.if_else(known, entries.cast(kind), found.cast(kind))
            return filled.dictionary_encode() if as_codes else filled
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return found


def decode(column: Column, values: Array, round_: bool = True) -> pa.Array:
    """Numbers as entries of the column; NaN is missing. ``round_``: to the step at which the column
    was recorded, and into its range."""
    values = np.asarray(values, dtype=float)
    known = np.isfinite(values)
    if column.has_levels:
        codes = np.clip(np.round(np.where(known, values, 0)), 0, len(column.levels) - 1).astype(int)
        return _arrow([column.levels[c] if k else None for c, k in zip(codes, known, strict=True)])
    values = from_scale(column, values)
    if round_:
        values = _recorded(column, values)
    if column.kind == "date":
        return _days_as_entries(column, values, known)
    if column.kind == "cyclic" and (column.dates or column.stored == "time"):
        return _hours_as_entries(column, values, known)
    if column.stored == "text":
        style = column.numbers or NumberFormat()
        digits = None if round_ else 6
        return pa.array(
            [style.format(v, digits) if k else None for v, k in zip(values, known, strict=True)],
            pa.string(),
        )
    if column.stored == "integer" and round_:
        whole = np.where(known, np.round(np.where(known, values, 0)), 0).astype(np.int64)
        return pa.array(whole, pa.int64(), mask=~known)
    if column.stored == "duration":
        return pa.array(
            [timedelta(seconds=v) if k else None for v, k in zip(values, known, strict=True)]
        )
    return pa.array(np.where(known, values, 0.0), pa.float64(), mask=~known)


def _recorded(column: Column, values: Array) -> Array:
    if column.step is not None and column.kind in ("number", "count", "date", "cyclic"):
        values = np.round(values / column.step) * column.step
    if column.kind == "count":
        values = np.maximum(values, 0.0)
    if column.period is not None:
        start, period = column.period
        values = start + np.mod(values - start, period)
    return values


def _days_as_entries(column: Column, values: Array, known: Array) -> pa.Array:
    whole = column.step is not None or column.stored == "date"
    moments = [from_days(v, whole) if k else None for v, k in zip(values, known, strict=True)]
    if column.stored == "text":
        style = column.dates or "%Y-%m-%d"
        return pa.array([m.strftime(style) if m else None for m in moments], pa.string())
    if column.stored == "date":
        return pa.array([m.date() if m else None for m in moments], pa.date32())
    return pa.array(moments, pa.timestamp("us"))


def _hours_as_entries(column: Column, values: Array, known: Array) -> pa.Array:
    clocks = [
        (datetime(2000, 1, 1) + timedelta(hours=float(v))).time() if k else None
        for v, k in zip(values, known, strict=True)
    ]
    if column.stored == "time":
        return pa.array(clocks, pa.time64("us"))
    return pa.array(
        [c.strftime(column.dates or "%H:%M") if c else None for c in clocks], pa.string()
    )


def _arrow(values: Sequence[Any]) -> pa.Array:
    return pa.array(values)
