"""The concentration alpha of a prior of the weights, and its gamma hyper-prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

# a drawn or learned alpha stays in here: its powers and gamma functions stay finite
LEAST, MOST = 1e-12, 1e12


def check_alpha(value: Any) -> float:
    """``value`` as a positive float."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"alpha must be a number, got {value!r}. A usual choice is 1.0.")
    if not 0 < float(value) < math.inf:
        raise ValueError(f"alpha must be positive and finite, got {value}. A usual choice is 1.0.")
    return float(value)


def check_hyper(value: Any) -> tuple[float, float] | None:
    """``value`` as (shape, rate) of a gamma law, or None."""
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise TypeError(
            "hyper must be None or the pair (shape, rate) of a gamma prior of alpha, got "
            f"{value!r}. A usual choice is (1.0, 1.0)."
        )
    shape, rate = value
    for name, number in (("shape", shape), ("rate", rate)):
        if not isinstance(number, Real) or not 0 < float(number) < math.inf:
            raise ValueError(
                f"the {name} of hyper must be positive and finite, got {number!r}. A usual choice "
                "of hyper is (1.0, 1.0)."
            )
    return float(shape), float(rate)


def require_hyper(hyper: tuple[float, float] | None) -> tuple[float, float]:
    """``hyper``, without which alpha cannot be drawn."""
    if hyper is None:
        raise ValueError(
            "hyper must be given to draw alpha: with a flat prior its posterior is improper, got "
            "None. A usual choice is (1.0, 1.0)."
        )
    return hyper


def clip_alpha(alpha: float) -> float:
    return min(max(alpha, LEAST), MOST)
