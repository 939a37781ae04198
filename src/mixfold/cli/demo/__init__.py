"""``demo``: a file of customers, and tables that come with scikit-learn, fitted and reported."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            exists=True,
            file_okay=False,
            writable=True,
            help="Where pictures and the report go.",
        ),
    ] = Path("."),
) -> None:
    """See it work: four built-in tables, what was found in them, pictures, and reports.

    A file of customers with names, money and dates; groups of tumours and their number, in a table
    with missing entries; wines of which few are labelled; handwritten digits. Takes a minute or two
    and gives the same result every time.
    """
    from rich.console import Console

    from mixfold.cli.demo import customers, digits, tumours, wines

    console = Console(highlight=False)
    start = time.perf_counter()
    written: list[Path] = []
    for study in (customers, tumours, wines, digits):
        written += study.run(console, folder)
        console.print()
    console.print(f"Done in {time.perf_counter() - start:.0f} s. Pictures:")
    _list(path for path in written if path.suffix == ".png")
    console.print("And pages to open in a browser, the reports of the customers and the tumours:")
    _list(path for path in written if path.suffix == ".html")
    typer.echo(_NEXT)  # as it is: a line that is broken cannot be copied


# what to type next; a path may have to be changed, nothing else
_NEXT = """Now a table of your own, as it is:
  mixfold select table.csv --out best.mixfold --report report.html"""


def _list(paths: Iterable[Path]) -> None:
    for path in paths:
        typer.echo(f"  {path.resolve()}")
