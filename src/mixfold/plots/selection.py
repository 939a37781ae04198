"""A criterion such as BIC against the number of components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import axes_came_first, given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_criterion(
    ax: Axes, values: Mapping[str, Mapping[int, float]], *, name: str = "BIC"
) -> tuple[str, int]:
    """Draw the curves on ``ax``; gives label and size of the lowest point."""
    points = [(value, label, k) for label, curve in values.items() for k, value in curve.items()]
    if not points:
        raise ValueError("values is empty; give at least one criterion to draw.")
    colors: dict[str, Any] = {}
    for label, curve in values.items():
        sizes = sorted(curve)
        (line,) = ax.plot(sizes, [curve[k] for k in sizes], marker="o", markersize=4, label=label)
        colors[label] = line.get_color()
    best, label, size = min(points)
    _ring(ax, size, best, colors[label])
    _finish(ax, f"{name} (lower is better)", legend=len(values) > 1)
    return label, size


@axes_came_first(draw_criterion)
def plot_criterion(
    values: Mapping[str, Mapping[int, float]], *, name: str = "BIC", ax: Axes | None = None
) -> Axes:
    """Draw one curve for each kind of model and ring the lowest point of all.

    Parameters
    ----------
    values : mapping of str to mapping of int to float
        For each label the criterion by number of components; lower is better.
    name : str, default "BIC"
        What the values are.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each label, in their order, and as the last one the ring.

    Examples
    --------
    >>> from mixfold.plots import plot_criterion
    >>> ax = plot_criterion({"full": {1: 9.0, 2: 5.0, 3: 7.0}, "diag": {1: 9.5, 2: 8.0}})
    >>> ax.lines[-1].get_xydata().tolist()
    [[2.0, 5.0]]
    """
    ax = given_or_new(ax)
    draw_criterion(ax, values, name=name)
    return ax


# What each criterion of a search is called.
_NAMES = {
    "bic": "BIC",
    "aic": "AIC",
    "icl": "ICL",
    "held-out": "held-out log-density per row",
    "bound": "bound on the log evidence",
    "log-loss": "held-out log loss per row",
    "squared-error": "held-out squared error",
    "gap": "gap statistic",
}


def draw_search(ax: Axes, search: Any, *, criterion: str | None = None) -> tuple[str, int]:
    """Draw the table of a search on ``ax``; gives label and size of what is ringed."""
    from mixfold.estimators.search.results import CRITERIA, WITH_ERRORS

    wanted = search.criterion if criterion is None else criterion
    if wanted not in _NAMES:
        raise ValueError(f"criterion must be one of {', '.join(_NAMES)}; got {criterion!r}.")
    name, (column, sign) = _NAMES[wanted], CRITERIA[wanted]
    table = search.results_
    values = np.asarray(table.get(column, np.full(len(table["label"]), np.nan)), dtype=float)
    if not np.isfinite(values).any():
        raise ValueError(
            f"The search has no {name}: the column {column!r} of results_ is empty. Draw another "
            "criterion, or search again with this one."
        )
    kept = np.isfinite(values) & ~_exclude_degenerate(search, wanted, values)
    best = search.best_index_
    if wanted != search.criterion:
        best = int(np.argmin(np.where(kept, sign * values, np.inf)))
    errors = table[f"{column}_se"] if wanted in WITH_ERRORS else np.full(len(values), np.nan)
    labels = list(dict.fromkeys(table["label"]))
    colors = {}
    for label in labels:
        own = np.array([other == label for other in table["label"]])
        colors[label] = _curve(ax, table["n_components"], values, errors, own, kept, label)
    # At the end: each call that draws takes a colour.
    _ring(ax, int(table["n_components"][best]), values[best], colors[table["label"][best]])
    if (np.isfinite(values) & ~kept).any():
        ax.plot([], [], "x", color="0.4", markersize=5, label="a variance at its floor")
    better = "higher" if sign < 0 else "lower"
    _finish(ax, f"{name} ({better} is better)", legend=len(labels) > 1 or not kept.all())
    return str(table["label"][best]), int(table["n_components"][best])


@axes_came_first(draw_search)
def plot_search(search: Any, *, criterion: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the table of a :class:`mixfold.MixtureSearch` and ring the best setting.

    Parameters
    ----------
    search : MixtureSearch
        A fitted one.
    criterion : {'bic', 'aic', 'icl', 'held-out', 'bound', 'log-loss', 'squared-error', 'gap'}, \
optional
        What to draw; that of the search by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        A curve for each kind of model, and a ring around the search's own choice, or the best by
        another criterion.

    Notes
    -----
    Bars are one standard error of held-out values. Crosses are fits in which a variance was held
    at its floor; curves leave them out, as the search does.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture, MixtureSearch
    >>> from mixfold.plots import plot_search
    >>> rows = np.random.default_rng(0).normal(size=(200, 2)) + 6 * (np.arange(200)[:, None] % 2)
    >>> settings = {"covariance_type": ["full", "diag"]}
    >>> search = MixtureSearch(GaussianMixture(), settings, n_components=[1, 2, 3]).fit(rows)
    >>> ax = plot_search(search)
    >>> ax.get_ylabel()
    'BIC (lower is better)'
    """
    ax = given_or_new(ax)
    draw_search(ax, search, criterion=criterion)
    return ax


def _exclude_degenerate(search: Any, criterion: str, values: Array) -> Array:
    """Settings that cannot win, because a likelihood says how small the floor of a variance is."""
    degenerate = np.asarray(search.results_["degenerate"])
    deceived = criterion in ("bic", "aic", "icl") and not search.allow_degenerate
    if not deceived or degenerate[np.isfinite(values)].all():
        return np.zeros(len(degenerate), dtype=bool)
    return degenerate


def _curve(
    ax: Axes, sizes: Array, values: Array, errors: Array, own: Array, kept: Array, label: str
) -> Any:
    """One kind of model: a line through what counts, crosses for what does not."""
    shown = own & kept
    bars = None if np.isnan(errors[shown]).all() else errors[shown]
    line = ax.errorbar(
        sizes[shown], values[shown], bars, marker="o", markersize=4, capsize=2, label=label
    )
    color = line[0].get_color()
    apart = own & ~kept & np.isfinite(values)
    if apart.any():
        ax.plot(sizes[apart], values[apart], "x", color=color, markersize=5)
    return color


def _ring(ax: Axes, size: int, value: float, color: Any) -> None:
    ax.plot([size], [value], "o", markersize=11, markerfacecolor="none", markeredgecolor=color)


def _finish(ax: Axes, ylabel: str, legend: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("number of components")
    ax.set_ylabel(ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if legend:
        ax.legend(frameon=False)
