"""Decision regions of a classifier in the plane of two factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import axes_came_first, given_or_new
from mixfold.plots.classifiers import CurvedClassifier, LatentClassifier, latent_classifier
from mixfold.plots.latent_rows import LatentRows, latent_rows
from mixfold.plots.scatter import group_by_label, label_axes, legend, names_of, scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.contour import QuadContourSet

Classifier = LatentClassifier | CurvedClassifier

_BORDER = "0.25"


def draw_discriminant(
    ax: Axes,
    model: Any,
    X: Any,
    labels: Any = None,
    factors: tuple[int, int] = (0, 1),
    *,
    component: int | None = None,
    colors: Sequence[Any] | None = None,
    max_points: int = 10_000,
    random_state: int = 0,
) -> tuple[PathCollection, list[QuadContourSet]]:
    """Draw rows, regions and borders on ``ax``; gives the points and the borders."""
    classifier = latent_classifier(model, component)
    rows = latent_rows(model, X, factors, component)
    classes = names_of(model.classes_)
    minus_one = "-1" in classes  # may be one among numbers that are no integers
    told = group_by_label(model.predict(X) if labels is None else labels, rows.n_given, minus_one)
    groups = told.at(rows.chosen).among(classes)
    shades = groups.colors(colors)
    points = scatter(ax, rows.plane, groups, shades, max_points, random_state)
    borders = _regions(ax, classifier, rows, shades[: len(classes)])
    _note(ax, classifier, factors)
    legend(ax, groups, shades, [_line()] * bool(borders), len(classes))
    label_axes(ax, factors)
    return points, borders


@axes_came_first(draw_discriminant)
def plot_discriminant(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    factors: tuple[int, int] = (0, 1),
    component: int | None = None,
    colors: Sequence[Any] | None = None,
    max_points: int = 10_000,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Scatter the expected latents of rows over the regions in which the model tells each class.

    A point of the plane has the colour of the class that the model predicts for a complete row
    with these expected factors; other factors are at the mean of the rows, so that with more than
    two factors a row need not lie in the region of its prediction. Rows that lie in a region of
    another colour are mistakes, where ``labels`` are true. Borders are straight
    lines, but for those of ``MixtureOfFactorModels(discriminant='curved')``.

    Parameters
    ----------
    model : MixtureOfFactorModels, SupervisedPPCA or SupervisedMixtureOfPPCA
        Fitted to classes.
    X : array-like, or whatever ``model.transform`` takes
        The rows.
    labels : array-like of shape (n,), optional
        True classes of the rows, which give them their colours; None, NaN and -1 mark unknown
        ones, drawn in grey. Without it, rows have the colour of their predicted class.
    factors : two of int, default (0, 1)
        The factors of the horizontal and vertical axis, counted from 0. The axes name them from 1.
    component : int, optional
        Draw the factors, the rows and the classifier of one component of a mixture. It is needed
        if there are several of which each has a classifier of its own.
    colors : sequence of colors, optional
        One for each class in the order of ``classes_``, and for labels that are none of these.
    max_points : int, default 10000
        Of more rows than these a random sample is drawn, and the plot says so.
    random_state : int, default 0
        Seed of that sample and of the order in which points are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its first of ``collections`` are the points, the others the borders of the classes but the
        last one: of two classes a single line, or none if it is not in view.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixfold import SupervisedPPCA
    >>> from mixfold.plots import plot_discriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> kind = load_iris().target_names[y]
    >>> model = SupervisedPPCA(2, random_state=0).fit(X, kind)
    >>> ax = plot_discriminant(model, X, kind)
    >>> len(ax.collections[0].get_offsets()), len(ax.collections) - 1
    (150, 2)
    """
    ax = given_or_new(ax)
    draw_discriminant(
        ax, model, X, labels, factors, component=component, colors=colors,
        max_points=max_points, random_state=random_state,
    )  # fmt: skip
    return ax


def _regions(
    ax: Axes, classifier: Classifier, rows: LatentRows, shades: list[Any]
) -> list[QuadContourSet]:
    """Regions under the points, all over the view, and the borders between them."""
    from matplotlib.colors import ListedColormap

    view = (*ax.get_xlim(), *ax.get_ylim())
    steps = classifier.steps
    xs, ys = np.linspace(*view[:2], steps), np.linspace(*view[2:], steps)
    scores = classifier.scores(_grid(xs, ys, rows))
    ax.imshow(
        scores.argmax(axis=1).reshape(steps, steps),
        cmap=ListedColormap(shades),
        vmin=-0.5,
        vmax=len(shades) - 0.5,
        alpha=0.15,
        extent=view,
        origin="lower",
        aspect=ax.get_aspect(),
        interpolation="nearest",
        zorder=0,
    )
    lines = [_border(ax, xs, ys, scores, c) for c in range(len(shades) - 1)]
    ax.set(xlim=view[:2], ylim=view[2:])
    return [line for line in lines if line is not None]


def _grid(xs: Array, ys: Array, rows: LatentRows) -> Array:
    """Latents all over the plane, the other factors at their mean."""
    Z = np.tile(rows.latents.mean(axis=0), (len(xs) * len(ys), 1))
    Z[:, rows.factors[0]] = np.tile(xs, len(ys))
    Z[:, rows.factors[1]] = np.repeat(ys, len(xs))
    return Z


def _border(ax: Axes, xs: Array, ys: Array, scores: Array, c: int) -> QuadContourSet | None:
    """Where a class is as likely as the best of the others, if that is in view."""
    gap = scores[:, c] - np.delete(scores, c, axis=1).max(axis=1)
    if not gap.min() < 0 < gap.max():
        return None
    return ax.contour(xs, ys, gap.reshape(len(ys), len(xs)), levels=[0.0], colors=_BORDER,
                      linewidths=1.2, zorder=1.5)  # fmt: skip


def _line() -> Any:
    """What the borders are, for the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], c=_BORDER, lw=1.2, label="discriminant")


def _note(ax: Axes, classifier: Classifier, factors: tuple[int, int]) -> None:
    """Say where the other factors are, if it matters."""
    if classifier.sees_others(factors):
        ax.set_title("other factors at their mean", fontsize=8, color="0.4", loc="left")
