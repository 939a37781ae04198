"""Comparison of nested values, with a message that names the law and the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array


def require(holds: bool, law: str, message: str) -> None:
    """Raise an AssertionError that names the law, unless it holds."""
    if not holds:
        raise AssertionError(f"law '{law}': {message}")


def leaves(value: Any, place: str = "value") -> Iterator[tuple[str, Any]]:
    """The numbers, arrays and words in nested dataclasses, mappings and sequences.

    Fields that are made from the others (``init=False``) are left out, as in files.
    """
    if is_dataclass(value) and not isinstance(value, type):
        for field in (field for field in fields(value) if field.init):
            yield from leaves(getattr(value, field.name), f"{place}.{field.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        yield f"{place} (length)", len(value)
        for index, item in enumerate(value):
            yield from leaves(item, f"{place}[{index}]")
    else:
        yield place, value


def require_same(law: str, got: Any, wanted: Any, rtol: float = 0.0, what: str = "value") -> None:
    """Two nested values agree: bit by bit for ``rtol`` 0, else to ``rtol`` of their size.

    The size of an array is its largest absolute entry, and at least 1: entries that cancel to
    nearly zero are not held to digits that their neighbours never had.
    """
    ours, theirs = list(leaves(got, what)), list(leaves(wanted, what))
    places = [place for place, _ in ours]
    other = [place for place, _ in theirs]
    require(places == other, law, f"the parts are {places}, not {other}")
    for (place, a), (_, b) in zip(ours, theirs, strict=True):
        require(type(a) is type(b) or bool(rtol), law, f"{place} is {type(a)}, not {type(b)}")
        if isinstance(a, str) or a is None:
            require(a == b, law, f"{place} is {a!r}, not {b!r}")
        else:
            _require_close(law, np.asarray(a), np.asarray(b), rtol, place)


def _require_close(law: str, a: Array, b: Array, rtol: float, place: str) -> None:
    require(a.shape == b.shape, law, f"{place} has shape {a.shape}, not {b.shape}")
    if not rtol:
        require(a.dtype == b.dtype, law, f"{place} is {a.dtype}, not {b.dtype}")
    if a.dtype.kind not in "fc" or not rtol:
        # equal_nan is for floats alone
        equal = np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        require(equal, law, f"{place} is {a}, not {b}")
        return
    a, b = a.astype(float), b.astype(float)
    odd = ~(np.isfinite(a) & np.isfinite(b))
    require(np.array_equal(a[odd], b[odd], equal_nan=True), law, f"{place} is {a}, not {b}")
    if a[~odd].size:
        size = max(1.0, float(np.abs(a[~odd]).max()), float(np.abs(b[~odd]).max()))
        gap = float(np.abs(a[~odd] - b[~odd]).max())
        require(gap <= rtol * size, law, f"{place} differs by {gap:.3g}, allowed {rtol * size:.3g}")
