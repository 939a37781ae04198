"""What a search may write: its best model, a picture, a table, a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from mixfold.cli.tables import FORMATS, check_not_input, check_output

# writes something of a search to a path
Writer = Callable[[Any, Path], None]
_PICTURES = (".png", ".pdf", ".svg")
_PAGES = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class SearchOutputs:
    """Paths to write to, each None if it is not wanted; ``file`` holds the rows."""

    file: Path
    out: Path | None
    plot: Path | None
    table: Path | None
    page: Path | None

    def check(self) -> None:
        """A usage error for names that do not do, before any work is done."""
        for option, path, suffixes in (
            ("--out", self.out, ()),
            ("--plot", self.plot, _PICTURES),
            ("--table", self.table, FORMATS),
            ("--report", self.page, _PAGES),
        ):
            if path is not None:
                _check(option, path, suffixes, self.file)

    def write(self, search: Any, X: Any, weight: Any, quiet: bool, y: Any = None) -> None:
        """Everything that is wanted, of a search of rows ``X`` with weights."""
        from mixfold.cli.choice import draw_search, write_table

        self.write_by(search, draw_search, write_table, X, weight, quiet, y)

    def write_by(
        self,
        search: Any,
        draw: Writer,
        tabulate: Writer,
        X: Any,
        weight: Any,
        quiet: bool,
        y: Any = None,
    ) -> None:
        """The same with the functions that draw the picture and write the table."""
        for path, write in (
            (self.out, search.save),
            (self.plot, partial(draw, search)),
            (self.table, partial(tabulate, search)),
            (self.page, partial(self._report, search, X, weight, y)),
        ):
            if path is not None:
                write(path)
                if not quiet:
                    typer.echo(f"wrote {path}")

    def _report(self, search: Any, X: Any, weight: Any, y: Any, path: Path) -> None:
        """A page with the comparison, which a file of the best model does not have."""
        from mixfold.report import write_report

        write_report(search, X, y, path=path, sample_weight=weight, origin={"data": self.file.name})


def _check(option: str, path: Path, suffixes: tuple[str, ...], data: Path) -> None:
    try:
        check_output(path, suffixes)
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint=option) from None
    check_not_input(path, [data], option)
