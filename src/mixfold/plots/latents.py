"""The expected latents of rows in the plane of two factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.ellipses import plot_ellipses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Ellipse

_UNKNOWN = "0.75"  # colour of rows without a label
_LEGEND = 20  # names in the legend at most


@dataclass(frozen=True, slots=True)
class _Groups:
    """Which rows share a colour: codes of the rows into names; -1 has none."""

    codes: Array
    names: list[str]

    def colors(self, given: Sequence[Any] | None) -> list[Any]:
        from matplotlib import colormaps

        n = len(self.names)
        if given is not None:
            if len(given) < n:
                raise ValueError(
                    f"colors must be one for each of the {n} groups; got {len(given)}."
                )
            return list(given[:n])
        if n <= 10:
            return [f"C{k}" for k in range(n)]
        return list(colormaps["tab20" if n <= 20 else "turbo"].resampled(n)(np.arange(n)))


def plot_latents(
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
    """Scatter the expected latents of rows in the plane of two factors, with ellipses.

    The ellipses summarise the points: mean and covariance of the expected latents of the rows of
    a component (the most probable one of a row) or of a label. They are not parameters of the
    model. Each component of a mixture has factors of its own, about its own mean, so the positions
    of two components in this plane say nothing about each other unless their loadings are tied;
    ``component`` shows one alone.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    model : estimator
        Fitted, with ``transform``; a mixture has ``weights_`` and ``predict``, too.
    X : array-like, or whatever ``model.transform`` takes
        The rows.
    factors : two of int, default (0, 1)
        The factors of the horizontal and vertical axis, counted from 0. The axes name them from 1.
    labels : array-like of shape (n,), optional
        Groups to colour the rows by; -1, None and NaN mark unknown ones, drawn in grey. Without
        it, rows have the colour of their component. With it, there is an ellipse for each
        component in black if the model is a mixture, and otherwise one for each label.
    component : int, optional
        Draw only the rows of this component of a mixture.
    radius : float, default 2.0
        Size of an ellipse in standard deviations; 2 holds 86 % of the rows of a Gaussian group.
    colors : sequence of colors, optional
        One for each group.
    max_points : int, default 10000
        Of more rows than these a random sample is drawn, and the plot says so. Ellipses are always
        of all rows.
    random_state : int, default 0
        Seed of that sample and of the order in which points are drawn.

    Returns
    -------
    tuple of (matplotlib.collections.PathCollection, list of matplotlib.patches.Ellipse)
        The points, and the ellipses of the groups with at least three rows.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import FactorAnalysis
    >>> iris = load_iris()
    >>> figure, ax = plt.subplots()
    >>> model = FactorAnalysis(2, random_state=0).fit(iris.data)
    >>> points, ellipses = plot_latents(ax, model, iris.data, labels=iris.target)
    >>> len(points.get_offsets()), len(ellipses)
    (150, 3)
    >>> plt.close(figure)
    """
    if max_points < 1:
        raise ValueError(f"max_points must be at least 1; got {max_points}.")
    latents = np.asarray(model.transform(X), dtype=float)
    _check_factors(factors, latents.shape[1])
    plane = latents[:, list(factors)]
    parts = _components(model, X, len(plane))
    groups = parts if labels is None else _labelled(labels, len(plane))
    if component is not None:
        rows = _rows_of(component, parts)
        plane, parts = plane[rows], _Groups(parts.codes[rows], parts.names)
        groups = _Groups(groups.codes[rows], groups.names)
    shades = groups.colors(colors)
    points = _scatter(ax, plane, groups, shades, max_points, random_state)
    apart = labels is not None and len(parts.names) > 1
    outlined, outlines = (parts, ["black"] * len(parts.names)) if apart else (groups, shades)
    ellipses = _ellipses(ax, plane, outlined, outlines, radius)
    note = f"{'components, ' if apart else ''}{radius:g} standard deviations"
    _legend(ax, groups, shades, note if ellipses else "")
    ax.set_xlabel(f"factor {factors[0] + 1}")
    ax.set_ylabel(f"factor {factors[1] + 1}")
    return points, ellipses


def _check_factors(factors: tuple[int, int], size: int) -> None:
    if len(factors) != 2 or not all(0 <= factor < size for factor in factors):
        remedy = " The model needs two factors at least." if size < 2 else ""
        raise ValueError(
            f"factors must be two positions from 0 to {size - 1}; got {tuple(factors)!r}.{remedy}"
        )


def _components(model: Any, X: Any, n_rows: int) -> _Groups:
    """The most probable component of each row; a single group if the model has no mixture."""
    if not hasattr(model, "weights_"):
        return _Groups(np.zeros(n_rows, dtype=int), [""])
    size = len(model.weights_)
    return _Groups(np.asarray(model.predict(X)), [f"component {k}" for k in range(size)])


def _rows_of(component: int, parts: _Groups) -> Array:
    if not 0 <= component < len(parts.names):
        raise ValueError(f"component must be from 0 to {len(parts.names) - 1}; got {component}.")
    rows = np.flatnonzero(parts.codes == component)
    if rows.size == 0:
        raise ValueError(f"component: none of the rows is of component {component}; draw another.")
    return rows


def _labelled(labels: Any, n_rows: int) -> _Groups:
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise ValueError(
            f"labels must be one for each of the {n_rows} rows; got an array of shape "
            f"{values.shape}."
        )
    unknown = np.fromiter(map(_is_unknown, values.tolist()), dtype=bool, count=n_rows)
    if values.dtype == object:  # may hold what cannot be sorted together
        values = np.where(unknown, "", values).astype(str)
    codes = np.full(n_rows, -1)
    names, codes[~unknown] = np.unique(values[~unknown], return_inverse=True)
    return _Groups(codes, [str(name) for name in names])


def _is_unknown(label: Any) -> bool:
    # pandas' NA and NaT are told by name: comparing NA has no truth value.
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return bool(label != label or label == -1)


def _scatter(
    ax: Axes, plane: Array, groups: _Groups, shades: list[Any], most: int, seed: int
) -> PathCollection:
    """All points at once and in random order: no group hides the others."""
    from matplotlib.colors import to_rgba_array

    shown = np.random.default_rng(seed).permutation(len(plane))[:most]
    palette = to_rgba_array([*shades, _UNKNOWN])  # code -1 is the last
    if len(shown) < len(plane):
        note = f"{len(shown):,} of {len(plane):,} rows drawn"
        ax.set_title(note, fontsize=8, color="0.4", loc="right")
    return ax.scatter(
        plane[shown, 0],
        plane[shown, 1],
        s=float(np.clip(12_000 / max(1, len(shown)), 3, 14)),
        c=palette[groups.codes[shown]],
        alpha=0.7,
        linewidths=0,
        rasterized=len(shown) > 2000,  # a drawing of so many circles would be huge
    )


def _ellipses(
    ax: Axes, plane: Array, groups: _Groups, shades: list[Any], radius: float
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
    drawn = plot_ellipses(ax, summary, radius=radius, colors=[shades[k] for k in kept])
    for ellipse in drawn:  # outlines only, above the points: groups overlap
        ellipse.set(facecolor="none", zorder=3)
    return drawn


def _legend(ax: Axes, groups: _Groups, shades: list[Any], note: str) -> None:
    """Names of the largest groups that have rows, and what the ellipses are."""
    from matplotlib.lines import Line2D

    counts = np.bincount(groups.codes + 1, minlength=len(groups.names) + 1)
    present = [k for k in np.argsort(-counts[1:], kind="stable") if counts[k + 1]]
    entries = [(groups.names[k], shades[k]) for k in sorted(present[:_LEGEND])]
    if counts[0]:
        entries.append(("unlabelled", _UNKNOWN))
    if len(present) > _LEGEND:
        entries.append((f"and {len(present) - _LEGEND} more", "none"))
    handles = [Line2D([], [], marker="o", ls="", c=c, label=name) for name, c in entries if name]
    if note:
        handles.append(Line2D([], [], marker="o", ls="", mfc="none", mec="0.2", label=note))
    if handles:
        ax.legend(handles=handles, edgecolor="none", framealpha=0.7, fontsize=8, markerscale=0.7)
