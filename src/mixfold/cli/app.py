"""The program: commands, and how errors and warnings are shown."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mixfold.cli import (
    apply,
    clusters,
    demo,
    fit,
    inspect,
    measure,
    models,
    project,
    report,
    reproduce,
    sample,
    schemas,
    select,
    topics,
)
from mixfold.cli.front import ForeignFile, Mistake, check_words
from mixfold.cli.terminal import strip_controls
from mixfold.math.compilation import COMPILING, told_of_compilation

# Line breaks inside a paragraph are kept by the terminal: one string for each paragraph.
_HELP = (
    "Find groups and factors in a table, and use them: assign rows, reduce them to a few numbers, "
    "fill in missing entries, spot odd rows, draw new ones.\n\n"
    "A table is a CSV file in any dialect, Parquet, Feather, Excel, ODS, JSON lines, SPSS, Stata, "
    "SAS or npy, a folder of Parquet or CSV files, or - for the standard input; it may hold words, "
    "dates and missing entries and, of plain numbers, more rows than memory holds. Or it is texts: "
    "a folder of them, or a .txt file with one on each line. A model file holds numbers and words, "
    "no code."
)
# of which a dash is the value, and not the standard input
_TAKES_DASH = ("--na", "--sep", "--decimal")
_EPILOG = (
    "\b\nStart with mixfold demo, or with\n"
    "mixfold fit table.parquet --components 8 --out groups.mixfold\n\n"
    "Exit codes: 0 done; 1 the work failed (bad data, full disk); 2 the command is wrong."
)


class Program(TyperGroup):
    """Help and errors of the program as plain text: to import what frames them takes longer than
    to find the mistake. The help of a command has frames."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.rich_markup_mode = None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with its first paragraph, not cut off."""
        rows = []
        for name in self.list_commands(ctx):
            text = getattr(self.get_command(ctx, name), "help", None) or ""
            paragraph = " ".join(text.split("\n\n")[0].split())
            rows.append((name, re.sub(r"\[/?\w+\]", "", paragraph)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    name="mixfold",
    cls=Program,
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    fit.fit,
    models.models,
    schemas.columns,
    select.select,
    clusters.cluster,
    apply.predict,
    apply.score,
    apply.impute,
    measure.measure,
    project.transform,
    project.reconstruct,
    sample.sample,
    topics.topics,
):
    app.command()(_command)
app.command("inspect")(inspect.inspect_model)
app.command("report")(report.report)
app.command("demo")(demo.demo)
app.command("reproduce", context_settings=reproduce.SETTINGS)(reproduce.reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("mixfold")
        except PackageNotFoundError:
            number = "unknown: run from a source tree that is not installed"
        typer.echo(f"mixfold {number}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where in the code an error arose (anywhere in a line)."),
    ] = False,
) -> None:
    pass


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after the program's name; those of the process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    # People add --debug at the end of the line that just failed; the parser wants it in front.
    words = ["--debug"] * debug + [word for word in words if word != "--debug"]
    with tempfile.TemporaryDirectory() as folder:
        _run(_with_standard_input(words, Path(folder)), debug)


def _with_standard_input(words: list[str], folder: Path) -> list[str]:
    """The words with a file of what comes in for ``-``."""
    places = [
        i for i, word in enumerate(words)
        if word == "-" and i > 0 and words[i - 1] not in _TAKES_DASH
    ]  # fmt: skip
    if not places:
        return words
    spooled = folder / "stdin"
    with spooled.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return [str(spooled) if i in places else word for i, word in enumerate(words)]


def _run(words: list[str], debug: bool) -> None:
    try:
        check_words(app, words)
    except Mistake as mistake:
        command = mistake.usage.partition(" ")[0]
        of = "mixfold" if command.startswith("[") else f"mixfold {command}"
        text = f"Usage: mixfold {mistake.usage}\nTry '{of} -h' for help.\n\nError: {mistake}"
        typer.echo(strip_controls(text), err=True)
        sys.exit(2)
    except ForeignFile as error:
        if debug:
            raise
        typer.echo(strip_controls(f"error: {error}"), err=True)
        sys.exit(1)
    run_app(app, "mixfold", words, debug)


def run_app(
    program: typer.Typer, name: str, words: Sequence[str] | None = None, debug: bool = False
) -> None:
    """Run a program of ours: an error is a readable paragraph and exit code 1, a warning a line.

    Called by ``main`` and by ``python -m papers``.

    Parameters
    ----------
    program : Typer
    name : str
        As it stands in its help.
    words : sequence of str, optional
        The words after its name; those of the process by default.
    debug : bool, default=False
        Show where in the code an error arose.
    """
    with _plain_warnings(), told_of_compilation(_compilation_line(words)):
        try:
            program(words, prog_name=name)
        except Exception as error:
            if debug:
                raise
            typer.echo(strip_controls(_describe(error)), err=True)
            sys.exit(1)


def _compilation_line(words: Sequence[str] | None) -> Callable[[], None]:
    """Writes a line in a terminal, once, unless the command is to be quiet."""
    given = sys.argv[1:] if words is None else words
    silent = bool({"--quiet", "-q"} & set(given)) or not sys.stderr.isatty()

    def tell() -> None:
        nonlocal silent
        if not silent:
            silent = True
            typer.echo(COMPILING, err=True)

    return tell


def _describe(error: Exception) -> str:
    """One readable paragraph; errors that a user cannot have caused say so."""
    from numpy.linalg import LinAlgError  # a ValueError, but never a user's mistake

    text = str(error).strip() or type(error).__name__
    ours = isinstance(error, LinAlgError)
    if isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError) and not ours:
        return f"error: {text}"
    return (
        f"error: {type(error).__name__}: {text}\n"
        "This looks like a defect of mixfold. Please report it with the output of --debug."
    )


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """A warning is one line for a user of the command, not a place in our code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        # an attribute is of no use in a terminal
        text = str(message).replace("see events_", "mixfold report lists them all")
        typer.echo(strip_controls(f"warning: {text}"), err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
