"""Formatting of numbers, counts, shares and names for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

NOTHING = "\u2013"
_LONG_NAME = 48


def number(value: Any, digits: int = 3) -> str:
    """A number to so many digits, without exponents where they are not needed.

    Examples
    --------
    >>> number(1234567), number(0.012345), number(3.0), number(2.5e12)
    ('1,234,567', '0.0123', '3', '2.50e12')
    """
    x = math.nan if value is None else float(value)
    if not math.isfinite(x):
        return NOTHING if math.isnan(x) else ("∞" if x > 0 else "\u2212∞")
    size = abs(x)
    if size == round(size) and size < 1e9:
        text = f"{size:,.0f}"
    elif size < 1e-4 or size >= 1e9:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        rounded = float(f"{size:.{digits - 1}e}")  # 0.9999 has as many places as 1
        places = max(0, digits - 1 - math.floor(math.log10(rounded)))
        text = f"{size:,.{places}f}"
    text = text.replace("-", "\u2212")
    return f"\u2212{text}" if x < 0 and text != "0" else text


def add_sign(value: float, digits: int = 2) -> str:
    """A number with its sign, also if that is a plus."""
    text = number(value, digits)
    return f"+{text}" if value > 0 and text != "0" else text


def count(value: float) -> str:
    """A whole number; of weights that are not, with some digits."""
    return f"{round(value):,}" if abs(value - round(value)) < 1e-6 else number(value, 5)


def share(value: float) -> str:
    """A part of one in per cent.

    Examples
    --------
    >>> share(0.1234), share(0.0001), share(0), share(1), share(0.99999)
    ('12.3%', '<0.1%', '0%', '100%', '>99.9%')
    """
    if not math.isfinite(value):
        return NOTHING
    if value in (0, 1) or -0.0005 < value < 0:
        return f"{abs(value):.0%}"
    if 0 < value < 0.0005 or 0.9995 <= value < 1:
        return "<0.1%" if value < 0.5 else ">99.9%"
    return f"{value:.1%}".replace("-", "\u2212")


def percent(value: float) -> str:
    """A limit that was set in per cent, without the decimals that a measured share has.

    Examples
    --------
    >>> percent(0.8), percent(1 - 0.01)
    ('80%', '99%')
    """
    return f"{value:.0%}"


def odder(value: float) -> str:
    """``odder than 99.8%``; of more than can be shown, the most that is sure.

    Examples
    --------
    >>> odder(0.998), odder(0.999999), odder(1.0)
    ('odder than 99.8%', 'odder than 99.9%', 'odder than 99.9%')
    """
    return f"odder than {share(min(value, 0.999))}"


def oddness_share(value: float) -> str:
    """The same alone: no row is odder than all that could be drawn.

    Examples
    --------
    >>> oddness_share(0.998), oddness_share(0.9999), oddness_share(1.0)
    ('99.8%', '>99.9%', '>99.9%')
    """
    return share(min(value, 0.9999))


def plural(n: float, word: str, several: str | None = None) -> str:
    """``3 rows``, ``1 row``."""
    return f"{count(n)} {word if n == 1 else several or word + 's'}"


def join_words(words: Sequence[str], most: int = 6) -> str:
    """``a, b and c``; of many the first ones."""
    shown = list(words[:most])
    hidden = len(words) - len(shown)
    if hidden:
        return f"{', '.join(shown)} and {plural(hidden, 'other')}"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def short(name: Any, most: int = _LONG_NAME) -> str:
    """A name that fits a cell."""
    text = str(name)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def class_names(values: Any) -> list[str]:
    """Classes as texts; numbers that are whole without their decimals."""
    return [str(v) for v in np.asarray(values).tolist()]
