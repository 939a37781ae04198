"""The components of a Gaussian mixture as ellipses in the plane of two columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.columns import column_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Covariances of all components over two columns (i, j), by the shape in which they are published.
_PLANES: dict[str, Callable[[Array, list[int], int], Array]] = {
    "full": lambda c, ij, k: c[:, ij][:, :, ij],
    "tied": lambda c, ij, k: np.broadcast_to(c[ij][:, ij], (k, 2, 2)),
    "diag": lambda c, ij, k: c[:, ij, None] * np.eye(2),
    "spherical": lambda c, ij, k: c[:, None, None] * np.eye(2),
    "tied-diag": lambda c, ij, k: np.broadcast_to(c[ij] * np.eye(2), (k, 2, 2)),
    "tied-spherical": lambda c, ij, k: np.broadcast_to(c * np.eye(2), (k, 2, 2)),
}


def plane_covariances(model: Any, columns: Sequence[int | str]) -> Array:
    """Covariance matrices of the components over two columns, of shape (K, 2, 2).

    A marginal of a Gaussian is read off its parameters, so this holds for any covariance type.
    """
    if model.covariance_type not in _PLANES:
        raise ValueError(
            f"covariance_type must be one of {', '.join(_PLANES)}; got {model.covariance_type!r}. "
            "Draw the ellipses of other models from their own covariances."
        )
    pair = [column_index(model, column) for column in columns]
    if len(pair) != 2:
        raise ValueError(f"columns must name two columns; got {list(columns)!r}.")
    covariances = np.asarray(model.covariances_, dtype=float)
    return _PLANES[model.covariance_type](covariances, pair, len(model.means_))


def plot_ellipses(
    ax: Axes,
    model: Any,
    columns: Sequence[int | str] = (0, 1),
    *,
    radius: float = 2.0,
    colors: Sequence[Any] | None = None,
) -> list[Any]:
    """Draw each component of a fitted Gaussian mixture as an ellipse.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    model : GaussianMixture
        A fitted mixture.
    columns : two of int or str, default (0, 1)
        The columns of the horizontal and vertical axis, by position or name.
    radius : float, default 2.0
        Size of an ellipse in standard deviations; 2 holds 86 % of a component's rows.
    colors : sequence of colors, optional
        One for each component; matplotlib's cycle by default.

    Returns
    -------
    list of matplotlib.patches.Ellipse
        In the order of the components. Heavier components have bolder outlines.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import matplotlib.pyplot as plt, numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> figure, ax = plt.subplots()
    >>> len(plot_ellipses(ax, GaussianMixture(2, random_state=0).fit(X), columns=(0, 2)))
    2
    >>> plt.close(figure)
    """
    from matplotlib.patches import Ellipse

    pair = [column_index(model, column) for column in columns]
    patches = []
    for k, covariance in enumerate(plane_covariances(model, columns)):
        variances, axes = np.linalg.eigh(covariance)
        small, large = 2 * radius * np.sqrt(variances.clip(min=0))
        color = f"C{k % 10}" if colors is None else colors[k]
        ellipse = Ellipse(
            tuple(model.means_[k, pair]),
            width=large,
            height=small,
            angle=float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))),
            facecolor=(color, 0.12) if isinstance(color, str) else (*color[:3], 0.12),
            edgecolor=color,
            linewidth=0.8 + 2.2 * float(model.weights_[k]),
        )
        patches.append(ax.add_patch(ellipse))
    ax.autoscale_view()
    return patches
