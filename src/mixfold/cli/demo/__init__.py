"""``demo``: two tables that come with scikit-learn, clustered and drawn."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder", exists=True, file_okay=False, writable=True, help="Where pictures go."
        ),
    ] = Path("."),
) -> None:
    """See it work: fit mixtures to two built-in tables, print what was found, draw two pictures.

    Takes less than a minute and gives the same result every time.
    """
    from rich.console import Console

    from mixfold.cli.demo import digits, tumours

    console = Console(highlight=False)
    start = time.perf_counter()
    written = []
    for study in (tumours, digits):
        written.append(study.run(console, folder))
        console.print()
    console.print(f"Done in {time.perf_counter() - start:.0f} s. Pictures:")
    for path in written:
        typer.echo(f"  {path.resolve()}")
