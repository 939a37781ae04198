"""Columns copied to the output in front of the results: document names, ``--keep``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixfold.cli.corpus import document_names, is_corpus
from mixfold.cli.options import split_columns

if TYPE_CHECKING:
    from mixfold.contracts import Source

# From some rows to columns of the output, as arrays of one length by name.
Task = Callable[["Source"], Mapping[str, Any]]
# The first columns of so many rows more.
Take = Callable[[int], Mapping[str, Any]]


def first_columns(source: Source, file: Path, keep: str | None, schema: Any = None) -> Take | None:
    """What gives the columns before the answers, if there are any.

    Of a table that is read through a schema these are its identifiers, unless others are named.
    """
    names = split_columns(keep, "--keep")
    if schema is not None:
        return _entries(schema, file, names)
    if names is None:
        return _documents(source)
    if is_corpus(file):
        raise typer.BadParameter(
            f"{str(file)!r} holds documents, not a table with columns; leave the option out.",
            param_hint="--keep",
        )
    from mixfold.engine.sources.passthrough_columns import Beside

    return Beside(file, names).take


def beside(task: Task, take: Take | None) -> Task:
    """The answers of ``task`` behind these columns."""
    if take is None:
        return task

    def both(piece: Source) -> Mapping[str, Any]:
        answers = task(piece)
        if not answers:
            return answers
        kept = take(len(next(iter(answers.values()))))
        if common := [name for name in kept if name in answers]:
            raise typer.BadParameter(
                f"{common[0]!r} is written anyway, by the model; leave it out.",
                param_hint="--keep",
            )
        return {**kept, **answers}

    return both


def _entries(schema: Any, file: Path, names: list[str] | None) -> Take | None:
    """Columns of a table of words, as they stand in it."""
    table = schema.read(file).table
    if names is None:
        ids = [column.name for column in schema if column.kind == "identifier"]
        names = [name for name in ids if name in table.column_names]
    if not names:
        return None
    lacking = [name for name in names if name not in table.column_names]
    if lacking:
        raise typer.BadParameter(
            f"{str(file)!r} has no column {lacking[0]!r}; it has {', '.join(table.column_names)}.",
            param_hint="--keep",
        )
    done = 0

    def take(rows: int) -> Mapping[str, Any]:
        nonlocal done
        part = table.slice(done, rows)
        done += rows
        return {name: part.column(name) for name in names}

    return take


def _documents(source: Source) -> Take | None:
    names = document_names(source)
    if names is None:
        return None
    left = iter(names)
    return lambda rows: {"document": [next(left) for _ in range(rows)]}
