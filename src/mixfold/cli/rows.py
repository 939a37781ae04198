"""A task done for the rows of a file, a piece at a time, and its answers written in row order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixfold.cli.data import open_for, pieces
from mixfold.cli.keep import Task, beside, first_columns
from mixfold.cli.options import split_columns
from mixfold.cli.progress import row_progress
from mixfold.cli.tables import TableWriter, check_not_input, check_output

if TYPE_CHECKING:
    from mixfold.contracts import Source


def write_rows(
    label: str,
    model: Any,
    file: Path,
    out: Path | None,
    columns: str | None,
    task: Task,
    quiet: bool,
    encoding: str | None = None,
    then: Callable[[Source], None] | None = None,
    keep: str | None = None,
) -> int:
    """Write ``task(piece)`` for each piece of the file, in row order; return the number of rows.

    If each row is a file, ``document`` names it. ``then`` is called with all rows in the end.
    ``keep`` names columns of the file that are written, too.
    """
    names = split_columns(columns)
    if out is not None:
        check_output(out)
        check_not_input(out, [file])
    source = open_for(model, file, names, encoding)
    task = beside(task, first_columns(source, file, keep, getattr(model, "schema_", None)))
    if out is None:
        rows = _each_piece(label, source, task, None, quiet)
    else:
        with TableWriter(out) as writer:
            rows = _each_piece(label, source, task, writer, quiet)
    if then is not None:
        then(source)
    if out is not None and not quiet:
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
            size = len(next(iter(table.values())))
            if writer is not None:
                writer.write(table)
            rows += size
            advance(size)
    if rows == 0:
        raise ValueError("The input has no rows; there is nothing to do.")
    return rows
