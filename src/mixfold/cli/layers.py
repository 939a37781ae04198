"""Networks on the command line: ``--layers``, and a table of their layers."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from mixfold.catalogue import Entry
from mixfold.cli.registry import MODELS

_HINT = "--layers"
LayersOption = Annotated[
    str | None,
    typer.Option(
        _HINT,
        metavar="N,N",
        help="Units of each layer, as 100,50.",
    ),
]


def parse_layers(text: str | None) -> tuple[int, ...] | None:
    """Sizes of layers from ``100,50``.

    Examples
    --------
    >>> parse_layers("500, 500,2000"), parse_layers("40"), parse_layers(None)
    ((500, 500, 2000), (40,), None)
    """
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(r"0*[1-9]\d*", word) for word in words):
        raise typer.BadParameter(
            f"write whole numbers from 1 on with commas between them, as 100,50; got {text!r}.",
            param_hint=_HINT,
        )
    return tuple(map(int, words))


def check_layers(model: str, entry: Entry, components: int | None, layers: str | None) -> None:
    """A usage error where a stack is sized as a single layer, or the other way round."""
    if layers is not None and not entry.layers:
        able = ", ".join(name for name, other in MODELS.items() if other.layers)
        raise typer.BadParameter(f"{model} is no stack; it is for: {able}.", param_hint=_HINT)
    if components is not None and entry.layers:
        raise typer.BadParameter(
            f"{model} is a stack: give the units of each layer with --layers, for example "
            f"--layers {components},{max(1, components // 2)}.",
            param_hint="--components",
        )
