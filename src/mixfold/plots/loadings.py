"""What a factor model says of its columns: variance by factor, loadings, and rows over loadings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import given_or_new
from mixfold.plots.columns import choose_columns, column_names
from mixfold.plots.latent_rows import latent_rows
from mixfold.plots.scatter import group_by_label, label_axes, legend, scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = 240  # cells of a map of loadings in which numbers can be read
_LINE, _CHARACTER = 10.0, 4.6  # height of a name and width of a character of it, in points
_REACH = 0.85  # of the longest arrow, in units of the farthest point


def plot_scree(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance that each factor explains, and their sum (a scree plot).

    Parameters
    ----------
    model : estimator
        Fitted, with ``explained_variance_ratio_`` (PPCA, KernelPCA, scikit-learn's PCA), or with
        ``loadings_`` and ``noise_variance_`` (FactorAnalysis).
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``patches`` are the bars, its first line the sums. Of factor analysis shares are those
        of columns of variance one. A dashed line is the share that an axis of noise has, where the
        noise is one number.

    Examples
    --------
    Axes of a model with fewer are not drawn: fit all of them to see where they end.

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mixfold import PPCA
    >>> from mixfold.plots import plot_scree
    >>> X = StandardScaler().fit_transform(load_wine().data)
    >>> ax = plot_scree(PPCA().fit(X))
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches[:3]]
    [0.36, 0.19, 0.11]
    """
    from matplotlib.ticker import MaxNLocator

    shares = _shares(model)
    ax = given_or_new(ax)
    places = np.arange(1, len(shares) + 1)
    ax.bar(places, shares, color="C0", alpha=0.7, label="each")
    ax.plot(places, shares.cumsum(), color="C1", marker="o", markersize=4, label="together")
    noise = _noise_share(model, shares)
    if noise is not None:
        ax.axhline(noise, color="0.4", linestyle="--", linewidth=1, label="an axis of noise")
    ax.set_xlabel("factor")
    ax.set_ylabel("share of the variance")
    ax.set_ylim(0, 1.02)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False)
    return ax


def plot_loadings(
    model: Any,
    *,
    factors: Sequence[int] | None = None,
    columns: Sequence[int | str] | None = None,
    component: int | None = None,
    scale: Literal["correlation", "units"] = "correlation",
    cmap: str = "RdBu_r",
    ax: Axes | None = None,
) -> Axes:
    """Draw how columns (rows of the picture) depend on the factors, as a map of colours.

    Parameters
    ----------
    model : estimator
        Fitted, with ``loadings_`` and ``noise_variance_`` (PPCA, FactorAnalysis, SupervisedPPCA,
        MixtureOfPPCA, MixtureOfFactorAnalyzers), or ``components_`` as scikit-learn has it.
    factors : sequence of int, optional
        Which ones, counted from 0, in this order; all by default. The picture counts from 1.
    columns : sequence of int or str, optional
        Which ones, by position or name, in this order; all by default.
    component : int, optional
        Which component of a mixture; it is needed if there are several.
    scale : "correlation" or "units", default "correlation"
        Loadings of columns of variance one under the model: for factors that are uncorrelated the
        correlations of columns and factors. Or loadings in the units of the columns.
    cmap : str, default "RdBu_r"
        A colour map of matplotlib, a diverging one: zero is in its middle.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its only image holds the loadings in the order drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mixfold import FactorAnalysis
    >>> from mixfold.plots import plot_loadings
    >>> wine = load_wine(as_frame=True).data
    >>> ax = plot_loadings(FactorAnalysis(3, rotation="varimax").fit(wine))
    >>> ax.images[0].get_array().shape
    (13, 3)
    """
    if scale not in ("correlation", "units"):
        raise ValueError(f"scale must be 'correlation' or 'units'; got {scale!r}.")
    W, spread = loadings_of(model, component)
    rows = choose_columns(model, columns)
    shown = _choose_factors(factors, W.shape[1])
    table = (W / spread[:, None] if scale == "correlation" else W)[np.ix_(rows, shown)]
    ax = given_or_new(ax, (1.9 + 0.75 * len(shown) + 1.0, max(2.4, 0.9 + 0.27 * len(rows))))
    end = 1.0 if scale == "correlation" else float(np.abs(table).max()) or 1.0
    image = ax.imshow(table, cmap=cmap, vmin=-end, vmax=end, aspect="auto")
    ax.set_xticks(range(len(shown)), [f"factor {f + 1}" for f in shown])
    names = column_names(model)
    ax.set_yticks(range(len(rows)), [names[j] for j in rows])
    ax.tick_params(length=0, labelsize=8)
    if table.size <= _NUMBERS:
        _write_numbers(ax, table, end)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label("correlation with the factor" if scale == "correlation" else "loading")
    bar.outline.set_visible(False)
    return ax


def plot_biplot(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    factors: tuple[int, int] = (0, 1),
    columns: Sequence[int | str] | None = None,
    component: int | None = None,
    colors: Sequence[Any] | None = None,
    max_points: int = 10_000,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Scatter the expected factors of rows, with an arrow for each column (a biplot).

    Parameters
    ----------
    model : estimator
        Fitted, with ``transform`` and loadings, see `plot_loadings`.
    X : array-like, or whatever ``model.transform`` takes
        The rows.
    labels : array-like of shape (n,), optional
        Groups to colour the rows by; -1, None and NaN mark unknown ones, drawn in grey. Without
        it, rows have the colour of their component.
    factors : two of int, default (0, 1)
        The factors of the horizontal and vertical axis, counted from 0. The axes name them from 1.
    columns : sequence of int or str, optional
        Columns that have an arrow, by position or name; all by default.
    component : int, optional
        Draw the rows and loadings of one component of a mixture; it is needed if there are several.
    colors : sequence of colors, optional
        One for each group.
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
        Its first of ``collections`` are the points; its ``texts`` name the columns at the ends of
        their arrows.

    Notes
    -----
    The arrow of a column is its loadings on the two factors, of columns of variance one: columns
    that go together point the same way, and a row lies in the direction of columns of which it has
    much. All arrows are longer by one factor, so that they reach as far as the points.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mixfold import PPCA
    >>> from mixfold.plots import plot_biplot
    >>> wine = load_wine(as_frame=True)
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(wine.data)
    >>> kinds = [f"cultivar {k}" for k in wine.target]
    >>> ax = plot_biplot(PPCA(2).fit(X), X, kinds, columns=["alcohol", "hue", "flavanoids"])
    >>> [name.get_text() for name in ax.texts]
    ['alcohol', 'hue', 'flavanoids']
    """
    W, spread = loadings_of(model, component)
    rows = latent_rows(model, X, factors, component)
    groups = (
        rows.components if labels is None else group_by_label(labels, rows.n_given).at(rows.chosen)
    )
    chosen = choose_columns(model, columns)
    ax = given_or_new(ax, (6.4, 5.2))
    shades = groups.colors(colors)
    scatter(ax, rows.plane, groups, shades, max_points, random_state)
    arrows = (W / spread[:, None])[np.ix_(chosen, list(factors))]
    longest = float(np.linalg.norm(arrows, axis=1).max(initial=0.0))
    farthest = float(np.linalg.norm(rows.plane, axis=1).max(initial=0.0))
    arrows = arrows * (_REACH * farthest / longest if longest else 1.0)
    names = column_names(model)
    ax.quiver(
        *np.zeros((2, len(chosen))), *arrows.T, angles="xy", scale_units="xy", scale=1,
        color="0.15", width=0.004, zorder=3,
    )  # fmt: skip
    _name_arrows(ax, arrows, [names[j] for j in chosen])
    ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    ax.axvline(0, color="0.85", linewidth=0.8, zorder=0)
    legend(ax, groups, shades, [])
    label_axes(ax, factors)
    return ax


def loadings_of(model: Any, component: int | None = None) -> tuple[Array, Array]:
    """Loadings (D, d) in the units of the columns, and the deviations (D,) that the model tells.

    Of a mixture those within a component.
    """
    found = getattr(model, "loadings_", getattr(model, "mixing_", None))
    if found is None and hasattr(model, "components_") and hasattr(model, "noise_variance_"):
        found = _scaled_axes(model)
    if found is None:
        raise TypeError(
            "model must be a fitted factor model with loadings_, such as PPCA or FactorAnalysis; "
            f"got {type(model).__name__}."
        )
    noise = np.asarray(getattr(model, "noise_variance_", 0.0), dtype=float)
    if hasattr(model, "means_") and len(np.shape(found[0])) == 2:
        found, noise = _within(model, component, found, noise)
    elif component is not None:
        raise ValueError(
            f"component is for mixtures; {type(model).__name__} has a single one. Leave it out."
        )
    W = np.asarray(found, dtype=float)
    R = getattr(model, "factor_correlations_", None)
    explained = ((W if R is None else W @ np.asarray(R)) * W).sum(axis=1)
    return W, np.sqrt(np.maximum(explained + noise, np.finfo(float).tiny))


def _within(model: Any, component: int | None, found: Any, noise: Array) -> tuple[Any, Array]:
    size = len(model.means_)
    if component is None and size == 1:
        component = 0
    if component is None or not 0 <= component < size:
        raise ValueError(
            f"component must be from 0 to {size - 1}, since each component has loadings of its "
            f"own; got {component}."
        )
    return found[component], noise[component]


def _scaled_axes(model: Any) -> Array:
    """Loadings of scikit-learn's models: axes of PCA times deviations; of others as they are."""
    axes = np.asarray(model.components_, dtype=float).T
    lengths = getattr(model, "explained_variance_", None)
    if lengths is None:
        return axes
    return axes * np.sqrt(np.maximum(np.asarray(lengths) - model.noise_variance_, 0.0))


def _shares(model: Any) -> Array:
    ratios = getattr(model, "explained_variance_ratio_", None)
    if ratios is not None:
        return np.asarray(ratios, dtype=float)
    W, spread = loadings_of(model)
    return np.asarray(((W / spread[:, None]) ** 2).mean(axis=0))


def _noise_share(model: Any, shares: Array) -> float | None:
    """The share of the variance that lies along one axis of noise; None if there is none such."""
    noise = getattr(model, "noise_variance_", None)
    lengths = getattr(model, "explained_variance_", None)
    if noise is None or lengths is None or np.ndim(noise) or shares[0] <= 0:
        return None
    return float(noise * shares[0] / lengths[0])


def _choose_factors(factors: Sequence[int] | None, size: int) -> list[int]:
    for factor in factors if factors is not None else ():
        if not 0 <= factor < size:
            raise ValueError(f"factors: they run from 0 to {size - 1}; got {factor}.")
    return list(range(size)) if factors is None else list(factors)


def _write_numbers(ax: Axes, table: Array, end: float) -> None:
    for (i, j), value in np.ndenumerate(table):
        dark = abs(value) > 0.6 * end
        text = f"{value:.2f}" if end <= 1 else f"{value:.3g}"
        ax.text(j, i, text, ha="center", va="center", fontsize=7, color="w" if dark else "0.15")


def _name_arrows(ax: Axes, arrows: Array, names: list[str]) -> None:
    """Names beyond the ends of arrows, on the side to which each points, none over another."""
    ax.update_datalim(1.1 * arrows)
    ax.autoscale_view()
    box = ax.get_window_extent()
    width, height = (72 / ax.figure.dpi * size for size in (box.width, box.height))  # points
    low, high = ax.get_ylim()
    places = 1.04 * arrows
    for side in (places[:, 0] >= 0, places[:, 0] < 0):
        above = -np.inf
        for i in np.flatnonzero(side)[np.argsort(places[side, 1], kind="stable")]:
            places[i, 1] = above = max(places[i, 1], above + _LINE * (high - low) / height)
    for (x, y), name in zip(places, names, strict=True):
        ax.text(
            x, y, name, fontsize=8, color="0.1", ha="left" if x >= 0 else "right", va="center",
            bbox={"facecolor": "w", "alpha": 0.6, "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    left, right = ax.get_xlim()
    for _ in range(3):  # a wider view makes names longer in its units
        lengths = [_CHARACTER * len(name) * (right - left) / width for name in names]
        ends = places[:, 0] + np.where(places[:, 0] >= 0, lengths, np.negative(lengths))
        left, right = min([left, *ends]), max([right, *ends])
    ax.set_xlim(left, right)
    ax.set_ylim(low, max(high, places[:, 1].max(initial=low)))
