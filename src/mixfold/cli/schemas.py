"""Tables of words, dates and numbers as people write them: read through a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mixfold.cli.corpus import is_corpus

# files that are read as numbers at once, if they hold nothing else
_OF_NUMBERS = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".pq")


def schema_of(file: Path, columns: list[str] | None) -> Any:
    """What the columns of a file are; None of documents, folders and tables of plain numbers."""
    if columns is not None or is_corpus(file) or file.is_dir():
        return None
    if any(suffix.lower() in _OF_NUMBERS for suffix in file.suffixes[-1:]):
        from mixfold.engine.sources import open_source

        try:
            open_source(file)
        except ValueError:
            pass
        else:
            return None
    from mixfold.schema import Schema

    return Schema.infer(file)


def print_schema(schema: Any) -> None:
    """What the columns were taken for, and how to say something else."""
    typer.echo(str(schema))
    typer.echo("To change it: mixfold columns FILE --out schema.json, edit, --schema schema.json")


def impute_words(model: Any, file: Path, method: str, random_state: Any) -> dict[str, Any]:
    """The whole table, its missing entries filled, by name of the column."""
    from mixfold.schema.readers import read_table

    complete = model.impute(read_table(file).table, method=method, random_state=random_state)
    return dict(zip(complete.column_names, complete.columns, strict=True))
