"""The components of a mixture as ellipses in the plane of two columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import axes_came_first, given_or_new
from mixfold.plots.columns import column_index, column_names, matrix_of
from mixfold.plots.latent_rows import components_of
from mixfold.plots.scatter import scatter

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


def has_ellipses(model: Any) -> bool:
    """Whether the components are Gaussians of all columns, each with a mean and a covariance."""
    if _kind(model) in _PLANES:
        return hasattr(model, "weights_") and hasattr(model, "covariances_")
    return hasattr(model, "means_") and np.ndim(getattr(model, "loadings_", [[]])[0]) == 2


def _kind(model: Any) -> Any:
    """The name of the shape of the covariances; that of another family is none of them."""
    kind = getattr(model, "covariance_type", getattr(model, "family", None))
    return kind if isinstance(kind, str) else None


def plane_covariances(model: Any, columns: Sequence[int | str]) -> Array:
    """Covariance matrices of the components over two columns, of shape (K, 2, 2).

    A marginal of a Gaussian is read off its parameters, so this holds for any covariance type and
    for components with factors.
    """
    kind = _kind(model)
    if not has_ellipses(model):
        raise ValueError(
            f"covariance_type must be one of {', '.join(_PLANES)}; got {kind!r}. "
            "Draw the ellipses of other models from their own covariances."
        )
    pair = [column_index(model, column) for column in columns]
    if len(pair) != 2:
        raise ValueError(f"columns must name two columns; got {list(columns)!r}.")
    if kind in _PLANES:
        covariances = np.asarray(model.covariances_, dtype=float)
        return _PLANES[kind](covariances, pair, len(model.means_))
    return np.stack([_factor_plane(model, k, pair) for k in range(len(model.means_))])


def _factor_plane(model: Any, k: int, pair: list[int]) -> Array:
    """W W' + noise of component k, of whose noise there is one number or one for each column."""
    W = np.asarray(model.loadings_[k], dtype=float)[pair]
    noise = np.asarray(model.noise_variance_, dtype=float)[k]
    return W @ W.T + np.diag(noise[pair] if noise.ndim else [noise, noise])


def draw_ellipses(
    ax: Axes,
    model: Any,
    columns: Sequence[int | str] = (0, 1),
    *,
    radius: float = 2.0,
    colors: Sequence[Any] | None = None,
) -> list[Any]:
    """Draw the ellipses on ``ax``; gives them in the order of the components that have rows."""
    from matplotlib.patches import Ellipse

    pair = [column_index(model, column) for column in columns]
    used = getattr(model, "active_", np.ones(len(model.means_), dtype=bool))
    patches = []
    for k, covariance in enumerate(plane_covariances(model, columns)):
        if not used[k]:  # without rows: it is where its prior puts it
            continue
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


@axes_came_first(draw_ellipses)
def plot_ellipses(
    model: Any,
    X: Any = None,
    columns: Sequence[int | str] = (0, 1),
    *,
    radius: float = 2.0,
    colors: Sequence[Any] | None = None,
    max_points: int = 10_000,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw each component of a fitted mixture as an ellipse, over the rows if they are given.

    Parameters
    ----------
    model : GaussianMixture, BayesianGaussianMixture, MixtureOfPPCA or another mixture of Gaussians
        A fitted one.
    X : array-like of shape (n, n_features), optional
        Rows to draw, in the colour of their most probable component. A row that lacks one of the
        two entries has no place and is left out.
    columns : two of int or str, default (0, 1)
        The columns of the horizontal and vertical axis, by position or name.
    radius : float, default 2.0
        Size of an ellipse in standard deviations; 2 holds 86 % of a component's rows.
    colors : sequence of colors, optional
        One for each component; matplotlib's cycle by default.
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
        Its ``patches`` are the ellipses in the order of the components, of a Bayesian mixture of
        those that have rows; heavier components have bolder outlines.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture
    >>> from mixfold.plots import plot_ellipses
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)) + np.repeat([[0, 0, 0], [4, 0, 3]], 200, axis=0)
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> ax = plot_ellipses(model, X, columns=(0, 2))
    >>> len(ax.patches), len(ax.collections[0].get_offsets())
    (2, 400)
    """
    plane_covariances(model, columns)  # before anything is drawn
    named = ax is None or hasattr(model, "feature_names_in_")  # numbers are clutter elsewhere
    ax = given_or_new(ax)
    pair = [column_index(model, column) for column in columns]
    if X is not None:
        groups = components_of(model, X)
        shades = [f"C{k % 10}" for k in range(len(groups.names))] if colors is None else colors
        plane = matrix_of(model, X)[:, pair]
        seen = np.flatnonzero(np.isfinite(plane).all(axis=1))
        scatter(ax, plane[seen], groups.at(seen), list(shades), max_points, random_state)
    draw_ellipses(ax, model, columns, radius=radius, colors=colors)
    if named:
        names = column_names(model)
        ax.set_xlabel(ax.get_xlabel() or names[pair[0]])
        ax.set_ylabel(ax.get_ylabel() or names[pair[1]])
    return ax
