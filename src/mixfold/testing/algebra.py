"""Laws of statistics: a commutative monoid, so that blocks can be added in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from mixfold.contracts import Stats
from mixfold.testing.compare import require, require_same


def monoid(parts: Sequence[Stats], rtol: float = 1e-12) -> None:
    """``+`` is associative and commutative, ``zero`` neutral, ``scale`` linear.

    Parameters
    ----------
    parts : sequence of at least three Stats
        Statistics of different rows; equal ones would hide much.
    """
    require(len(parts) >= 3, "monoid", f"needs three statistics, got {len(parts)}")
    a, b, c = parts[:3]
    require_same("associative", (a + b) + c, a + (b + c), rtol)
    # swapping two summands rounds the same way
    require_same("commutative", a + b, b + a, 1e-15)
    require_same("neutral element", a + a.zero(), a, 1e-15)
    require_same("neutral element", a.zero() + a, a, 1e-15)
    require_same("zero is of no rows", a.scale(0.0), a.zero(), 1e-15)
    require_same("scale by one", a.scale(1.0), a, 1e-15)
    require_same("scale counts rows", a.scale(3.0), a + a + a, rtol)
    require_same("scale distributes", (a + b).scale(0.3), a.scale(0.3) + b.scale(0.3), rtol)
    require_same("difference", (a + b) - b, a, max(rtol, 1e-10))
    _keeps_constants(a, b)


def _keeps_constants(a: Stats, b: Stats) -> None:
    """Fields that are not added are the same in all summands, and survive."""
    total = (a + b).scale(0.5).zero()
    for field in fields(a):
        value = getattr(a, field.name)
        if field.metadata.get("constant"):
            same = np.array_equal(value, getattr(b, field.name))
            require(same, "shared constants", f"{field.name} differs between two summands")
            require_same("shared constants", getattr(total, field.name), value, what=field.name)
        elif isinstance(value, Stats):
            _keeps_constants(value, getattr(b, field.name))
