"""What the fields of a record may hold, by their annotations: the first check of a file."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from mixfold import contracts

_ABSENT = object()


def check_fields(cls: type, values: dict[str, Any]) -> None:
    """Refuse values that are not of the types that a record's fields are annotated with.

    Annotations that say nothing about a value (Any, protocols, type variables) pass everything.
    ``Positive``, ``NotNegative`` and ``Shares`` of the contracts also say something of the entries.

    Raises
    ------
    ValueError
    """
    for name, hint in _hints(cls).items():
        value = values.get(name, _ABSENT)
        if value is not _ABSENT and not _fits(value, hint):
            raise ValueError(f"{name} is a {type(value).__name__}{_expected(hint)}")


_SIGNS: dict[str, Callable[[contracts.Array], bool]] = {
    "positive": lambda a: a.dtype.kind in "fiu" and bool((a > 0).all()),
    "not negative": lambda a: a.dtype.kind in "fiu" and bool((a >= 0).all()),
    "shares": lambda a: a.dtype.kind in "fiu" and _are_shares(a),
}
_WORDS = {
    "positive": "positive",
    "not negative": "zero or positive",
    "shares": "zero or positive and sum to one",
}


def _expected(hint: Any) -> str:
    rule = typing.get_args(hint)[1:2] if typing.get_origin(hint) is Annotated else ()
    return f" with entries that are not {_WORDS[rule[0]]}" if rule else ", which it never is"


def _are_shares(values: contracts.Array) -> bool:
    if values.ndim == 0 or not values.size:
        return values.ndim > 0
    sums = values.sum(axis=-1)
    return bool((values >= 0).all() and (np.abs(sums - 1) < 1e-3).all())


def check_finite(state: dict[str, Any]) -> None:
    """Refuse NaN and infinity among what a model computes with: records and private attributes.

    Attributes that are only shown may be NaN where there is nothing to show.

    Raises
    ------
    ValueError
        With the place in the tree.
    """
    for name, value in state.items():
        if name.startswith("_") or not isinstance(value, float | np.floating | np.ndarray):
            _check_values(value, name)


def _check_values(value: Any, where: str) -> None:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{where} holds NaN or infinity")
    elif isinstance(value, float | np.floating):
        if math.isnan(value):
            raise ValueError(f"{where} is NaN")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.init:
                _check_values(getattr(value, field.name), f"{where}/{field.name}")
    elif isinstance(value, list | tuple) and where.startswith("_"):
        for i, item in enumerate(value):
            _check_values(item, f"{where}/{i}")
    elif isinstance(value, dict):  # the state of a model inside this one, for example
        for key, item in value.items():
            if key.startswith("_") or not isinstance(item, float | np.floating | np.ndarray):
                _check_values(item, f"{where}/{key}")


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    """The annotations of the fields that can be resolved."""
    fields = {field.name for field in dataclasses.fields(cls)}
    try:
        found = typing.get_type_hints(cls, include_extras=True)
    except NameError:  # of an import for type checkers alone
        return {}
    return {name: hint for name, hint in found.items() if name in fields}


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        plain, rule = typing.get_args(hint)[:2]
        return _fits(value, plain) and _SIGNS[rule](np.asarray(value))
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(hint))
    if hint is None or hint is type(None):
        return value is None
    if origin is np.ndarray or hint is np.ndarray:
        # (an array without a dimension may come as a number)
        return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiubUO"
    if origin in (tuple, list):
        return isinstance(value, origin) and _items_fit(value, typing.get_args(hint))
    if origin is dict or hint is dict:
        return isinstance(value, dict)
    return _is_one(value, hint)


def _items_fit(value: Any, hints: tuple[Any, ...]) -> bool:
    if not hints:
        return True
    if (len(hints) == 2 and hints[1] is Ellipsis) or len(hints) == 1:
        return all(_fits(item, hints[0]) for item in value)
    return len(value) == len(hints) and all(map(_fits, value, hints))


def _is_one(value: Any, hint: Any) -> bool:
    """Whether a single value is of a class; what is no class says nothing."""
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, float | int | np.number) and not isinstance(value, bool)
    if hint is str:
        return isinstance(value, str)
    known = isinstance(hint, type) and contracts.RECORDS.get(hint.__name__) is hint
    return isinstance(value, hint) if known else True
