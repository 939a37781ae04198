"""``fit``: a model from a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.catalogue import Entry
from mixfold.cli.cluster import SchedulerOption, check_scheduler, on_cluster
from mixfold.cli.corpus import check_words
from mixfold.cli.data import open_columns
from mixfold.cli.families import FamilyOption, check_family, family_parameter
from mixfold.cli.layers import LayersOption, check_layers, parse_layers
from mixfold.cli.options import (
    ColumnsOption,
    QuietOption,
    SeedOption,
    SettingsOption,
    WeightsOption,
    split_columns,
)
from mixfold.cli.registry import MODELS, find_model
from mixfold.cli.settings import collect_settings
from mixfold.cli.table_first import default_out
from mixfold.cli.tables import check_not_input, check_output
from mixfold.cli.texts import (
    EncodingOption,
    MaxFeaturesOption,
    MinDfOption,
    StopWordsOption,
    TextSettings,
)
from mixfold.cli.widths import check_width

if TYPE_CHECKING:
    from mixfold.contracts import Source


def fit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", exists=True, help="A table (Parquet, CSV, npy, a folder) or texts."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Model file. Default: FILE.mixfold."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            show_default=False,
            help="What to fit; see [bold]mixfold models[/bold].",
        ),
    ] = "gaussian-mixture",
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            "-k",
            min=1,
            metavar="N",
            help="Groups, or factors, or topics.",
        ),
    ] = None,
    factors: Annotated[
        int | None,
        typer.Option(
            "--factors",
            "-d",
            min=0,
            metavar="N",
            help="Factors in each group.",
        ),
    ] = None,
    layers: LayersOption = None,
    family: FamilyOption = None,
    settings: SettingsOption = None,
    columns: ColumnsOption = None,
    weights: WeightsOption = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The column to be predicted; empty or -1 where it is unknown.",
        ),
    ] = None,
    stop_words: StopWordsOption = None,
    min_df: MinDfOption = None,
    max_features: MaxFeaturesOption = None,
    encoding: EncodingOption = None,
    scheduler: SchedulerOption = None,
    seed: SeedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Fit a model to a table, or to texts, and write it to a file.

    [bold]mixfold fit table.csv --components 8 --out groups.mixfold[/bold]
    [bold]mixfold fit letters/ --model lda --components 20 --out topics.mixfold[/bold]
    """
    entry = find_model(model)
    out = default_out(out, file, "", ".mixfold")
    check_output(out, suffixes=())
    check_not_input(out, [file], within=out.suffix.lower() == ".mixfold" and file.is_dir())
    _check_factors(model, entry, factors)
    check_layers(model, entry, components, layers)
    check_family(model, entry, family)
    check_target(model, entry, target)
    check_words(file, {model: entry})
    short = {
        "--components": (entry.size, components),
        "--factors": (entry.factors, factors),
        "--layers": (entry.layers, parse_layers(layers)),
        "--family": (entry.family, family_parameter(family)),
        "--seed": ("random_state", seed),
    }
    parameters = collect_settings(entry, settings or [], short)
    check_scheduler(scheduler, parameters)
    estimator = entry.load()(**parameters)
    texts = TextSettings(stop_words, min_df, max_features, encoding)
    source = open_columns(file, split_columns(columns), weights, target, texts)
    check_width(source.n_features, estimator, parameters)
    start = time.perf_counter()
    with on_cluster(estimator, scheduler):
        _fit(estimator, source, quiet)
    seconds = time.perf_counter() - start
    estimator.save(out)
    if not quiet:
        from mixfold.cli.summary import print_summary

        print_summary(model, estimator, source, seconds)
        typer.echo(f"wrote {out}")


def _fit(estimator: Any, source: Source, quiet: bool) -> None:
    """Fit with progress, which is this run's affair: the file keeps what the user set."""
    verbose = getattr(estimator, "verbose", None)
    if verbose is None:  # a fit without steps has no progress
        estimator.fit(source)
        return
    try:
        estimator.set_params(verbose=0 if quiet else verbose or 1).fit(source)
    finally:
        estimator.set_params(verbose=verbose)


def _check_factors(model: str, entry: Entry, factors: int | None) -> None:
    if factors is not None and not entry.factors:
        able = ", ".join(name for name, other in MODELS.items() if other.factors)
        raise typer.BadParameter(
            f"{model} has no number of factors besides --components; it is for: {able}.",
            param_hint="--factors",
        )


def check_target(model: str, entry: Entry, target: str | None) -> None:
    """A usage error for a target without need, or none where there has to be one."""
    if target is not None and not entry.target:
        able = ", ".join(name for name, other in MODELS.items() if other.target)
        raise typer.BadParameter(
            f"{model} predicts no column; it is for: {able}.", param_hint="--target"
        )
    if target is None and entry.target and not entry.unlabelled:
        raise typer.BadParameter(
            f"{model} needs the name of the column to be predicted.", param_hint="--target"
        )
