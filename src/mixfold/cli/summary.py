"""The summary that ``fit`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mixfold.cli.axes import has_axes, kernel_facts
from mixfold.cli.outputs import has_target
from mixfold.cli.parts import explained_variance_ratio, parts_table
from mixfold.cli.terminal import open_console
from mixfold.cli.topics import is_clustered, is_topic_model
from mixfold.cli.units import has_units, unit_facts

if TYPE_CHECKING:
    from mixfold.contracts import Source

_EVENTS_SHOWN = 8
# Label, attribute and format of the facts that a model may publish.
_FACTS = (
    ("components in use", "effective_components_", "{}"),
    ("clusters", "n_clusters_", "{}"),
    ("", "lower_bound_", "{:.6g}"),  # see _objective
    ("inertia", "inertia_", "{:.6g}"),
    ("iterations", "n_iter_", "{}"),
)


def print_summary(name: str, model: Any, source: Source, seconds: float) -> None:
    """Print facts of the fit, its components and its events to standard output."""
    console = open_console()
    console.print(_facts(name, model, source, seconds))
    console.print(parts_table(model))
    events = [
        event for event in getattr(model, "events_", ()) if not _is_intended_drop(model, event)
    ]
    for event in events[:_EVENTS_SHOWN]:
        console.print(f"! {event.message}")
    if len(events) > _EVENTS_SHOWN:
        console.print(
            f"! ... and {len(events) - _EVENTS_SHOWN} more; mixfold report lists them all"
        )


def _is_intended_drop(model: Any, event: Any) -> bool:
    """Clusters that were dropped: their number is learned so, and told above."""
    return is_clustered(model) and event.kind == "pruned"


def _bic(model: Any) -> float | None:
    """The criterion of the training rows; None for models that maximise no likelihood of these."""
    if not hasattr(model, "bic") or hasattr(model, "alpha_"):  # of a bound, it means nothing
        return None
    try:
        return float(model.bic())
    except ValueError:
        if has_target(model):  # which classes and settings decide
            return None
        raise


def _objective(model: Any, bic: float | None) -> str:
    """What the objective of a model is."""
    if is_topic_model(model):
        return _topic_objective(model)
    if has_units(model):
        return "objective per row"
    if not hasattr(model, "alpha_"):
        likelihood = bic is not None or (has_density(model) and not has_target(model))
        return "log-likelihood per row" if likelihood else "objective per row"
    if hasattr(model, "evidence_bound_"):
        return "log evidence per row, bound"
    return "log joint per row, mean" if hasattr(model, "traces_") else "log posterior per row"


def has_density(model: Any) -> bool:
    """Whether its scores are log densities; those under transformations are not."""
    return hasattr(model, "score_samples") and not hasattr(model, "transforms_")


def _topic_objective(model: Any) -> str:
    if is_clustered(model):
        return "log evidence per document, bound"
    bayes = hasattr(model, "topic_word_prior_")
    return "log evidence per word, bound" if bayes else "log-likelihood per word"


def _size(model: Any, source: Source) -> str:
    """How large the data are; of documents, how many words they have in all."""
    rows = "?" if source.n_samples is None else source.n_samples
    if is_topic_model(model):
        return f"{rows} documents, {model.n_tokens_:.10g} words, {source.n_features} different"
    return f"{rows} rows, {source.n_features} columns"


def _epochs(made: Any) -> str:
    """Passes over the rows; of training in phases those of each."""
    if not isinstance(made, dict):
        return str(made)
    return ", ".join(f"{phase} {number}" for phase, number in made.items())


def _facts(name: str, model: Any, source: Source, seconds: float) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_row("model", name)
    grid.add_row("data", _size(model, source))
    for label, text in (kernel_facts(model) | unit_facts(model)).items():
        grid.add_row(label, text)
    bic = _bic(model)
    for label, attribute, form in _FACTS:
        if hasattr(model, attribute):
            label = label or _objective(model, bic)
            grid.add_row(label, form.format(getattr(model, attribute)))
    if hasattr(model, "n_epochs_"):
        grid.add_row("epochs", _epochs(model.n_epochs_))
    if hasattr(model, "mean_") or hasattr(model, "explained_variance_ratio_"):
        grid.add_row("variance explained", f"{sum(explained_variance_ratio(model)):.1%}")
    if bic is not None:
        among = ", among models of one kernel" if has_axes(model) else ""
        grid.add_row("BIC", f"{bic:.6g} (lower is better{among})")
    if hasattr(model, "converged_"):
        more = "burn_in and n_draws" if hasattr(model, "traces_") else "max_iter"
        grid.add_row("converged", "yes" if model.converged_ else f"no: raise {more}")
    grid.add_row("time", f"{seconds:.1f} s")
    return grid
