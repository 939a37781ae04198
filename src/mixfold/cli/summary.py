"""What a fit found, on one screen."""

from __future__ import annotations

from typing import Any

from mixfold.cli.parts import explained, parts_table
from mixfold.contracts import Source

_EVENTS_SHOWN = 8
# Label, attribute and format of the facts that a model may publish.
_FACTS = (
    ("components in use", "effective_components_", "{}"),
    ("clusters", "n_clusters_", "{}"),
    ("log-likelihood per row", "lower_bound_", "{:.6g}"),
    ("inertia", "inertia_", "{:.6g}"),
    ("iterations", "n_iter_", "{}"),
)


def print_summary(name: str, model: Any, source: Source, seconds: float) -> None:
    """Print facts of the fit, its components and its events to standard output."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(_facts(name, model, source, seconds))
    console.print(parts_table(model))
    events = list(getattr(model, "events_", ()))
    for event in events[:_EVENTS_SHOWN]:
        console.print(f"! {event.message}")
    if len(events) > _EVENTS_SHOWN:
        console.print(f"! ... and {len(events) - _EVENTS_SHOWN} more (see events_)")


def _objective(model: Any) -> str:
    """What the objective of a model with priors is."""
    if hasattr(model, "evidence_bound_"):
        return "log evidence per row, bound"
    return "log joint per row, mean" if hasattr(model, "traces_") else "log posterior per row"


def _facts(name: str, model: Any, source: Source, seconds: float) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    rows = "?" if source.n_samples is None else source.n_samples
    grid.add_row("model", name)
    grid.add_row("data", f"{rows} rows, {source.n_features} columns")
    for label, attribute, form in _FACTS:
        if hasattr(model, attribute):
            if attribute == "lower_bound_" and hasattr(model, "alpha_"):
                label = _objective(model)
            grid.add_row(label, form.format(getattr(model, attribute)))
    if hasattr(model, "mean_"):
        grid.add_row("variance explained", f"{sum(explained(model)):.1%}")
    if hasattr(model, "bic") and not hasattr(model, "alpha_"):  # of a likelihood, not of a bound
        grid.add_row("BIC", f"{model.bic():.6g} (lower is better)")
    if hasattr(model, "converged_"):
        grid.add_row("converged", "yes" if model.converged_ else "no: raise max_iter")
    grid.add_row("time", f"{seconds:.1f} s")
    return grid
