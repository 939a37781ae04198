"""``reproduce``: a published table run again, ours beside the printed values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.cli.options import QuietOption
from mixfold.cli.progress import step_progress
from mixfold.experiments.registry import DATA_VARIABLE, EXPERIMENTS, find_entry

if TYPE_CHECKING:
    from mixfold.experiments.experiment import Experiment
    from mixfold.experiments.frame import Report

_COLOURS = {"agrees": "green", "differs": "red", "not judged": ""}


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The table; --list names them all.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            envvar=DATA_VARIABLE,
            help="The folder that holds the table's data files.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer rows, restarts and repeats: seconds.")
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            exists=True,
            file_okay=False,
            writable=True,
            help="Where NAME.md, NAME.csv and NAME.png go.",
        ),
    ] = Path("."),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random choice.")] = 0,
    show_list: Annotated[bool, typer.Option("--list", help="Name the tables and stop.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a published table again and put ours beside the printed values.

    Prints the table, and writes it as Markdown, CSV and a picture, with the seed, the versions of
    packages and the time it took. A value that differs is a result, not a failure of the command.

    Example: [bold]mixfold reproduce mfm-ppca-faces --data DIR --quick[/bold]
    """
    if show_list:
        _print_list()
        return
    experiment = _find(name)
    from mixfold.experiments import frame
    from mixfold.experiments.files import write_report

    with step_progress(quiet) as progress:
        report = frame.reproduce(experiment, data, quick=quick, seed=seed, progress=progress)
    paths = write_report(report, out)
    if not quiet:
        _print_report(report)
        for path in paths:
            typer.echo(f"wrote {path}")


def _find(name: str | None) -> Experiment:
    if name is None:
        raise typer.BadParameter(
            f"name a table, or give --list. Tables: {', '.join(EXPERIMENTS)}.", param_hint="NAME"
        )
    try:
        entry = find_entry(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    return entry.load()


def _print_list() -> None:
    width = max(map(len, EXPERIMENTS))
    for name, entry in EXPERIMENTS.items():
        typer.echo(f"{name:<{width}}  {entry.summary}")


def _print_report(report: Report) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    console.print(_grid(report))
    for column in report.table.columns:
        agreeing, judged = report.table.count(column)
        if judged:
            console.print(f"{column.name}: {agreeing} of {judged} {column.rule()} of the published")
    for check in report.table.checks:
        word, colour = ("holds", "green") if check.holds else ("does not hold", "red")
        console.print(Text.assemble(f"{check.claim}: ", (word, colour), f" ({check.detail})"))
    for note in report.table.notes:
        console.print(f"! {note}")
    console.print(f"seed {report.seed}, {report.seconds:.1f} s, {report.made_with}")


def _grid(report: Report) -> Any:
    from rich.table import Table
    from rich.text import Text

    from mixfold.experiments.markdown import cell_text

    table = report.table
    quick = ", quick variant" if report.quick else ""
    grid = Table("", title=f"{report.experiment.title}\n{report.origin}{quick}")
    for column in table.columns:
        grid.add_column(Text(column.heading), justify="right")
    for row in table.rows:
        cells = [(column, table.cell(row, column.name)) for column in table.columns]
        grid.add_row(
            Text(row),
            *(
                Text(cell_text(column, cell), style=_COLOURS[column.verdict(cell)] if cell else "")
                for column, cell in cells
            ),
        )
    grid.caption = "ours ± spread over repeats (published)"
    return grid
