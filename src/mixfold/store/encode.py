"""A tree of plain values -> a JSON document and named arrays.

A tree is made of dicts with string keys, lists, tuples, strings, numbers, None, numpy scalars
and arrays, and records (:func:`mixfold.contracts.record`). Dicts, lists, strings, booleans,
None, integers and finite floats are themselves in JSON; everything else is an object with one
key that starts with ``$`` (a ``$`` at the head of a key of the tree is doubled).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from mixfold import contracts
from mixfold.contracts import Array

MAX_DEPTH = 64  # levels of nesting of a tree
MAX_TEXT = 2**24  # characters of all text arrays together, padding included
MAX_BITS = 4096  # of an integer
OBJECTS = -1  # width of a text array whose entries are str objects

NUMBERS = frozenset("?bhilqBHILQefd")  # numpy type characters that the file format holds


class Encoder:
    """Encode one tree; ``arrays`` then holds what the document refers to by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._text = 0

    def encode(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """The JSON value for ``value``.

        Raises
        ------
        TypeError, ValueError
            If it cannot be written; the message says where in the tree it is.
        """
        if len(path) > MAX_DEPTH:
            raise ValueError(f"{_where(path[:4])}... is nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, np.generic) and not isinstance(value, np.str_):
            return self._scalar(value, path)
        if value is None or isinstance(value, bool | str | int | float):
            return _plain(value, path)
        if type(value) is tuple:
            return {"$tuple": self._items(value, path)}
        if type(value) is list:
            return self._items(value, path)
        if type(value) is dict:
            return self._dict(value, path)
        return self._record(value, path)

    def _items(self, values: Any, path: tuple[str, ...]) -> list[Any]:
        return [self.encode(value, (*path, str(i))) for i, value in enumerate(values)]

    def _dict(self, value: dict[Any, Any], path: tuple[str, ...]) -> dict[str, Any]:
        for key in value:
            if type(key) is not str:
                raise TypeError(f"{_where(path)}: keys must be strings, got {key!r}")
        return {
            f"${key}" if key.startswith("$") else key: self.encode(item, (*path, key))
            for key, item in value.items()
        }

    def _record(self, value: Any, path: tuple[str, ...]) -> dict[str, Any]:
        name = contracts.record_name(type(value))
        if not contracts.is_record(value):
            raise TypeError(
                f"{_where(path)}: a value of type {type(value).__name__} cannot be written to a "
                "model file; use numbers, strings, lists, dicts, arrays, or a dataclass registered "
                "with mixfold.contracts.record"
            )
        fields = {
            field.name: self.encode(getattr(value, field.name), (*path, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
        return {"$record": [name, fields]}

    def _scalar(self, value: np.generic, path: tuple[str, ...]) -> dict[str, Any]:
        _check_numeric(value.dtype, path)
        return {"$scalar": [value.dtype.str[1:], _plain(value.item(), path)]}

    def _array(self, value: Array, path: tuple[str, ...]) -> dict[str, Any]:
        if value.dtype.kind in "UO":
            return self._text_array(value, path)
        _check_numeric(value.dtype, path)
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        # Contiguous, native and a plain ndarray: the file library copies raw memory.
        plain = np.array(value, dtype=value.dtype.newbyteorder("="), order="C", subok=False)
        name = self._free_name(path)
        self.arrays[name] = plain
        declared = [name, plain.dtype.str[1:], list(plain.shape), "F" if fortran else "C"]
        return {"$array": declared}

    def _text_array(self, value: Array, path: tuple[str, ...]) -> dict[str, Any]:
        texts = value.reshape(-1).tolist()
        if not all(type(text) is str for text in texts):
            raise TypeError(
                f"{_where(path)}: an array of type {value.dtype} cannot be written to a model "
                "file unless all its entries are strings"
            )
        width = value.dtype.itemsize // 4 if value.dtype.kind == "U" else OBJECTS
        self._text += max(width, 0) * len(texts)
        if self._text > MAX_TEXT:
            raise ValueError(f"{_where(path)}: too much text; use an object array of strings")
        return {"$text": [texts, list(value.shape), width]}

    def _free_name(self, path: tuple[str, ...]) -> str:
        # Names are for people who look into the file; the document refers to them as they are.
        base = "/".join(path).encode("ascii", "backslashreplace").decode() or "array"
        name, n = base, 1
        while name in self.arrays or name == "__metadata__":
            n += 1
            name = f"{base}~{n}"
        return name


def _plain(value: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(float(value))}
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError(f"{_where(path)}: integers may have at most {MAX_BITS} bits")
    if isinstance(value, str):
        return str.__str__(value)
    # Members of enumerations and the like are written as the number that they are.
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float) else value


def _check_numeric(dtype: np.dtype[Any], path: tuple[str, ...]) -> None:
    if dtype.char not in NUMBERS:
        raise TypeError(
            f"{_where(path)}: numpy type {dtype} cannot be written to a model file; convert it "
            "to float64, to an integer type or to bool"
        )


def _where(path: tuple[str, ...]) -> str:
    return "/".join(path) or "the tree"
