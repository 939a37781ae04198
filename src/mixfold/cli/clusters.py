"""``cluster``: groups of any shape, each made of one component or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixfold.cli.cluster import cluster_for, use_threads
from mixfold.cli.data import open_columns
from mixfold.cli.families import FamilyOption, check_family, family_parameter
from mixfold.cli.options import (
    ColumnsOption,
    DataArgument,
    QuietOption,
    SeedOption,
    SettingsOption,
    WeightsOption,
    split_columns,
)
from mixfold.cli.registry import find_model
from mixfold.cli.search_outputs import SearchOutputs
from mixfold.cli.settings import collect_settings
from mixfold.cli.terminal import strip_controls


def cluster(
    file: DataArgument,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "--n-clusters",
            "-n",
            min=1,
            metavar="N",
            help="Number of clusters. Default: as many as the rows prove to be apart.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0.0,
            max=1.0,
            help="Instead: merge while rows of one cluster are taken for another's with a "
            "probability above this, for example 0.05.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="The mixture whose components are combined, as in [bold]mixfold fit[/bold]. "
            "Default: gaussian-mixture.",
        ),
    ] = None,
    family: FamilyOption = None,
    settings: SettingsOption = None,
    max_components: Annotated[
        int, typer.Option("--max-components", min=1, help="Most components that are tried.")
    ] = 100,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file for the model.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="The tree of merges: .png, .pdf or .svg.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            help="The cluster of each row, its probability, and whether the row lies between "
            "clusters: .parquet or .csv.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="A page about the clusters: an .html file.")
    ] = None,
    columns: ColumnsOption = None,
    weights: WeightsOption = None,
    seed: SeedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find groups of any shape: a mixture of many components, combined into clusters.

    Example: [bold]mixfold cluster table.parquet --out clusters.mixfold --table labels.csv[/bold]
    """
    from mixfold import MixtureClustering

    if n_clusters is not None and threshold is not None:
        raise typer.BadParameter(
            "a threshold says how many clusters there are; leave one of both out.",
            param_hint="--threshold",
        )
    outputs = SearchOutputs(file, out, plot, table, report)
    outputs.check()
    clustering = MixtureClustering(
        "auto" if n_clusters is None else n_clusters,
        _make_mixture(model, family, settings),
        max_components=max_components,
        threshold=threshold,
        random_state=seed,
        verbose=0 if quiet else 1,
    )
    source = open_columns(file, split_columns(columns), weights)
    with cluster_for([clustering._base()]):
        clustering.fit(source)
    use_threads(clustering.mixture_)
    if not quiet:
        typer.echo(strip_controls(clustering.summary()))
    outputs.write_by(clustering, _draw, _write_labels, source, None, quiet)


def _make_mixture(model: str | None, family: list[str] | None, settings: list[str] | None) -> Any:
    """The mixture that the options ask for; None is the default of the estimator."""
    if model is None and not family and not settings:
        return None
    name = model or ("mixture" if family else "gaussian-mixture")
    entry = find_model(name)
    check_family(name, entry, family)
    short = {"--family": (entry.family, family_parameter(family))}
    return entry.load()(**collect_settings(entry, settings or [], short))


def _draw(clustering: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    from mixfold.plots import plot_merges

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    plot_merges(clustering, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def _write_labels(clustering: Any, path: Path) -> None:
    from mixfold.cli.tables import TableWriter

    with TableWriter(path) as writer:
        writer.write(
            {
                "cluster": clustering.labels_,
                "probability": clustering.probabilities_,
                "between": clustering.between_,
            }
        )
