"""Parse lists of values: ``1:10``, ``2,4,8``, ``covariance_type=full,diag``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import typer

from mixfold.cli.settings import parse_settings, parse_value

_OPEN, _CLOSE, _QUOTES = "([{", ")]}", "'\""


def parse_numbers(text: str, option: str, least: int) -> list[int]:
    """Whole numbers from ``first:last`` (both included), ``first:last:step`` or a list.

    Examples
    --------
    >>> parse_numbers("1:4", "--components", 1), parse_numbers("2,4,8", "--components", 1)
    ([1, 2, 3, 4], [2, 4, 8])
    """
    numbers: list[int] = []
    for word in text.split(","):
        parts = word.strip().split(":")
        if not all(re.fullmatch(r"\d+", part) for part in parts) or len(parts) > 3:
            numbers = []
            break
        first, last, step = (*map(int, parts), *(int(parts[0]), 1)[len(parts) - 1 :])
        numbers += range(first, last + 1, step) if step else []
    if not numbers or min(numbers) < least:
        raise typer.BadParameter(
            f"write numbers from {least} on, as 1:10, 2,4,8 or 5; got {text!r}.", param_hint=option
        )
    return sorted(set(numbers))


def split_values(text: str) -> list[Any]:
    """Values separated by commas, except those within brackets or quotes.

    Examples
    --------
    >>> split_values("full,diag"), split_values("1e-3, none"), split_values("[1, 2],3")
    (['full', 'diag'], [0.001, None], [[1, 2], 3])
    """
    words, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        else:
            depth += (sign in _OPEN) - (sign in _CLOSE)
        if sign == "," and depth == 0 and not quote:
            words.append("")
        else:
            words[-1] += sign
    return [parse_value(word.strip()) for word in words]


def parse_grid(assignments: Iterable[str], valid: Iterable[str]) -> dict[str, list[Any]]:
    """Values to try from ``name=value,value`` words; mistakes are those of ``parse_settings``."""
    words = list(assignments)
    parse_settings(words, valid)
    grid = {}
    for word in words:
        name, _, values = word.partition("=")
        grid[name.strip()] = split_values(values)
        if "" in grid[name.strip()]:
            raise typer.BadParameter(
                f"write name=value,value with a value between commas; got {word!r}.",
                param_hint="--set",
            )
    return grid
