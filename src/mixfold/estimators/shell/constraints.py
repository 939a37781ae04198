"""Rules of hyper-parameters as data, checked once, at fit, with one form of message."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np


def as_numbers(value: Any, name: str) -> Any:
    """A parameter as an array of floats, or an error that names it."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold numbers, got {str(value)[:60]!r} of type {type(value).__name__}"
        ) from None


@dataclass(frozen=True, slots=True)
class Rule:
    """What a parameter must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def integer(low: int) -> Rule:
    return Rule(
        f"an int >= {low}",
        lambda v: isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= low,
    )


def number(low: float, *, open_end: bool = False) -> Rule:
    sign = ">" if open_end else ">="
    return Rule(
        f"a number {sign} {low:g}",
        lambda v: (
            isinstance(v, Real)
            and not isinstance(v, bool)
            and math.isfinite(v)
            and (float(v) > low if open_end else float(v) >= low)
        ),
    )


def pair_of_positive() -> Rule:
    one = number(0, open_end=True)
    return Rule(
        "a pair of numbers > 0, (rows, variance)",
        lambda v: isinstance(v, list | tuple) and len(v) == 2 and all(one.holds(x) for x in v),
    )


def real() -> Rule:
    return Rule(
        "a finite number",
        lambda v: isinstance(v, Real) and not isinstance(v, bool) and math.isfinite(v),
    )


def one_of(names: Iterable[str]) -> Rule:
    allowed = tuple(names)
    words = ("one of " if len(allowed) > 1 else "") + ", ".join(repr(n) for n in allowed)
    return Rule(words, lambda v: isinstance(v, str) and v in allowed)


def nothing() -> Rule:
    return Rule("None", lambda v: v is None)


def boolean() -> Rule:
    return Rule("True or False", lambda v: isinstance(v, bool))


def _names_a_file(text: str) -> bool:
    """Whether a system takes it: no name in it is longer than 255 bytes."""
    names = re.split(r"[/\\]", text)
    return "\x00" not in text and all(len(name.encode(errors="replace")) < 256 for name in names)


def path() -> Rule:
    return Rule(
        "a path",
        lambda v: hasattr(v, "__fspath__") or (isinstance(v, str) and _names_a_file(v)),
    )


def share() -> Rule:
    return Rule(
        "a number between 0 and 1",
        lambda v: isinstance(v, Real) and not isinstance(v, bool) and 0 < float(v) < 1,
    )


def share_of_variance() -> Rule:
    def holds(value: Any) -> bool:
        real = isinstance(value, Real) and not isinstance(value, bool | Integral)
        return real and 0 < float(value) <= 1

    return Rule("a share of the variance, a float above 0 and up to 1.0", holds)


def values() -> Rule:
    return Rule(
        "values by class",
        lambda v: isinstance(v, dict | list | tuple) or hasattr(v, "__array__"),
    )


def splits() -> Rule:
    return Rule(
        "an object with split or pairs of row numbers",
        lambda v: isinstance(v, list | tuple) or (hasattr(v, "split") and not isinstance(v, str)),
    )


def function(of: str) -> Rule:
    return Rule(f"a function {of}", callable)


def anything() -> Rule:
    return Rule("anything", lambda v: True)


def check_count(name: str, value: Any) -> None:
    """Refuse what is no number of rows, chains or steps; the first words are scikit-learn's."""
    if not integer(1).holds(value):
        raise ValueError(f"Invalid value for {name!r}: {name} must be an int >= 1; got {value!r}")


Constraints = Mapping[str, tuple[Rule, ...]]


def check(owner: str, values: Mapping[str, Any], constraints: Constraints) -> None:
    """Raise a ValueError for the first value that obeys none of its rules."""
    for name, rules in constraints.items():
        if not any(rule.holds(values[name]) for rule in rules):
            words = " or ".join(rule.words for rule in rules)
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {words}. Got "
                f"{_brief(values[name])} instead."
            )


def _brief(value: Any) -> str:
    """A value as it was given, without the middle of a long one."""
    words = repr(value)
    return words if len(words) <= 200 else f"{words[:120]} ... {words[-20:]}"
