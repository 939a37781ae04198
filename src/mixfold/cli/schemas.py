"""Tables of words, dates and numbers as people write them: read through a schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mixfold.cli.corpus import is_corpus
from mixfold.cli.options import DataArgument, split_columns

# files that are read as numbers at once, if they hold nothing else
_OF_NUMBERS = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".pq")

SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", help="What the columns are, as [bold]mixfold columns[/bold] wrote."),
]
KindOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="What a column is: number, count, yes/no, category, ordered, cyclic, date; or text "
        "and identifier, which are set aside. May be repeated.",
    ),
]
DropOption = Annotated[
    str | None, typer.Option("--drop", metavar="COLUMNS", help="Columns to leave out: a,b.")
]


def columns(
    file: DataArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write it to a file that can be edited: .json."),
    ] = None,
    kind: KindOption = None,
    drop: DropOption = None,
) -> None:
    """Say what the columns of a table are taken for, and why.

    The table may be CSV in any dialect, Excel, ODS, JSON lines, Parquet, Feather, SPSS, Stata, SAS.

    Example: [bold]mixfold columns people.xlsx --out people.json[/bold]
    """
    from mixfold.cli.tables import check_not_input, check_output
    from mixfold.schema import Schema

    if out is not None:
        check_output(out, (".json",))
        check_not_input(out, [file])
    schema = change_schema(Schema.infer(file), kind, drop)
    typer.echo(str(schema))
    if out is not None:
        schema.save(out)
        typer.echo(f"wrote {out}")


def schema_of(
    file: Path,
    columns: str | None,
    given: Path | None,
    kind: Sequence[str] | None,
    drop: str | None,
) -> Any:
    """What the columns of a file are; None of documents, folders and tables of plain numbers."""
    from mixfold.schema import Schema

    asked = given is not None or bool(kind) or drop is not None
    if asked and columns is not None:
        raise typer.BadParameter(
            "is for tables of numbers; leave it out beside --schema, --kind and --drop.",
            param_hint="--columns",
        )
    if not asked and (columns is not None or is_corpus(file) or _holds_numbers(file)):
        return None
    schema = Schema.infer(file) if given is None else Schema.load(given)
    return change_schema(schema, kind, drop)


def _holds_numbers(file: Path) -> bool:
    """Whether a file is read as it is: all columns of its first rows are plain numbers."""
    if file.is_dir() or not file.exists():
        return True  # which is told of where it is opened
    if file.suffix.lower() not in _OF_NUMBERS:
        return False
    from mixfold.engine.sources import open_source

    try:
        open_source(file)
    except ValueError:
        return False
    return True


def change_schema(schema: Any, kind: Sequence[str] | None, drop: str | None) -> Any:
    """The schema with what the options say of some columns."""
    for word in kind or ():
        name, equals, wanted = word.rpartition("=")
        if not (equals and name and wanted):
            raise typer.BadParameter(f"write COLUMN=KIND; got {word!r}.", param_hint="--kind")
        _change(schema, name, "--kind", kind=wanted)
    for name in split_columns(drop, "--drop") or ():
        _change(schema, name, "--drop", used=False)
    return schema


def _change(schema: Any, name: str, option: str, **what: Any) -> None:
    try:
        schema.set(name, **what)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def print_schema(schema: Any) -> None:
    """What the columns were taken for, and how to say something else."""
    typer.echo(str(schema))
    typer.echo("Not so? Say --kind COLUMN=KIND or --drop COLUMN.")


def impute_words(model: Any, file: Path, method: str, random_state: Any) -> dict[str, Any]:
    """The whole table, its missing entries filled, by name of the column."""
    from mixfold.schema.readers import read_table

    complete = model.impute(read_table(file).table, method=method, random_state=random_state)
    return dict(zip(complete.column_names, complete.columns, strict=True))
