"""Many records of one make as a few arrays: a file names each array, and can name so many only."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, record


@record
@dataclass(frozen=True, slots=True)
class Column:
    """The values of one field of all records, one after another, and the shape (n, d) of each."""

    values: Array
    shapes: Array


@record
@dataclass(frozen=True, slots=True)
class Stacked:
    """Several records: the first one, and the fields in which others differ from it.

    Fields are counted through records within records; None stands for one that all share.
    """

    first: Any
    columns: tuple[Column | None, ...]
    n_records: int


def stack_records(records: Sequence[Any]) -> tuple[Any, ...]:
    """A ``Stacked`` alone, or the records as they are where they differ in more than numbers."""
    if len(records) < 2:
        return tuple(records)
    table = [_leaves(one) for one in records]
    if any(len(leaves) != len(table[0]) for leaves in table):
        return tuple(records)
    columns: list[Column | None] = []
    for leaves in zip(*table, strict=True):
        if all(_is_shared(leaf, leaves[0]) for leaf in leaves):
            columns.append(None)
            continue
        arrays = [np.asarray(leaf) for leaf in leaves]
        makes = {(leaf is a, a.dtype, a.ndim) for leaf, a in zip(leaves, arrays, strict=True)}
        if len(makes) > 1 or arrays[0].dtype.kind not in "biuf":
            return tuple(records)
        shapes = np.array([a.shape for a in arrays], np.int64).reshape(len(arrays), -1)
        columns.append(Column(np.concatenate([a.ravel() for a in arrays]), shapes))
    return (Stacked(records[0], tuple(columns), len(records)),)


def unstack_records(stored: tuple[Any, ...]) -> tuple[Any, ...]:
    """The records that ``stack_records`` was given."""
    if len(stored) != 1 or not isinstance(stored[0], Stacked):
        return stored
    (whole,) = stored
    columns = [
        [leaf] * whole.n_records if column is None else _split(column, leaf)
        for leaf, column in zip(_leaves(whole.first), whole.columns, strict=True)
    ]
    rows = zip(*columns, strict=True)
    return tuple(_rebuild(whole.first, iter(row).__next__) for row in rows)


def mean_record(records: Sequence[Any]) -> Any:
    """The record of the means of all numbers, where they differ."""
    columns = (_mean(leaves) for leaves in zip(*map(_leaves, records), strict=True))
    return _rebuild(records[0], columns.__next__)


def _mean(leaves: tuple[Any, ...]) -> Any:
    first = leaves[0]
    if all(_is_shared(leaf, first) or np.array_equal(leaf, first) for leaf in leaves):
        return first
    mean = np.mean([np.asarray(leaf, dtype=float) for leaf in leaves], axis=0)
    return mean if isinstance(first, np.ndarray) else type(first)(mean)


def _split(column: Column, like: Any) -> list[Any]:
    ends = np.cumsum(column.shapes.prod(axis=1, dtype=np.int64))
    parts = np.split(column.values, ends[:-1])
    if isinstance(like, np.ndarray):
        return [p.reshape(shape) for p, shape in zip(parts, column.shapes, strict=True)]
    return [type(like)(part.item()) for part in parts]


def _is_shared(leaf: Any, first: Any) -> bool:
    return leaf is first or (isinstance(leaf, str) and isinstance(first, str) and leaf == first)


def _leaves(value: Any) -> list[Any]:
    """What is neither a record nor a tuple, in the order of the fields."""
    if not _has_parts(value):
        return [value]
    return [leaf for part in _parts(value) for leaf in _leaves(part)]


def _has_parts(value: Any) -> bool:
    return isinstance(value, tuple) or dataclasses.is_dataclass(value)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        yield from value
    else:
        yield from (getattr(value, f.name) for f in dataclasses.fields(value) if f.init)


def _rebuild(like: Any, take: Callable[[], Any]) -> Any:
    """A value of the make of ``like``, of leaves that are taken one by one."""
    if not _has_parts(like):
        return take()
    parts = [_rebuild(part, take) for part in _parts(like)]
    if isinstance(like, tuple):
        return tuple(parts)
    names = (f.name for f in dataclasses.fields(like) if f.init)
    return type(like)(**dict(zip(names, parts, strict=True)))
