"""A task done for the rows of a file, a piece at a time, and its answers written in row order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from mixfold.cli.data import open_for, pieces
from mixfold.cli.options import split_columns
from mixfold.cli.progress import row_progress
from mixfold.cli.tables import TableWriter, check_output
from mixfold.contracts import Source

# From some rows to columns of the output, as arrays of one length by name.
Task = Callable[[Source], Mapping[str, Any]]


def write_rows(
    label: str,
    model: Any,
    file: Path,
    out: Path | None,
    columns: str | None,
    task: Task,
    quiet: bool,
) -> int:
    """Write ``task(piece)`` for each piece of the file, in row order; return the number of rows."""
    names = split_columns(columns)
    if out is None:
        return _each_piece(label, open_for(model, file, names), task, None, quiet)
    check_output(out)
    if out.resolve() == file.resolve() or out.resolve().parent == file.resolve():
        raise typer.BadParameter(
            f"{out} would overwrite, or lie within, the data it is made from; choose another file.",
            param_hint="--out",
        )
    source = open_for(model, file, names)
    with TableWriter(out) as writer:
        rows = _each_piece(label, source, task, writer, quiet)
    if not quiet:
        typer.echo(f"wrote {out} ({rows} rows)")
    return rows


def _each_piece(
    label: str,
    source: Source,
    task: Task,
    writer: TableWriter | None,
    quiet: bool,
) -> int:
    rows = 0
    with row_progress(label, source.n_samples, quiet) as advance:
        for piece in pieces(source):
            table = task(piece)
            if not table:
                raise ValueError("The model has no factors; there is nothing to write.")
            if writer is not None:
                writer.write(table)
            size = len(next(iter(table.values())))
            rows += size
            advance(size)
    if rows == 0:
        raise ValueError("The input has no rows; there is nothing to do.")
    return rows
