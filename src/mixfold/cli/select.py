"""``select``: choose the number of components and the kind of model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.cli.candidates import find_models, first_of, values_to_try
from mixfold.cli.cluster import cluster_for, use_threads
from mixfold.cli.corpus import check_words
from mixfold.cli.data import open_columns
from mixfold.cli.families import FamilyOption, family_parameter
from mixfold.cli.options import (
    ColumnsOption,
    DataArgument,
    QuietOption,
    SeedOption,
    WeightsOption,
    split_columns,
)
from mixfold.cli.schemas import (
    DecimalOption,
    DropOption,
    EncodingOfTable,
    KindOption,
    MissingOption,
    SchemaOption,
    SepOption,
    print_schema,
    schema_of,
)
from mixfold.cli.search_outputs import SearchOutputs
from mixfold.cli.values import parse_numbers
from mixfold.cli.widths import check_width

if TYPE_CHECKING:
    from mixfold.contracts import Source


class Criterion(StrEnum):
    """What decides between settings."""

    bic = "bic"
    aic = "aic"
    icl = "icl"
    held_out = "held-out"
    bound = "bound"
    log_loss = "log-loss"
    squared_error = "squared-error"
    gap = "gap"


def select(
    file: DataArgument,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="What to fit, as in [bold]mixfold fit[/bold]; repeat it to compare kinds of "
            "model. Default: gaussian-mixture.",
        ),
    ] = None,
    components: Annotated[
        str,
        typer.Option(
            "--components", "-k", metavar="NUMBERS", help="Numbers to try: 1:10, 2,4,8 or 5."
        ),
    ] = "1:9",
    factors: Annotated[
        str | None,
        typer.Option(
            "--factors",
            "-d",
            metavar="NUMBERS",
            help="Numbers of factors to try, for the mixtures that have them: 1:3, 2,4 or 5.",
        ),
    ] = None,
    family: FamilyOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUES",
            help="A parameter and the values to try, for example covariance_type=full,diag. May "
            "be repeated.",
        ),
    ] = None,
    criterion: Annotated[
        Criterion,
        typer.Option(
            "--criterion",
            "-c",
            help="What decides: bic, aic, icl (groups that are apart), held-out (rows the fit "
            "has not seen; reads the table into memory), bound (variational fits), gap (clusters "
            "against tables without any; in memory), or, with --target, log-loss or squared-error "
            "of what is predicted (in memory, too).",
        ),
    ] = Criterion.bic,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            min=2,
            help="Parts of the rows that are held out in turn. Default: 5 if they decide, else "
            "none.",
        ),
    ] = None,
    test: Annotated[
        int | None,
        typer.Option(
            "--test",
            min=1,
            metavar="TABLES",
            help="Also test each number of components against the next by so many simulated "
            "tables, for example 99.",
        ),
    ] = None,
    allow_degenerate: Annotated[
        bool,
        typer.Option(
            "--allow-degenerate", help="Also let fits win in which a variance is at its floor."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file for the best model.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="A picture of the criterion: .png, .pdf or .svg.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--table", help="All numbers of the search: .parquet or .csv.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="A page about the search and its best model: an .html file."),
    ] = None,
    columns: ColumnsOption = None,
    schema_file: SchemaOption = None,
    kind: KindOption = None,
    drop: DropOption = None,
    na: MissingOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOfTable = None,
    weights: WeightsOption = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The column to be predicted, of models that do so; empty or -1 where it is "
            "unknown.",
        ),
    ] = None,
    n_effective: Annotated[
        float | None,
        typer.Option(
            "--n-effective",
            metavar="ROWS",
            help="Number of independent rows that the table is worth, where weights only say how "
            "much rows count beside each other, or rows are copies. Default: what the weights add "
            "up to.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Fits at the same time. Default: one, by all cores."
        ),
    ] = None,
    seed: SeedOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find how many components a table has, and of which kind: fit many, keep the best.

    Example: [bold]mixfold select table.parquet --components 1:10 --set
    covariance_type=full,diag --out best.mixfold --report report.html[/bold]
    """
    from mixfold import MixtureSearch
    from mixfold.cli.fit import check_target
    from mixfold.engine.sources import open_source
    from mixfold.estimators.search.candidates import DEFAULT_GRID
    from mixfold.estimators.search.results import WITH_ERRORS

    schema = None
    if not (model or target or family):
        schema = schema_of(file, columns, schema_file, kind, drop, (na, sep, decimal, encoding))
    elif schema_file or kind or drop or na or sep or decimal or encoding:
        raise typer.BadParameter(
            "are for the mixture that a table of words gets; leave --model, --family and --target "
            "out.",
            param_hint="--schema, --kind, --drop, --na, --sep, --decimal, --encoding",
        )
    entries = find_models(model or (["gaussian-mixture"] if schema is None else ["mixture"]))
    check_words(file, entries)
    for name, entry in entries.items():
        check_target(name, entry, target)
    outputs = SearchOutputs(file, out, plot, table, report)
    outputs.check()
    chosen = values_to_try(entries, settings or [], factors, family_parameter(family))
    grid = chosen if model or schema is not None else {**DEFAULT_GRID, **chosen}
    if schema is not None:
        grid = {"family": _with_covariances(schema), **grid}
    estimators = {name: first_of(entry, grid) for name, entry in entries.items()}
    search = MixtureSearch(
        estimators,
        {name: values for name, values in grid.items() if len(values) > 1} or None,
        n_components=parse_numbers(components, "--components", 1),
        criterion=criterion.value,
        cv=folds,
        allow_degenerate=allow_degenerate,
        test=test,
        n_effective=n_effective,
        random_state=seed,
        n_jobs=jobs,
        verbose=0 if quiet else 1,
    )
    if schema is None:
        source = open_columns(file, split_columns(columns), weights, target)
    else:
        coded = schema.encode_table(file, [weights] if weights else [])
        source = open_source(coded, columns=schema.names, weight=weights)
        if not quiet:
            print_schema(schema)
    for estimator in estimators.values():
        check_width(source.n_features, estimator, chosen)
    held = folds is not None or criterion.value in WITH_ERRORS
    X, weight, y = _in_memory(source) if held else (source, None, None)
    with cluster_for(estimators.values()):
        search.fit(X, y, sample_weight=weight)
    use_threads(search.best_estimator_)
    _keep_words(search.best_estimator_, source)
    if not quiet:
        from mixfold.cli.choice import print_search

        print_search(search)
    if schema is not None:  # whose words the page speaks
        X, weight = file, weights
    outputs.write(search, X, weight, quiet, y)


def _with_covariances(schema: Any) -> list[Any]:
    """The schema with numbers that go together within a group, and with such that do not."""
    several = len(schema.families().get("full", ())) > 1
    return [schema, schema.with_covariance("diag")] if several else [schema]


def _in_memory(source: Source) -> tuple[Any, Any, Any]:
    """The rows as one table, which can be divided, their weights and outputs."""
    import numpy as np
    import pyarrow as pa
    from scipy import sparse

    blocks = list(source.blocks())
    if not blocks:
        raise ValueError("The input has no rows; there is nothing to do.")
    weighed = any(block.weight is not None for block in blocks)
    weight = np.concatenate([block.weights() for block in blocks]) if weighed else None
    beside = [block.y for block in blocks if block.y is not None]
    y = np.concatenate(beside) if beside else None
    if sparse.issparse(blocks[0].X):
        return sparse.vstack([block.X for block in blocks], format="csr"), weight, y
    X = np.concatenate([block.X for block in blocks])
    names = source.feature_names
    return X if names is None else pa.table(dict(zip(names, X.T, strict=True))), weight, y


def _keep_words(model: Any, source: Source) -> None:
    """Sparse rows in memory have no names of columns; texts cannot be counted without these."""
    import numpy as np

    if source.feature_names is not None and not hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = np.array(source.feature_names, dtype=object)
