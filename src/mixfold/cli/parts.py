"""What a fitted model is made of, as a table: components, or the factors of a single one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mixfold.cli.data import feature_names

_COLUMNS_SHOWN = 6
_COMPONENTS_SHOWN = 30
_FACTORS_SHOWN = 12


def parts_table(model: Any) -> Any:
    """The components of a mixture, or the factors of a model that has one mean."""
    return _factor_table(model) if hasattr(model, "mean_") else _component_table(model)


def explained(model: Any) -> list[float]:
    """The share of each factor in the variance of the columns (see ``_shares``)."""
    if hasattr(model, "explained_variance_ratio_"):
        return [float(share) for share in model.explained_variance_ratio_]
    return _shares(model.loadings_, model.noise_variance_, model.factor_correlations_)


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
    if hasattr(model, "weights_"):
        extras["weight"] = [f"{model.weights_[k]:.3f}" for k in shown]
    if hasattr(model, "loadings_"):
        shares = [_shares(model.loadings_[k], model.noise_variance_[k]) for k in shown]
        extras["explained"] = [f"{sum(parts):.1%}" for parts in shares]
    rows = {str(k): ([texts[k] for texts in extras.values()], centres[k]) for k in shown}
    hidden = len(centres) - len(shown)
    return _table(model, ["component", *extras], rows, f"{hidden} more components" * (hidden > 0))


def _factor_table(model: Any) -> Any:
    """The mean, the loadings of each factor with its share of the variance, and the noise."""
    import numpy as np

    shares, loadings = explained(model), model.loadings_
    rows = {"mean": ([""], model.mean_)}
    for j in range(min(len(shares), _FACTORS_SHOWN)):
        rows[f"factor {j + 1}"] = ([f"{shares[j]:.1%}"], loadings[:, j])
    rows["noise"] = ([""], np.broadcast_to(model.noise_variance_, model.mean_.shape))
    hidden = len(shares) - _FACTORS_SHOWN
    return _table(model, ["", "explains"], rows, f"{hidden} more factors" * (hidden > 0))


def _table(
    model: Any, head: Sequence[str], rows: Mapping[str, tuple[list[str], Any]], more: str
) -> Any:
    """By label some texts and a vector, of which the first entries are shown under their names."""
    from rich.table import Table
    from rich.text import Text

    names = feature_names(model)
    table = Table(head[0], title_justify="left")
    for name in (*head[1:], *names[:_COLUMNS_SHOWN]):
        table.add_column(Text(name), justify="right")
    for label, (texts, vector) in rows.items():
        table.add_row(label, *texts, *(f"{value:.4g}" for value in vector[:_COLUMNS_SHOWN]))
    hidden = len(names) - _COLUMNS_SHOWN
    notes = [f"{hidden} more columns" * (hidden > 0), more]
    table.caption = ", ".join(filter(None, notes)) or None
    return table
