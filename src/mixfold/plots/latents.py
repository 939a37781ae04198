"""The expected latents of rows in the plane of two factors."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import axes_came_first, given_or_new
from mixfold.plots.ellipses import draw_ellipses
from mixfold.plots.latent_rows import latent_rows
from mixfold.plots.scatter import Groups, group_by_label, label_axes, legend, scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Ellipse


def draw_latents(
    ax: Axes,
    model: Any,
    X: Any,
    factors: tuple[int, int] = (0, 1),
    labels: Any = None,
    *,
    component: int | None = None,
    radius: float = 2.0,
    colors: Sequence[Any] | None = None,
    max_points: int = 10_000,
    random_state: int = 0,
) -> tuple[PathCollection, list[Ellipse]]:
    """Draw points and ellipses on ``ax``, and give them."""
    rows = latent_rows(model, X, factors, component)
    parts = rows.components
    groups = parts if labels is None else group_by_label(labels, rows.n_given).at(rows.chosen)
    shades = groups.colors(colors)
    points = scatter(ax, rows.plane, groups, shades, max_points, random_state)
    apart = labels is not None and len(parts.names) > 1
    outlined, outlines = (parts, ["black"] * len(parts.names)) if apart else (groups, shades)
    ellipses = _ellipses(ax, rows.plane, outlined, outlines, radius)
    note = f"{'components, ' if apart else ''}{radius:g} standard deviations"
    legend(ax, groups, shades, [_outline(note)] if ellipses else [])
    label_axes(ax, factors)
    return points, ellipses


@axes_came_first(draw_latents)
def plot_latents(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    factors: tuple[int, int] = (0, 1),
    component: int | None = None,
    radius: float = 2.0,
    colors: Sequence[Any] | None = None,
    max_points: int = 10_000,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Scatter the expected latents of rows in the plane of two factors, with ellipses.

    The ellipses summarise the points: mean and covariance of the expected latents of the rows of
    a component (the most probable one of a row) or of a label. They are not parameters of the
    model. Each component of a mixture has factors of its own, about its own mean, so the positions
    of two components in this plane say nothing about each other unless their loadings are tied;
    ``component`` shows one alone.

    Parameters
    ----------
    model : estimator
        Fitted, with ``transform``; a mixture has ``weights_``, and ``predict_component`` or
        ``predict``, too.
    X : array-like, or whatever ``model.transform`` takes
        The rows.
    labels : array-like of shape (n,), optional
        Groups to colour the rows by; -1, None and NaN mark unknown ones, drawn in grey. Without
        it, rows have the colour of their component. With it, there is an ellipse for each
        component in black if the model is a mixture, and otherwise one for each label.
    factors : two of int, default (0, 1)
        The factors of the horizontal and vertical axis, counted from 0. The axes name them from 1.
    component : int, optional
        Draw only the rows of this component of a mixture, at its own factors where each component
        has some, whatever they are in the other components.
    radius : float, default 2.0
        Size of an ellipse in standard deviations; 2 holds 86 % of the rows of a Gaussian group.
    colors : sequence of colors, optional
        One for each group.
    max_points : int, default 10000
        Of more rows than these a random sample is drawn, and the plot says so. Ellipses are always
        of all rows.
    random_state : int, default 0
        Seed of that sample and of the order in which points are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its first of ``collections`` are the points, its ``patches`` the ellipses of the groups
        with at least three rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixfold import PPCA
    >>> from mixfold.plots import plot_latents
    >>> X, y = load_iris(return_X_y=True)
    >>> kind = load_iris().target_names[y]
    >>> ax = plot_latents(PPCA(2).fit(X), X, kind)
    >>> len(ax.collections[0].get_offsets()), len(ax.patches)
    (150, 3)
    """
    ax = given_or_new(ax)
    draw_latents(
        ax, model, X, factors, labels, component=component, radius=radius, colors=colors,
        max_points=max_points, random_state=random_state,
    )  # fmt: skip
    return ax


def _ellipses(
    ax: Axes, plane: Array, groups: Groups, shades: list[Any], radius: float
) -> list[Ellipse]:
    """Ellipses of the groups with at least three rows: fewer have no area."""
    members = [plane[groups.codes == k] for k in range(len(groups.names))]
    kept = [k for k, rows in enumerate(members) if len(rows) >= 3]
    if not kept:
        return []
    summary = SimpleNamespace(
        covariance_type="full",
        means_=np.array([members[k].mean(axis=0) for k in kept]),
        covariances_=np.array([np.cov(members[k].T) for k in kept]),
        weights_=np.array([len(members[k]) / len(plane) for k in kept]),
    )
    drawn = draw_ellipses(ax, summary, radius=radius, colors=[shades[k] for k in kept])
    for ellipse in drawn:  # outlines only, above the points: groups overlap
        ellipse.set(facecolor="none", zorder=3)
    return drawn


def _outline(note: str) -> Any:
    """What the ellipses are, for the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="o", ls="", mfc="none", mec="0.2", label=note)
