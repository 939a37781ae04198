"""The models of the catalogue that the command line fits, by the name of their command."""

from __future__ import annotations

import typer

from mixfold.catalogue import CATALOGUE, Entry

MODELS = {entry.command: entry for entry in CATALOGUE if entry.command}


def find_model(name: str) -> Entry:
    """The entry called ``name``; a usage error that lists the names otherwise."""
    try:
        return MODELS[name]
    except KeyError:
        raise typer.BadParameter(
            f"there is no model {name!r}; choose one of: {', '.join(MODELS)}.",
            param_hint="--model",
        ) from None
