"""``measure``: what is lost when rows are replaced by components, factors, reconstructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixfold.cli.data import load_model
from mixfold.cli.options import ColumnsOption, DataArgument, KeepOption, ModelArgument, QuietOption
from mixfold.cli.outputs import has_target
from mixfold.cli.rows import write_rows

if TYPE_CHECKING:
    from mixfold.contracts import Array, Source

Measure = Callable[["Source"], "Array"]


def measure(
    model_file: ModelArgument,
    file: DataArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write the measures of each row: .parquet or .csv."),
    ] = None,
    columns: ColumnsOption = None,
    keep: KeepOption = None,
    quiet: QuietOption = False,
) -> None:
    """Measure what a model loses of a table: risks and the signal-to-error ratio.

    Prints, and with --out writes for each row, as far as the model has them:
    [bold]clustering_risk[/bold], the probability that a row is not of its component;
    [bold]reduction_risk[/bold], the expected squared error of its expected factors (printed per
    factor; of factor models, for tables without missing entries);
    [bold]signal_to_error[/bold] in decibel, and [bold]squared_error[/bold], the mean over its
    entries, of its reconstruction.

    Example: [bold]mixfold measure factors.mixfold table.parquet --out losses.csv[/bold]
    """
    model = load_model(model_file, out)
    measures = measures_of(model)
    if not measures:
        raise typer.BadParameter(
            f"a {type(model).__name__} has neither components nor reconstructions to measure; fit "
            "a mixture or a factor model.",
            param_hint="MODEL",
        )
    found: dict[str, list[Array]] = {name: [] for name in measures}

    def compute(piece: Source) -> Mapping[str, Any]:
        table = {name: task(piece) for name, task in measures.items()}
        for name, values in table.items():
            found[name].append(values)
        return table

    rows = write_rows("measure", model, file, out, columns, compute, quiet, keep=keep)
    typer.echo(f"rows {rows}")
    for name, parts in found.items():
        typer.echo(_average(name, parts, model))


def measures_of(model: Any) -> dict[str, Measure]:
    """What can be measured of a model, by name: functions of some rows, a number for each."""
    from mixfold import metrics

    measures: dict[str, Measure] = {}
    if hasattr(model, "predict_proba") and not has_target(model):

        def clustering(piece: Source) -> Array:
            return _values(metrics.clustering_risk(model.predict_proba(piece), per_row=True))

        measures["clustering_risk"] = clustering
    covariances = _latent_covariances(model)
    if covariances is not None:
        measures["reduction_risk"] = _reduction_risk(model, covariances)
    if hasattr(model, "reconstruct"):

        def ratio(piece: Source) -> Array:
            rebuilt = model.reconstruct(piece)
            return _values(metrics.signal_to_error_ratio(_rows(piece), rebuilt, per_row=True))

        def error(piece: Source) -> Array:
            import numpy as np

            squares = (_rows(piece) - model.reconstruct(piece)) ** 2
            seen = ~np.isnan(squares)
            total = np.where(seen, squares, 0.0).sum(axis=1)
            return np.asarray(total / np.maximum(seen.sum(axis=1), 1))

        measures |= {"signal_to_error": ratio, "squared_error": error}
    return measures


def _latent_covariances(model: Any) -> Array | None:
    """Posterior covariances (K, d, d) of latents of complete rows; None if there are none."""
    if has_target(model):
        return None
    if hasattr(model, "latent_covariances_"):
        several: Array = model.latent_covariances_
        return several if several.shape[-1] else None
    one = getattr(model, "latent_covariance_", None)
    return None if one is None or not one.size else one[None]


def _reduction_risk(model: Any, covariances: Array) -> Measure:
    from mixfold import metrics

    # the risk is that of the latents, in whatever scale transform gives them
    plain = copy(model).set_params(scale="latent")
    mixture = "per_component" in signature(model.transform).parameters

    def reduction(piece: Source) -> Array:
        import numpy as np

        if np.isnan(_rows(piece)).any():
            return np.full(len(_rows(piece)), np.nan)
        if mixture:
            latents, shares = plain.transform(piece, per_component=True), plain.predict_proba(piece)
        else:
            latents = plain.transform(piece)[:, None]
            shares = np.ones((len(latents), 1))
        return _values(metrics.reduction_risk(shares, latents, covariances, per_row=True))

    return reduction


def _rows(piece: Source) -> Array:
    """The rows of a piece, dense."""
    import numpy as np

    parts = [block.X for block in piece.blocks()]
    dense = [part if isinstance(part, np.ndarray) else part.toarray() for part in parts]
    return np.asarray(np.concatenate(dense), dtype=float)


def _values(found: Any) -> Array:
    import numpy as np

    return np.asarray(found)


def _average(name: str, parts: list[Array], model: Any) -> str:
    """A measure of all rows, as ``mixfold.metrics`` averages it."""
    import numpy as np

    values = np.concatenate(parts)
    if name == "signal_to_error":  # the average is of ratios, not of decibels
        ratios = 10 ** (values[~np.isnan(values)] / 20)
        with np.errstate(divide="ignore"):
            return f"signal-to-error ratio {20 * np.log10(ratios.mean()):.6g} dB"
    if name == "reduction_risk":
        if np.isnan(values).any():
            return "reduction risk per factor: not of rows with missing entries"
        return f"reduction risk per factor {values.mean() / model._n_features_out:.6g}"
    if name == "clustering_risk":
        return f"clustering risk {values.mean():.6g}"
    return f"mean squared error of an entry {values.mean():.6g}"
