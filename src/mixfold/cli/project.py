"""``transform`` and ``reconstruct``: rows as a few factors, and what these say of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from mixfold.cli.data import feature_names, load_model, require
from mixfold.cli.options import ColumnsOption, DataArgument, ModelArgument, QuietOption, TableOut
from mixfold.cli.rows import write_rows
from mixfold.contracts import Array, Source


class Method(StrEnum):
    """How a row is rebuilt from its factors."""

    posterior = "posterior"
    least_squares = "least-squares"
    weighted = "weighted"
    hard = "hard"


def transform(
    model_file: ModelArgument,
    file: DataArgument,
    out: TableOut,
    columns: ColumnsOption = None,
    per_component: Annotated[
        bool,
        typer.Option(
            "--per-component", help="For mixtures: the factors in each component, not their mean."
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Reduce each row to a few factors; missing entries are no obstacle.

    Writes the columns [bold]factor_1[/bold], [bold]factor_2[/bold], ...: the expected factors of
    the row. For mixtures also [bold]component[/bold], the most probable one.

    Example: [bold]mixfold transform factors.mixfold table.parquet --out latents.csv[/bold]
    """
    model = load_model(model_file)
    # Distances to centres are a transform, too, but no factors.
    require(model, "reconstruct", "transform", what="factors")
    mixture = hasattr(model, "predict")
    if per_component and not mixture:
        raise typer.BadParameter(
            f"a {type(model).__name__} has a single component; leave the option out.",
            param_hint="--per-component",
        )

    def reduce(piece: Source) -> Mapping[str, Any]:
        label = {"component": model.predict(piece)} if mixture else {}
        if not per_component:
            return label | _factors(model.transform(piece))
        latents = model.transform(piece, per_component=True)
        for k in range(latents.shape[1]):
            label |= _factors(latents[:, k], f"component_{k}_")
        return label

    write_rows("transform", model, file, out, columns, reduce, quiet)


def _factors(latents: Array, prefix: str = "") -> dict[str, Array]:
    return {f"{prefix}factor_{j + 1}": latents[:, j] for j in range(latents.shape[1])}


def reconstruct(
    model_file: ModelArgument,
    file: DataArgument,
    out: TableOut,
    columns: ColumnsOption = None,
    method: Annotated[
        Method,
        typer.Option(
            help="posterior: the expected row; least-squares: the nearest point of the factors' "
            "plane; weighted (factor analysis): the same in units of the noise; hard (mixtures): "
            "the most probable component at the expected factors."
        ),
    ] = Method.posterior,
    quiet: QuietOption = False,
) -> None:
    """Write each row as its factors explain it: without noise, and complete.

    Writes the model's columns. To fill in missing entries and keep the others, use impute.

    Example: [bold]mixfold reconstruct factors.mixfold table.csv --out smooth.csv[/bold]
    """
    model = load_model(model_file)
    require(model, "reconstruct", "reconstruct", what="factors")
    names = feature_names(model)

    def rebuild(piece: Source) -> Mapping[str, Any]:
        rows = model.reconstruct(piece, method=method.value)
        return dict(zip(names, rows.T, strict=True))

    write_rows("reconstruct", model, file, out, columns, rebuild, quiet)
