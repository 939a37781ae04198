"""``transform`` and ``reconstruct``: factors of rows, and rows from their factors."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.cli.axes import has_axes
from mixfold.cli.data import feature_names, load_model, require, require_factors
from mixfold.cli.options import (
    ColumnsOption,
    DataArgument,
    KeepOption,
    ModelArgument,
    QuietOption,
    TableOut,
)
from mixfold.cli.outputs import component_teller
from mixfold.cli.rows import write_rows
from mixfold.cli.table_first import default_out
from mixfold.cli.texts import EncodingOption
from mixfold.cli.topic_rows import name_topic_columns
from mixfold.cli.topics import is_topic_model

if TYPE_CHECKING:
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
    out: TableOut = None,
    columns: ColumnsOption = None,
    keep: KeepOption = None,
    per_component: Annotated[
        bool,
        typer.Option(
            "--per-component", help="For mixtures: the factors in each component, not their mean."
        ),
    ] = False,
    encoding: EncodingOption = None,
    quiet: QuietOption = False,
) -> None:
    """Reduce each row to a few factors; all but kernel models allow missing entries.

    Writes the columns [bold]factor_1[/bold], [bold]factor_2[/bold], ...: the expected factors of
    the row, by its columns (of kernel-pca, morp and kernel-cca its scores on the axes). For
    mixtures also [bold]component[/bold], the most probable one; the class or number that a model
    with a target predicts is told by predict. Of plsi, lda and pcp: [bold]topic_0[/bold],
    [bold]topic_1[/bold], ..., the shares of the topics, numbered as in mixfold topics.

    Example: [bold]mixfold transform factors.mixfold table.parquet --out latents.csv[/bold]
    """
    out = default_out(out, file, "transform")
    model = load_model(model_file, out)
    require_factors(model, "transform")
    tell = component_teller(model)
    named = name_topic_columns if is_topic_model(model) else _factors
    if per_component:
        _check_per_component(model, tell is not None)

    def reduce(piece: Source) -> Mapping[str, Any]:
        label = {} if tell is None else {"component": tell(piece)}
        if not per_component:
            return label | named(model.transform(piece))
        latents = model.transform(piece, per_component=True)
        for k in range(latents.shape[1]):
            label |= _factors(latents[:, k], f"component_{k}_")
        return label

    write_rows("transform", model, file, out, columns, reduce, quiet, encoding, keep=keep)


def _check_per_component(model: Any, mixture: bool) -> None:
    if "per_component" in signature(model.transform).parameters:
        return
    has = "the same factors in all its components" if mixture else "a single component"
    raise typer.BadParameter(
        f"a {type(model).__name__} has {has}; leave the option out.", param_hint="--per-component"
    )


def _factors(latents: Array, prefix: str = "") -> dict[str, Array]:
    return {f"{prefix}factor_{j + 1}": latents[:, j] for j in range(latents.shape[1])}


def reconstruct(
    model_file: ModelArgument,
    file: DataArgument,
    out: TableOut = None,
    columns: ColumnsOption = None,
    keep: KeepOption = None,
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

    Writes the model's columns. To fill in missing entries and keep the others, use impute. Of
    kernel-pca: rows whose scores on the axes are about those of the row.

    Example: [bold]mixfold reconstruct factors.mixfold table.csv --out smooth.csv[/bold]
    """
    out = default_out(out, file, "reconstruct")
    model = load_model(model_file, out)
    names, found_again = feature_names(model), _finds_rows_again(model, method)
    if not found_again:
        require(model, "reconstruct", "reconstruct")
    plain = not found_again and _in_one_way(model, method)

    def rebuild(piece: Source) -> Mapping[str, Any]:
        if found_again:
            rows = model.inverse_transform(model.transform(piece))
        elif plain:
            rows = model.reconstruct(piece)
        else:
            rows = model.reconstruct(piece, method=method.value)
        return dict(zip(names, rows.T, strict=True))

    write_rows("reconstruct", model, file, out, columns, rebuild, quiet, keep=keep)


def _in_one_way(model: Any, method: Method) -> bool:
    """Whether a model rebuilds rows in one way only."""
    if "method" in signature(model.reconstruct).parameters:
        return False
    _check_only(model, method, "rebuilds rows")
    return True


def _finds_rows_again(model: Any, method: Method) -> bool:
    """Whether rows are found from scores on axes of features, in one way only."""
    if not has_axes(model) or not hasattr(model, "inverse_transform"):
        return False
    _check_only(model, method, "finds rows from scores")
    return True


def _check_only(model: Any, method: Method, does: str) -> None:
    if method is not Method.posterior:
        raise typer.BadParameter(
            f"a {type(model).__name__} {does} in one way; leave the option out.",
            param_hint="--method",
        )
