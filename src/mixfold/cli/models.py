"""``models``: what ``mixfold fit --model`` can fit, by subject."""

from __future__ import annotations

import typer

from mixfold.cli.registry import MODELS


def models() -> None:
    """List the models that [bold]mixfold fit --model[/bold] can fit, by subject."""
    width = max(map(len, MODELS))
    for group in dict.fromkeys(entry.group for entry in MODELS.values()):
        typer.secho(group[0].upper() + group[1:], bold=True)
        for name, entry in MODELS.items():
            if entry.group == group:
                typer.echo(f"  {name:<{width}}  {entry.summary}")
    typer.echo("\nParameters of a model: --set NAME=VALUE; an unknown NAME lists them.")
