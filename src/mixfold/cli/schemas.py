"""Tables of words, dates and numbers as people write them: read through a schema."""

from __future__ import annotations

import re
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
MissingOption = Annotated[
    str | None,
    typer.Option("--na", metavar="WORDS", help="What stands for missing entries: none,-1."),
]
SepOption = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHARACTER", help="What parts the entries of a text file."),
]
DecimalOption = Annotated[
    str | None,
    typer.Option("--decimal", metavar="CHARACTER", help="The decimal mark: a point or a comma."),
]
EncodingOfTable = Annotated[
    str | None, typer.Option("--encoding", help="That of a text file, as cp1252.")
]
_TABS = {"tab": "\t", "\\t": "\t"}


def columns(
    file: DataArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write it to a file that can be edited: .json."),
    ] = None,
    kind: KindOption = None,
    drop: DropOption = None,
    na: MissingOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOfTable = None,
) -> None:
    """Say what the columns of a table are taken for, and why.

    The table may be CSV in any dialect, Excel, ODS, JSON lines, Parquet, Feather, SPSS, Stata, SAS.

    Example: [bold]mixfold columns people.xlsx --out people.json[/bold]
    """
    from mixfold.cli.tables import check_not_input, check_output

    if out is not None:
        check_output(out, (".json",))
        check_not_input(out, [file])
    schema = change_schema(infer(file, na, sep, decimal, encoding), kind, drop)
    typer.echo(in_options(str(schema)))
    if out is not None:
        schema.save(out)
        typer.echo(f"wrote {out}")


def schema_of(
    file: Path,
    columns: str | None,
    given: Path | None,
    kind: Sequence[str] | None,
    drop: str | None,
    reading: Sequence[str | None] = (),
) -> Any:
    """What the columns of a file are; None of documents, folders and tables of plain numbers.

    ``reading`` is what was said by --na, --sep, --decimal and --encoding.
    """
    from mixfold.schema import Schema

    said = any(word is not None for word in reading)
    asked = given is not None or bool(kind) or drop is not None or said
    if asked and columns is not None:
        raise typer.BadParameter(
            "is for tables of numbers; leave it out beside --schema, --kind, --drop, --na, --sep, "
            "--decimal and --encoding.",
            param_hint="--columns",
        )
    if given is not None and said:
        raise typer.BadParameter(
            "says how the table is read; leave out --na, --sep, --decimal and --encoding.",
            param_hint="--schema",
        )
    if not asked and (columns is not None or is_corpus(file) or _holds_numbers(file)):
        return None
    schema = infer(file, *reading) if given is None else Schema.load(given)
    return change_schema(schema, kind, drop)


def infer(
    file: Path,
    na: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Any:
    """The schema of a file, read as the options say."""
    from mixfold.schema import Schema

    words = [word.strip() for word in na.split(",")] if na is not None else []
    sep = _TABS.get(sep.lower(), sep) if sep is not None else None
    return Schema.infer(file, sep=sep, decimal=decimal, encoding=encoding, missing=words)


def in_options(text: str) -> str:
    """Remedies as options of a command rather than as calls."""
    return re.sub(r"schema\.set\('(.*?)', kind='(\w+)'\)", r"--kind '\1=\2'", text)


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


def print_schema(schema: Any, changeable: bool = True) -> None:
    """What the columns were taken for, and how to say something else."""
    typer.echo(in_options(str(schema)))
    if changeable:
        typer.echo("Not so? Say --kind COLUMN=KIND or --drop COLUMN.")


def impute_words(model: Any, file: Path, method: str, random_state: Any) -> dict[str, Any]:
    """The whole table, its missing entries filled, by name of the column."""
    table = model.schema_.read(file).table
    complete = model.impute(table, method=method, random_state=random_state)
    return dict(zip(complete.column_names, complete.columns, strict=True))
