"""``sample``: new rows from a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from mixfold.cli.data import load_model
from mixfold.cli.drawing import drawer
from mixfold.cli.options import ModelArgument, QuietOption, SeedOption, TableOut
from mixfold.cli.progress import row_progress
from mixfold.cli.table_first import default_out
from mixfold.cli.tables import TableWriter, check_output

_ROWS_AT_ONCE = 100_000
_ENTRIES_AT_ONCE = 2**24  # of rows of many words


def sample(
    model_file: ModelArgument,
    out: TableOut = None,
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="How many rows.")] = 1000,
    label: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="Only rows of this class, of a model that was fitted to classes and makes rows of "
            "each: deep-factor-network, deep-belief-network, rbm.",
        ),
    ] = None,
    seed: SeedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Draw new rows that look like those the model has seen.

    Writes the model's columns and, for models with groups, [bold]component[/bold]: that of the row.
    Of a model with a target, [bold]target[/bold] instead: that of the row (several are numbered
    from 0). Of lda, [bold]topic_0[/bold], [bold]topic_1[/bold], ... instead: the shares of the
    topics. A name that a column has already gets a _ at its end.

    Models that make rows of a class (see --class) draw the class first, each equally often.

    Example: [bold]mixfold sample groups.mixfold --rows 500 --out new.csv[/bold]
    """
    import numpy as np

    out = default_out(out, model_file, "sample")
    check_output(out)
    model = load_model(model_file, out)
    draw = drawer(model, label)
    random_state = np.random.RandomState(seed)
    with TableWriter(out) as writer, row_progress("sample", rows, quiet) as advance:
        for size in _portions(
            rows, max(1, min(_ROWS_AT_ONCE, _ENTRIES_AT_ONCE // model.n_features_in_))
        ):
            writer.write(draw(size, random_state))
            advance(size)
    if not quiet:
        typer.echo(f"wrote {out} ({rows} rows)")


def _portions(rows: int, at_once: int) -> Iterator[int]:
    for first in range(0, rows, at_once):
        yield min(at_once, rows - first)
