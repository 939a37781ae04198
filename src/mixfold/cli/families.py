"""``--family``: which components a mixture has, for all columns or for some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from mixfold.catalogue import Entry

_HINT = "--family"

FamilyOption = Annotated[
    list[str] | None,
    typer.Option(
        _HINT,
        metavar="NAME[=COLUMNS]",
        help="Of mixture: poisson, full=height.",
    ),
]


def check_family(model: str, entry: Entry, family: Sequence[str] | None) -> None:
    """A usage error if a family is asked of a model that has its own."""
    if family and not entry.family:
        raise typer.BadParameter(
            f"{model} has its own family; use --model mixture.", param_hint=_HINT
        )


def parse_families(words: Sequence[str]) -> str | dict[str, list[str | int]]:
    """A name, or names with their columns, which are numbers or names.

    Examples
    --------
    >>> parse_families(["poisson"])
    'poisson'
    >>> parse_families(["full=height,weight", "poisson=2"])
    {'full': ['height', 'weight'], 'poisson': [2]}
    """
    if len(words) == 1 and "=" not in words[0]:
        return words[0].strip()
    families: dict[str, list[str | int]] = {}
    for word in words:
        name, equals, columns = (part.strip() for part in word.partition("="))
        if not (name and equals and columns):
            raise typer.BadParameter(
                f"of several families each needs its columns, as in poisson=visits; got {word!r}.",
                param_hint=_HINT,
            )
        if name in families:
            raise typer.BadParameter(
                f"{name!r} is given twice; list its columns together.", param_hint=_HINT
            )
        families[name] = [_column(text.strip()) for text in columns.split(",")]
    return families


def _column(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def family_parameter(words: Sequence[str] | None) -> Any:
    """What the option gives to the estimator; None if it was not used."""
    return parse_families(words) if words else None
