"""What sets groups apart: their profiles over the columns, and pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import given_or_new
from mixfold.plots.columns import choose_columns, column_names, matrix_of
from mixfold.plots.ellipses import draw_ellipses, has_ellipses
from mixfold.plots.latent_rows import groups_of
from mixfold.plots.scatter import Groups, legend, scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 24  # columns of a profile, unless they are named
_PAIRS = 4  # columns of which pairs are drawn, unless they are named
_INCHES = 1.9  # side of a panel


def plot_profiles(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    columns: Sequence[int | str] | None = None,
    colors: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of each column in each group, in standard deviations from that of all rows.

    Parameters
    ----------
    model : estimator
        A fitted mixture or clustering.
    X : array-like of shape (n, n_features)
        The rows; NaN marks a missing entry. Means are those of the entries that are there.
    labels : array-like of shape (n,), optional
        Groups of the rows; -1, None and NaN mark unknown ones, which are not drawn. Without it,
        each row is of its most probable component or cluster.
    columns : sequence of int or str, optional
        Which ones, by position or name, in this order; by default the 24 by whose means the groups
        differ most, in the order of the table.
    colors : sequence of colors, optional
        One for each group.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each group that has rows, whose name and number of rows are in the legend. A
        column without an entry in a group is a gap in its line.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mixfold import GaussianMixture
    >>> from mixfold.plots import plot_profiles
    >>> wine = load_wine(as_frame=True).data
    >>> model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(wine)
    >>> ax = plot_profiles(model, wine)
    >>> len(ax.lines[0].get_xdata())
    13
    """
    rows = matrix_of(model, X)
    groups = groups_of(model, X, labels)
    shades = groups.colors(colors)
    means, sizes = _group_means(rows, groups)
    chosen = (
        sorted(_telling(means, sizes)[:_MOST])
        if columns is None
        else choose_columns(model, columns)
    )
    ax = given_or_new(ax, (max(4.8, 1.6 + 0.36 * len(chosen)), 4.0))
    lines = []
    for k in np.flatnonzero(sizes):
        name = f"{groups.names[k]} ({sizes[k]:,})".lstrip()
        lines += ax.plot(means[k, chosen], marker="o", markersize=4, color=shades[k], label=name)
    ax.axhline(0, color="0.7", linewidth=1, zorder=1)
    names = column_names(model)
    tilt: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(chosen)), [names[j] for j in chosen], fontsize=8, **tilt)
    ax.set_ylabel("standard deviations from the mean")
    ax.margins(x=0.03)
    across = ax.get_window_extent().width / ax.figure.dpi  # inches
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    ax.legend(handles=lines, frameon=False, fontsize=8, ncols=_entries_in(across, lines), **above)
    return ax


def plot_pairs(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    columns: Sequence[int | str] | None = None,
    radius: float = 2.0,
    colors: Sequence[Any] | None = None,
    max_points: int = 2_000,
    random_state: int = 0,
    ax: Any = None,
) -> Any:
    """Scatter rows in the plane of each pair of columns, with the components as ellipses.

    Parameters
    ----------
    model : estimator
        A fitted mixture or clustering. Components of Gaussians, also those with factors, are drawn
        as ellipses.
    X : array-like of shape (n, n_features)
        The rows. One that lacks an entry is left out of the panels that would need it.
    labels : array-like of shape (n,), optional
        Groups to colour the rows by; -1, None and NaN mark unknown ones, drawn in grey. Without
        it, rows have the colour of their component or cluster.
    columns : sequence of int or str, optional
        Two or more, by position or name; by default the four by whose means the groups differ
        most, in the order of the table.
    radius : float, default 2.0
        Size of an ellipse in standard deviations; 2 holds 86 % of a component's rows.
    colors : sequence of colors, optional
        One for each group.
    max_points : int, default 2000
        Of more rows than these a random sample is drawn, and the plot says so.
    random_state : int, default 0
        Seed of that sample and of the order in which points are drawn.
    ax : array of matplotlib.axes.Axes, of shape (n_columns, n_columns), optional
        Where to draw. Without it a figure is made with ``pyplot``; it is
        ``returned[0, 0].figure``, to save and to close.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, of shape (n_columns, n_columns)
        Histograms of the groups on the diagonal, pairs below it; panels above it are empty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixfold import GaussianMixture
    >>> from mixfold.plots import plot_pairs
    >>> iris = load_iris(as_frame=True).data
    >>> panels = plot_pairs(GaussianMixture(3, random_state=0).fit(iris), iris)
    >>> panels.shape, len(panels[1, 0].patches)
    ((4, 4), 3)
    """
    rows = matrix_of(model, X)
    groups = groups_of(model, X, labels)
    shades = groups.colors(colors)
    if columns is None:
        chosen = sorted(_telling(*_group_means(rows, groups))[:_PAIRS])
    else:
        chosen = choose_columns(model, columns)
    if len(chosen) < 2:
        raise ValueError(f"columns must name two columns at least; got {len(chosen)}.")
    names = column_names(model)
    panels = _panels(len(chosen), ax)
    outlines = labels is None and has_ellipses(model)
    for i, row in enumerate(chosen):
        for j, column in enumerate(chosen[:i]):
            seen = np.flatnonzero(np.isfinite(rows[:, np.array([column, row])]).all(axis=1))
            plane = rows[np.ix_(seen, np.array([column, row]))]
            scatter(panels[i, j], plane, groups.at(seen), shades, max_points, random_state)
            if i + j > 1:
                panels[i, j].set_title("", loc="right")  # said once
            if outlines:
                draw_ellipses(panels[i, j], model, (column, row), radius=radius, colors=shades)
        _histograms(panels[i, i], rows[:, row], groups, shades)
        for blank in panels[i, i + 1 :]:
            blank.set_axis_off()
    for k, column in enumerate(chosen):
        panels[-1, k].set_xlabel(names[column], fontsize=8)
        if k:
            panels[k, 0].set_ylabel(names[column], fontsize=8)
    for panel in panels.flat:
        panel.tick_params(labelsize=7)
    legend(panels[0, -1], groups, shades, [])
    return panels


def _entries_in(inches: float, lines: Sequence[Any]) -> int:
    """Entries of a legend side by side, of which each takes its name and 0.5 inches."""
    longest = max(len(str(line.get_label())) for line in lines)
    return max(1, min(len(lines), int(inches / (0.5 + 0.065 * longest))))


def _group_means(rows: Array, groups: Groups) -> tuple[Array, Array]:
    """Means (K, D) of the observed entries in units of the spread of each column, sizes (K,)."""
    seen = np.isfinite(rows)
    count = np.maximum(seen.sum(axis=0), 1)
    filled = np.where(seen, rows, 0.0)
    mean = filled.sum(axis=0) / count
    apart = np.where(seen, rows - mean, 0.0)
    spread = np.sqrt((apart**2).sum(axis=0) / count)
    apart /= np.where(spread > 0, spread, 1.0)
    means = np.full((len(groups.names), rows.shape[1]), np.nan)
    for k in range(len(groups.names)):
        own = groups.codes == k
        number = seen[own].sum(axis=0)
        np.divide(apart[own].sum(axis=0), number, out=means[k], where=number > 0)
    return means, np.bincount(groups.codes[groups.codes >= 0], minlength=len(groups.names))


def _telling(means: Array, sizes: Array) -> list[int]:
    """Columns by the variance of the means of the groups, the largest first."""
    between = sizes @ np.nan_to_num(means) ** 2
    return [int(j) for j in np.argsort(-between, kind="stable")]


def _panels(n: int, ax: Any) -> Any:
    if ax is None:
        import matplotlib.pyplot as plt

        size = (max(4.2, _INCHES * n), max(4.0, _INCHES * n))
        _, made = plt.subplots(n, n, sharex="col", squeeze=False, figsize=size,
                               layout="constrained")  # fmt: skip
        return made
    given = np.asarray(ax, dtype=object)
    if given.shape != (n, n):
        raise ValueError(
            f"ax must be axes in {n} rows and {n} columns, one for each pair of columns, as "
            f"pyplot.subplots({n}, {n})[1] gives them; got the shape {given.shape}."
        )
    return given


def _histograms(ax: Axes, values: Array, groups: Groups, shades: list[Any]) -> None:
    """Of each group, on one scale: areas are numbers of rows."""
    seen = np.isfinite(values)
    edges = np.histogram_bin_edges(values[seen], bins=min(30, max(6, int(seen.sum() ** 0.5))))
    for k, color in enumerate(shades):
        own = values[seen & (groups.codes == k)]
        if len(own):
            ax.hist(own, bins=edges.tolist(), color=color, alpha=0.45, histtype="stepfilled")
    ax.set_yticks([])
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
