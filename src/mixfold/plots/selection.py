"""A criterion such as BIC against the number of components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_criterion(
    ax: Axes, values: Mapping[str, Mapping[int, float]], *, name: str = "BIC"
) -> tuple[str, int]:
    """Draw one curve for each kind of model and ring the lowest point of all.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    values : mapping of str to mapping of int to float
        For each label the criterion by number of components; lower is better.
    name : str, default "BIC"
        What the values are.

    Returns
    -------
    tuple of (str, int)
        Label and number of components of the lowest point.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import matplotlib.pyplot as plt
    >>> figure, ax = plt.subplots()
    >>> plot_criterion(ax, {"full": {1: 9.0, 2: 5.0, 3: 7.0}, "diag": {1: 9.5, 2: 8.0}})
    ('full', 2)
    >>> plt.close(figure)
    """
    from matplotlib.ticker import MaxNLocator

    points = [(value, label, k) for label, curve in values.items() for k, value in curve.items()]
    if not points:
        raise ValueError("values is empty; give at least one criterion to draw.")
    colors: dict[str, Any] = {}
    for label, curve in values.items():
        sizes = sorted(curve)
        (line,) = ax.plot(sizes, [curve[k] for k in sizes], marker="o", markersize=4, label=label)
        colors[label] = line.get_color()
    best, label, size = min(points)
    ax.plot(
        [size], [best], "o", markersize=11, markerfacecolor="none", markeredgecolor=colors[label]
    )
    ax.set_xlabel("number of components")
    ax.set_ylabel(f"{name} (lower is better)")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(values) > 1:
        ax.legend(frameon=False)
    return label, size
