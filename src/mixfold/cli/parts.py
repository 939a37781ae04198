"""What a fitted model is made of, as a table: components, factors of a single one, axes, topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mixfold.cli.axes import axes_columns, axes_count, axes_weights, has_axes
from mixfold.cli.data import feature_names
from mixfold.cli.topics import is_topic_model, topic_parts
from mixfold.cli.units import UNIT_HEADS, has_units, unit_rows
from mixfold.estimators.mixtures.category_shares import category_shares

_COLUMNS_SHOWN = 6
_COMPONENTS_SHOWN = 30
_FACTORS_SHOWN = 12


def parts_table(model: Any) -> Any:
    """The components of a mixture, the factors of a model that has one mean, axes, or topics."""
    if is_topic_model(model):
        return topic_parts(model)
    if has_axes(model):
        return _axes_table(model)
    if has_units(model):
        return _unit_table(model)
    if hasattr(model, "priors_"):
        return _class_table(model)
    if hasattr(model, "cluster_of_component_"):
        return _cluster_table(model)
    return _factor_table(model) if hasattr(model, "mean_") else _component_table(model)


def explained_variance_ratio(model: Any) -> list[float]:
    """The share of each factor in the variance of the columns (see ``_shares``)."""
    if hasattr(model, "explained_variance_ratio_"):
        return [float(share) for share in model.explained_variance_ratio_]
    correlations = getattr(model, "factor_correlations_", None)
    return _shares(_loadings(model), model.noise_variance_, correlations)


def _loadings(model: Any) -> Any:
    """What a factor, or an independent source, of variance one is in the columns: (D, d)."""
    return model.mixing_ if hasattr(model, "mixing_") else model.loadings_


def _shares(loadings: Any, noise: Any, correlations: Any = None) -> list[float]:
    """What each factor explains, as the noise suggests.

    With one noise for all columns their units are comparable: a share of all the variance. With
    noise of its own each column has units of its own: the average share in a column.
    """
    import numpy as np

    # Factors that correlate explain together more, or less, than each does alone.
    parts = loadings * (loadings if correlations is None else loadings @ correlations)
    variance = parts.sum(axis=1) + noise
    if np.ndim(noise) == 0:
        return [float(share) for share in parts.sum(axis=0) / variance.sum()]
    return [float(share) for share in (parts / variance[:, None]).mean(axis=0)]


def _component_table(model: Any) -> Any:
    """A row for each component: weight, what its factors explain, first entries of its centre."""
    centres = model.means_ if hasattr(model, "means_") else model.cluster_centers_
    in_use = getattr(model, "effective_components_", len(centres))
    shown = range(min(in_use, _COMPONENTS_SHOWN))
    extras = {}
    leaves = hasattr(model, "leaf_weights_")  # of cells, which are groups of them
    if leaves:
        extras["cell"] = [str(model.leaf_cells_[k]) for k in shown]
        extras["weight"] = [_weight(model.leaf_weights_[k]) for k in shown]
    elif hasattr(model, "weights_"):
        extras["weight"] = [_weight(model.weights_[k]) for k in shown]
    if hasattr(model, "loadings_"):
        shares = [_shares(model.loadings_[k], model.noise_variance_[k]) for k in shown]
        extras["explained"] = [f"{sum(parts):.1%}" for parts in shares]
    codes = category_shares(model)
    rows = {
        str(k): (
            [texts[k] for texts in extras.values()],
            [] if hasattr(model, "transforms_") else _centre(model, centres[k], codes, k),
        )
        for k in shown
    }
    # centres under transformations are not places among the columns
    names = [] if hasattr(model, "transforms_") else feature_names(model)
    hidden = len(centres) - len(shown)
    notes = [f"{hidden} more {'leaves' if leaves else 'components'}"] if hidden > 0 else []
    if codes and not hasattr(model, "schema_"):
        notes.append(
            "of codes: the most probable (its share); of zeros and ones: the share of ones"
        )
    return _table(names, ["leaf" if leaves else "component", *extras], rows, ", ".join(notes))


def _class_table(model: Any) -> Any:
    """A row for each class that has a model of its own: its prior, weight and kind of model."""
    shown = model.classes_.tolist()[:_COMPONENTS_SHOWN]
    rows: dict[str, tuple[list[str], Any]] = {
        str(label): ([f"{prior:.3f}", f"{weight:.6g}", type(inner).__name__], [])
        for label, prior, weight, inner in zip(
            shown, model.priors_, model.class_weight_, model.estimators_, strict=False
        )
    }
    hidden = len(model.classes_) - len(shown)
    return _table([], ["class", "prior", "rows", "model"], rows, f"{hidden} more" * (hidden > 0))


def _cluster_table(model: Any) -> Any:
    """A row for each cluster that is made of components: its weight, and which they are."""
    import numpy as np

    of = model.cluster_of_component_
    shown = range(min(model.n_clusters_, _COMPONENTS_SHOWN))
    rows: dict[str, tuple[list[str], Any]] = {}
    for k in shown:
        own = np.flatnonzero(of == k).tolist()
        more = f" and {len(own) - _FACTORS_SHOWN} more" if len(own) > _FACTORS_SHOWN else ""
        which = ", ".join(map(str, own[:_FACTORS_SHOWN])) + more
        rows[str(k)] = ([_weight(model.weights_[k]), str(len(own)), which], [])
    hidden = model.n_clusters_ - len(shown)
    notes = f"{hidden} more clusters" if hidden > 0 else ""
    return _table([], ["cluster", "weight", "components", "which"], rows, notes)


def _centre(model: Any, centre: Any, codes: Mapping[int, Any], component: int) -> list[Any]:
    """Means of columns; of codes the most probable one with its share, of ones their share."""
    columns = model.schema_.used if hasattr(model, "schema_") else ()
    entries: list[Any] = list(centre)
    for j, column in enumerate(columns):
        entries[j] = _as_entry(column, centre[j])
    for j, shares in codes.items():
        if j < len(entries):
            entries[j] = _code(shares[component], columns[j].levels if columns else ())
    return entries


def _as_entry(column: Any, value: float) -> Any:
    """A number of the model in the words of the table, of dates and logarithms."""
    if column.kind != "date" and column.scale == "plain":
        return value
    import numpy as np

    from mixfold.schema.coding import decode

    shown = decode(column, np.array([value]))[0].as_py()
    return shown if isinstance(shown, float | int | str) else f"{shown:%Y-%m-%d}"


def _code(shares: Any, levels: Sequence[Any]) -> str:
    if len(shares) == 2:
        return f"{levels[1]} {shares[1]:.0%}" if levels else f"{shares[1]:.0%}"
    best = int(shares.argmax())
    return f"{levels[best] if levels else best} ({shares[best]:.0%})"


def _weight(share: float) -> str:
    """A share to three digits; 0.000 would look like none at all, or a mistake."""
    return "<0.001" if share < 0.0005 else f"{share:.3f}"


def _factor_table(model: Any) -> Any:
    """The mean, the loadings of each factor with its share of the variance, and the noise."""
    import numpy as np

    shares, loadings = explained_variance_ratio(model), _loadings(model)
    kind = "source" if hasattr(model, "mixing_") else "factor"
    rows = {"mean": ([""], model.mean_)}
    for j in range(min(len(shares), _FACTORS_SHOWN)):
        rows[f"{kind} {j + 1}"] = ([f"{shares[j]:.1%}"], loadings[:, j])
    rows["noise"] = ([""], np.broadcast_to(model.noise_variance_, model.mean_.shape))
    hidden, names = len(shares) - _FACTORS_SHOWN, feature_names(model)
    notes = [f"{hidden} more {kind}s"] if hidden > 0 else []
    notes.append("loadings are in units of the columns")
    related = np.asarray(getattr(model, "factor_correlations_", np.eye(len(shares))))
    pairs = [(i, j) for i in range(len(shares)) for j in range(i) if abs(related[i, j]) > 1e-8]
    if pairs:
        told = [f"{j + 1} and {i + 1}: {related[i, j]:.2f}" for i, j in pairs[:_FACTORS_SHOWN]]
        notes.append(f"correlations of factors {', '.join(told)}")
    return _table(names, ["", "explains"], rows, ", ".join(notes))


def _axes_table(model: Any) -> Any:
    """A row for each axis of the features: what it explains and, if they are columns, of what."""
    label, several, columns = axes_columns(model)
    weights = axes_weights(model)
    texts = [list(row) for row in zip(*columns.values(), strict=True)]
    rows = {
        f"{label} {j + 1}": (row, [] if weights is None else weights[:, j])
        for j, row in enumerate(texts)
    }
    hidden = axes_count(model) - len(texts)
    names = [] if weights is None else feature_names(model)
    more = f"{hidden} more {several}" * (hidden > 0)
    # each text takes the place of a column on the screen
    return _table(names, ["", *columns], rows, more, _COLUMNS_SHOWN + 1 - len(columns))


def _unit_table(model: Any) -> Any:
    """A row for each unit with its first entries, or for each layer of a stack."""
    kind, rows, hidden = unit_rows(model)
    names = feature_names(model) if kind == "unit" else []
    return _table(names, UNIT_HEADS[kind], rows, f"{hidden} more units" * (hidden > 0))


def _entry(value: float | str) -> str:
    """Four digits, and none of them hidden in an exponent where people would write it out."""
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def _table(
    names: list[str],
    head: Sequence[str],
    rows: Mapping[str, tuple[list[str], Any]],
    more: str,
    shown: int = _COLUMNS_SHOWN,
) -> Any:
    """By label some texts and a vector, of which the first entries are shown under their names."""
    from rich.table import Table
    from rich.text import Text

    table = Table(head[0], title_justify="left")
    for name in (*head[1:], *names[:shown]):
        table.add_column(Text(name), justify="right")
    for label, (texts, vector) in rows.items():
        table.add_row(label, *texts, *(_entry(value) for value in vector[:shown]))
    hidden = len(names) - shown
    notes = [f"{hidden} more columns" * (hidden > 0), more]
    table.caption = ", ".join(filter(None, notes)) or None
    return table
