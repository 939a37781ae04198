"""A JSON document and named arrays -> the tree that they were written from.

Nothing in the document is trusted: every shape is checked, memory is bounded by the size of
the file, and the only classes that can appear are numpy's and those in
:data:`mixfold.contracts.RECORDS`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixfold import contracts
from mixfold.contracts import Array
from mixfold.store.encode import MAX_DEPTH, MAX_TEXT, OBJECTS
from mixfold.store.fields import check_fields

SCALARS = {
    name: np.dtype(name)
    for name in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}


class DocumentError(ValueError):
    """A document that no tree was written as."""


class Decoder:
    """Rebuild trees; each of the ``arrays`` may be used once.

    Raises
    ------
    DocumentError
        From every method, if the document is not one that the encoder writes.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)
        self._text = 0

    def decode(self, value: Any, depth: int = 0) -> Any:
        """The value that ``value`` stands for."""
        if depth > MAX_DEPTH:
            raise DocumentError(f"values are nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, float) and not math.isfinite(value):
            raise DocumentError("a number is out of range")
        return value

    def finish(self) -> None:
        """Call after the last tree: no array may be left over."""
        if self._arrays:
            raise DocumentError(f"the array {min(self._arrays)!r} belongs to nothing")

    def _object(self, value: dict[str, Any], depth: int) -> Any:
        tag = next(iter(value), "")
        if len(value) == 1 and tag in _TAGS:
            return _TAGS[tag](self, value[tag], depth)
        result = {}
        for key, item in value.items():
            if key.startswith("$") and not key.startswith("$$"):
                raise DocumentError(f"the mark {key!r} is unknown")
            result[key[1:] if key.startswith("$") else key] = self.decode(item, depth + 1)
        return result

    def _tuple(self, content: Any, depth: int) -> Any:
        _require(isinstance(content, list), "$tuple")
        return tuple(self.decode(item, depth + 1) for item in content)

    def _float(self, content: Any, depth: int) -> float:
        _require(content in ("inf", "-inf", "nan"), "$float")
        return float(content)

    def _scalar(self, content: Any, depth: int) -> Any:
        name, value = _items(content, 2, "$scalar")
        _require(isinstance(name, str) and name in SCALARS, "$scalar")
        dtype = SCALARS[name]
        plain = self.decode(value, depth + 1)
        wanted = {"b": bool, "f": float}.get(dtype.kind, int)
        _require(type(plain) is wanted, "$scalar")
        try:
            with np.errstate(over="raise"):
                return dtype.type(plain)
        except (OverflowError, FloatingPointError) as error:
            raise DocumentError(f"{plain!r} does not fit numpy type {dtype}") from error

    def _text_array(self, content: Any, depth: int) -> Array:
        texts, shape, width = _items(content, 3, "$text")
        _require(isinstance(texts, list) and all(type(text) is str for text in texts), "$text")
        _require(_is_shape(shape) and math.prod(shape) == len(texts), "$text")
        _require(type(width) is int and (width == OBJECTS or width > 0), "$text")
        self._text += max(width, 0) * len(texts)
        fits = width == OBJECTS or all(len(text) <= width for text in texts)
        _require(fits and self._text <= MAX_TEXT, "$text")
        flat = np.empty(len(texts), dtype=object if width == OBJECTS else f"U{width}")
        flat[:] = texts
        return _reshape(flat, shape)

    def _array(self, content: Any, depth: int) -> Any:
        name, dtype, shape, order = _items(content, 4, "$array")
        _require(isinstance(name, str) and isinstance(dtype, str) and _is_shape(shape), "$array")
        _require(order in ("C", "F"), "$array")
        array = self._arrays.pop(name, None)
        if array is None:
            raise DocumentError(f"the array {name!r} is missing, or used twice")
        if array.dtype.str[1:] != dtype or list(array.shape) != shape:
            raise DocumentError(
                f"the array {name!r} has type {array.dtype.str[1:]} and shape "
                f"{list(array.shape)}, but type {dtype[:8]} and shape {shape} were announced"
            )
        return np.asfortranarray(array) if order == "F" else array

    def _record(self, content: Any, depth: int) -> Any:
        name, fields = _items(content, 2, "$record")
        _require(isinstance(name, str) and isinstance(fields, dict), "$record")
        return self._rebuild(
            name, {key: self.decode(value, depth + 1) for key, value in fields.items()}
        )

    def _rebuild(self, name: str, values: dict[str, Any]) -> Any:
        cls = contracts.RECORDS.get(name)
        if cls is None:
            raise DocumentError(f"it holds a {name!r}, which this version of mixfold does not know")
        known = {field.name: field for field in dataclasses.fields(cls) if field.init}
        unknown = sorted(set(values) - set(known))
        missing = sorted(
            field.name
            for field in known.values()
            if field.name not in values
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        )
        if unknown or missing:
            raise DocumentError(f"{name}: unknown fields {unknown}, missing fields {missing}")
        try:
            check_fields(cls, values)
            return cls(**values)
        except Exception as error:  # whatever a record's own checks raise
            raise DocumentError(f"{name}: {error}") from error


class Outline(Decoder):
    """The document for reading: arrays and records are described, not rebuilt."""

    def __init__(self) -> None:
        super().__init__({})

    def _scalar(self, content: Any, depth: int) -> Any:
        return super()._scalar(content, depth).item()

    def _text_array(self, content: Any, depth: int) -> Any:
        return super()._text_array(content, depth).tolist()

    def _array(self, content: Any, depth: int) -> Any:
        _, dtype, shape, _ = _items(content, 4, "$array")
        _require(isinstance(dtype, str) and dtype in SCALARS and _is_shape(shape), "$array")
        return f"array of {SCALARS[dtype]}, shape {tuple(shape)}"

    def _rebuild(self, name: str, values: dict[str, Any]) -> Any:
        return {"record": name, **values}


_TAGS: dict[str, Callable[[Decoder, Any, int], Any]] = {
    "$tuple": lambda decoder, content, depth: decoder._tuple(content, depth),
    "$float": lambda decoder, content, depth: decoder._float(content, depth),
    "$scalar": lambda decoder, content, depth: decoder._scalar(content, depth),
    "$text": lambda decoder, content, depth: decoder._text_array(content, depth),
    "$array": lambda decoder, content, depth: decoder._array(content, depth),
    "$record": lambda decoder, content, depth: decoder._record(content, depth),
}


def _require(rule: bool, tag: str) -> None:
    if not rule:
        raise DocumentError(f"a {tag} is not of the form that is written")


def _items(content: Any, n: int, tag: str) -> list[Any]:
    _require(isinstance(content, list) and len(content) == n, tag)
    items: list[Any] = content
    return items


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**62 for n in shape)


def _reshape(flat: Array, shape: list[int]) -> Array:
    try:
        return flat.reshape(shape)
    except (ValueError, OverflowError) as error:
        raise DocumentError(f"numpy cannot make an array of shape {shape}") from error
