"""The command ``python -m papers``: a published table run again, ours beside the printed values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.cli.app import run_app
from mixfold.cli.options import QuietOption
from mixfold.cli.progress import step_progress
from papers.frame.registry import DATA_VARIABLE, EXPERIMENTS, find_entry

if TYPE_CHECKING:
    from papers.frame.experiment import Experiment
    from papers.frame.run import Outcome, Report

Step = Callable[[int, int, str], None]
_COLOURS = {"reproduced": "green", "better": "green", "differs": "red", "not judged": ""}

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
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
            help="The folder that holds the table's data files; without it, what scikit-learn has "
            "or can download.",
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
    every: Annotated[
        bool, typer.Option("--all", help="All tables, and a page about them: reproduced.md.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="With --all: pass over tables with a verdict of this code and seed."
        ),
    ] = False,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Keep verdicts in papers/verdicts.json and the pages of docs, not in --out.",
        ),
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Write docs/reproduced.md and docs/sources.md and stop.")
    ] = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="Name the tables with their verdicts and stop.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a published table again, or all of them, and put ours beside the printed values.

    Prints the table, and writes it as Markdown, CSV and a picture, with the seed, the versions of
    packages and the time it took. A value that differs is a result, not a failure of the command.

    With --all a table whose data are not there is passed over, with the reason, and verdicts.json
    keeps each verdict as soon as it is there: with --resume a run that was broken off goes on.
    Without --data some files are downloaded from OpenML, once (mnist, optdigits, vehicle, yeast).

    Example: [bold]python -m papers mfm-ppca-faces --data DIR --quick[/bold]
    """
    shelf = Shelf.of_repository() if record else Shelf(out / "verdicts.json", out / "reproduced.md")
    if show_list:
        _print_list()
    elif page:
        Shelf.of_repository().write_page()
    elif every:
        _run_all(name, data, out, quick, seed, quiet, shelf, resume)
    else:
        _run_one(_find(name), data, out, quick, seed, quiet, shelf if record else None)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where verdicts are kept, the page about them, and the page of the sources."""

    records: Path
    page: Path
    sources: Path | None = None

    @classmethod
    def of_repository(cls) -> Shelf:
        from papers.frame import verdicts

        return cls(verdicts.RECORDS, verdicts.PAGE, verdicts.SOURCES_PAGE)

    def keep(self, report: Report) -> None:
        """Keep the verdict of a run, and write the page again."""
        from papers.frame import verdicts

        name = report.experiment.name
        verdicts.keep_record(verdicts.make_record(report, EXPERIMENTS[name]), self.records)
        self.write_page()

    def write_page(self) -> None:
        from papers.frame import verdicts
        from papers.frame.writing import write_whole

        records = verdicts.load_records(self.records)
        write_whole(self.page, verdicts.format_page(EXPERIMENTS, records).encode())
        if self.sources is not None:
            text = self.sources.read_text(encoding="utf-8")
            write_whole(self.sources, verdicts.fill_sources(text, records).encode())

    def list_done(self, quick: bool, seed: int) -> list[str]:
        """Tables that have a verdict of this code."""
        from papers.frame import verdicts

        kept = verdicts.load_records(self.records)
        entries = EXPERIMENTS.items()
        return [name for name, e in entries if verdicts.is_done(kept, name, e, quick, seed)]


def _run_one(
    experiment: Experiment,
    data: Path | None,
    out: Path,
    quick: bool,
    seed: int,
    quiet: bool,
    shelf: Shelf | None,
) -> None:
    from papers.frame import run
    from papers.frame.report import write_report

    with step_progress(quiet) as progress:
        report = run.reproduce(experiment, data, quick=quick, seed=seed, progress=progress)
    paths = write_report(report, out)
    if shelf is not None:
        shelf.keep(report)
    if not quiet:
        _print_report(report)
        for path in paths:
            typer.echo(f"wrote {path}")


def _run_all(
    name: str | None,
    data: Path | None,
    out: Path,
    quick: bool,
    seed: int,
    quiet: bool,
    shelf: Shelf,
    resume: bool,
) -> None:
    from papers.frame.report import write_report
    from papers.frame.run import reproduce_all

    if name is not None:
        raise typer.BadParameter(f"--all runs every table; leave {name!r} out, or --all.",
                                 param_hint="NAME")  # fmt: skip
    done = shelf.list_done(quick, seed) if resume else []
    wanted = {each: entry for each, entry in EXPERIMENTS.items() if each not in done}
    if done and not quiet:
        typer.echo(f"{len(done)} of {len(EXPERIMENTS)} tables have a verdict of this code")
    failed = False
    with step_progress(quiet) as progress:
        for outcome in reproduce_all(wanted, data, quick=quick, seed=seed,
                                     watch=partial(_name_steps, progress)):  # fmt: skip
            failed |= outcome.failed
            if outcome.report is not None:
                write_report(outcome.report, out)
                shelf.keep(outcome.report)
            if not quiet:
                typer.echo(_describe(outcome))
    shelf.write_page()
    if not quiet:
        typer.echo(f"wrote {shelf.page}")
    if failed:
        raise typer.Exit(1)


def _name_steps(progress: Step, name: str) -> Step:
    """A progress that says of which table its steps are."""
    return lambda done, total, label: progress(done, total, f"{name}: {label}")


def _describe(outcome: Outcome) -> str:
    """One line about a table that was run, or was not."""
    if outcome.report is None:
        word = "failed" if outcome.failed else "not run"
        return f"{outcome.name}: {word}: {outcome.reason}"
    table = outcome.report.table
    judged = [text for column in table.columns if (text := table.judged(column))]
    holding = sum(check.holds for check in table.checks)
    parts = [*judged, f"{holding} of {len(table.checks)} claims hold"]
    return f"{outcome.name}: {'; '.join(parts)} ({outcome.report.seconds:.0f} s)"


def _find(name: str | None) -> Experiment:
    if name is None:
        raise typer.BadParameter(
            f"name a table, or give --all or --list. Tables: {', '.join(EXPERIMENTS)}.",
            param_hint="NAME",
        )
    try:
        entry = find_entry(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    return entry.load()


def _print_list() -> None:
    from papers.frame.verdicts import choose_records, load_records

    width = max(map(len, EXPERIMENTS))
    records = choose_records(load_records())
    for name, entry in EXPERIMENTS.items():
        verdict = records[name].summarise() if name in records else "no verdict yet"
        typer.echo(f"{name:<{width}}  {entry.summary}\n{'':<{width}}  {verdict}")


def _print_report(report: Report) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    console.print(_draw_grid(report))
    for column in report.table.columns:
        if judged := report.table.judged(column):
            rule = column.own or f"{column.rule()} of the published"
            console.print(f"{column.name}: {judged} ({rule})")
    for check in report.table.checks:
        word, colour = ("holds", "green") if check.holds else ("does not hold", "red")
        console.print(Text.assemble(f"{check.claim}: ", (word, colour), f" ({check.detail})"))
    for note in report.table.notes:
        console.print(f"! {note}")
    console.print(f"seed {report.seed}, {report.seconds:.1f} s, {report.made_with}")


def _draw_grid(report: Report) -> Any:
    from rich.table import Table
    from rich.text import Text

    from papers.frame.report import format_cell

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
                Text(
                    format_cell(column, cell), style=_COLOURS[column.verdict(cell)] if cell else ""
                )
                for column, cell in cells
            ),
        )
    grid.caption = "ours ± spread over repeats (published)"
    return grid


def main() -> None:
    """Run the command line and end the process with its exit code."""
    words = [word for word in sys.argv[1:] if word != "--debug"]
    run_app(app, "python -m papers", words, debug="--debug" in sys.argv[1:])


if __name__ == "__main__":
    main()
