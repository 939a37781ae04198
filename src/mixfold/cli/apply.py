"""``predict``, ``score`` and ``impute``: a model applied to a table, a piece at a time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.cli.axes import has_axes
from mixfold.cli.data import feature_names, load_model, require
from mixfold.cli.options import (
    ColumnsOption,
    DataArgument,
    KeepOption,
    ModelArgument,
    ModelOrTable,
    OptionalData,
    QuietOption,
    SeedOption,
    TableOut,
)
from mixfold.cli.outputs import has_target, predict_columns
from mixfold.cli.rows import write_rows
from mixfold.cli.schemas import impute_words
from mixfold.cli.table_first import model_and_rows
from mixfold.cli.tables import TableWriter, check_not_input, check_output
from mixfold.cli.texts import EncodingOption
from mixfold.cli.topic_rows import score_documents
from mixfold.cli.topics import is_topic_model

if TYPE_CHECKING:
    from mixfold.contracts import Source

# for the oddness of an entry
_CELL_DRAWS = 500


class Fill(StrEnum):
    """What stands in for a missing entry."""

    mean = "mean"
    draw = "draw"


def predict(
    model_file: ModelOrTable,
    file: OptionalData = None,
    out: TableOut = None,
    columns: ColumnsOption = None,
    keep: KeepOption = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba", help="Add one column per component, or class: the probability of each."
        ),
    ] = False,
    encoding: EncodingOption = None,
    quiet: QuietOption = False,
) -> None:
    """Predict the group of each row, or its target, with probabilities.

    Writes the columns [bold]component[/bold] ([bold]cluster[/bold] where those are combined) and
    [bold]probability[/bold] (of that group). Of a model with a target: [bold]prediction[/bold], and
    [bold]probability[/bold] or, of numbers, [bold]std[/bold] (morp: neither). Of a folder of texts,
    first [bold]document[/bold]: the file; of a table of words and numbers, first its identifiers.

    Example: [bold]mixfold predict groups.mixfold table.parquet --out labels.csv[/bold]
    """
    model, file, out = model_and_rows(model_file, file, "predict", out, quiet)
    require(model, "predict", "predict")
    if has_target(model):
        task = partial(predict_columns, model, proba)
        write_rows("predict", model, file, out, columns, task, quiet, encoding, keep=keep)
        return
    soft = hasattr(model, "predict_proba")
    group = "cluster" if hasattr(model, "cluster_of_component_") else "component"
    if proba:
        require(model, "predict_proba", "--proba")

    def label(piece: Source) -> Mapping[str, Any]:
        if not soft:
            return {group: model.predict(piece)}
        chances = model.predict_proba(piece)
        table = {group: chances.argmax(axis=1), "probability": chances.max(axis=1)}
        if proba:
            table |= {f"probability_{k}": chances[:, k] for k in range(chances.shape[1])}
        return table

    write_rows("predict", model, file, out, columns, label, quiet, encoding, keep=keep)


def score(
    model_file: ModelArgument,
    file: DataArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Also write log-density and oddness of each row: .parquet or .csv."
        ),
    ] = None,
    columns: ColumnsOption = None,
    keep: KeepOption = None,
    cells: Annotated[
        bool,
        typer.Option(
            "--cells",
            help="With --out: also the oddness of each entry, given the others of its row.",
        ),
    ] = False,
    encoding: EncodingOption = None,
    quiet: QuietOption = False,
) -> None:
    """Say how well a model explains a table, and which rows look odd.

    Prints the mean log-density of a row. With --out, writes [bold]log_density[/bold] and, of
    mixtures and factor models, [bold]oddness[/bold] for each row: 0.998 is odder than 99.8 % of
    rows of the model with the same entries seen, so that rows with missing entries can be compared.
    With a kernel the log-density is that of what it makes of a row: compare it among models of one
    kernel and gamma only.

    Of plsi, lda and pcp it is the log probability of a document's words (of lda, a bound of it),
    which is lower for long documents. Printed are its mean per word and the perplexity of half of
    the words of each document, held back at random, given the others: a fair comparison of models
    by documents that they have not seen, the lower the better.

    Example: [bold]mixfold score groups.mixfold new.parquet --out density.csv[/bold]
    """
    model = load_model(model_file, out)
    require(model, "score_samples", "score", what="log-density")
    if is_topic_model(model):
        score_documents(model, file, out, columns, encoding, quiet)
        return
    if cells:
        require(model, "oddness", "--cells", what="oddness of entries")
    names, total = feature_names(model), 0.0

    def density(piece: Source) -> Mapping[str, Any]:
        nonlocal total
        values = model.score_samples(piece)
        total += float(values.sum())
        table = {"log_density": values}
        if out is not None and hasattr(model, "oddness"):
            table["oddness"] = model.oddness(piece)
        if cells:
            by_cell = model.oddness(piece, by="cell", n_draws=_CELL_DRAWS)
            table |= {f"oddness_{n}": v for n, v in zip(names, by_cell.T, strict=True)}
        return table

    rows = write_rows("score", model, file, out, columns, density, quiet, encoding, keep=keep)
    typer.echo(f"rows {rows}")
    what = "log-density" if hasattr(model, "sample") or has_axes(model) else "log score"
    typer.echo(f"{what} per row {total / rows:.6g}")


def impute(
    model_file: ModelOrTable,
    file: OptionalData = None,
    out: TableOut = None,
    columns: ColumnsOption = None,
    keep: KeepOption = None,
    method: Annotated[
        Fill,
        typer.Option(
            help="mean: the expected value given the rest of the row; draw: a random one."
        ),
    ] = Fill.mean,
    seed: SeedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Fill in the missing entries of a table.

    Writes the model's columns, complete; entries that were there stay as they are. Of a table of
    words and numbers all columns are written.

    Example: [bold]mixfold impute groups.mixfold table.csv --out complete.csv[/bold], or
    [bold]mixfold impute table.csv[/bold]
    """
    import numpy as np

    model, file, out = model_and_rows(model_file, file, "impute", out, quiet)
    require(model, "impute", "impute")
    # One stream of random numbers for all pieces: a seed for each would repeat itself.
    random_state = np.random.RandomState(seed)
    if hasattr(model, "schema_"):
        check_output(out)
        check_not_input(out, [file])
        with TableWriter(out) as writer:
            writer.write(impute_words(model, file, method.value, random_state))
        if not quiet:
            typer.echo(f"wrote {out} ({writer.rows} rows)")
        return
    names = feature_names(model)

    def fill(piece: Source) -> Mapping[str, Any]:
        complete = model.impute(piece, method=method.value, random_state=random_state)
        return dict(zip(names, complete.T, strict=True))

    write_rows("impute", model, file, out, columns, fill, quiet, keep=keep)
