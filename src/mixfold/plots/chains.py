"""Plots of samplers: traces of chains, and the similarity matrix of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.chains import Summary, summary
from mixfold.plots.axes import axes_was_a_name, given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOUBT = "#b2182b"  # of a title whose numbers are beyond the limits
_OUTLINE = "#b2182b"  # of clusters: no grey or blue of the matrix can be taken for it
_MANY = 2000  # points of a line beyond which a drawing of them would be huge


@axes_was_a_name
def plot_chains(trace: Any, ax: Sequence[Axes] | None = None, **line: Any) -> list[Axes]:
    """Draw the chains of label-free quantities, with R-hat and effective sample size.

    Parameters
    ----------
    trace : estimator or mapping of str to array-like of shape (n_chains, n_draws)
        A sampler with ``traces_``; or for each quantity its draws after the burn-in, one chain in
        each row.
    ax : sequence of matplotlib.axes.Axes, optional
        One for each quantity. Without it a figure is made with ``pyplot``, one panel below the
        other; it is ``returned[0].figure``, to save and to close.
    **line
        Passed to ``ax.plot``.

    Returns
    -------
    list of matplotlib.axes.Axes
        In the order of the quantities. A title is red if R-hat exceeds 1.05, the effective sample
        size is below 100, or one of them is undefined: run longer chains, or more of them.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.plots import plot_chains
    >>> draws = np.random.default_rng(0).normal(size=(4, 250))
    >>> panels = plot_chains({"log joint": draws})
    >>> panels[0].get_title(loc="right")
    'R-hat 1.00, ESS 1,006'
    """
    trace = getattr(trace, "traces_", trace)
    if not isinstance(trace, Mapping):
        raise TypeError(
            "trace must be a fitted sampler, such as Mixture(inference='gibbs'), or a mapping of "
            f"names to draws; got {type(trace).__name__}."
        )
    tables = {name: _chains(name, draws) for name, draws in trace.items()}
    panels = _panels(len(tables), ax)
    for panel, (name, draws) in zip(panels, tables.items(), strict=True):
        n_draws = draws.shape[1]
        style = {"linewidth": 0.7, "alpha": 0.8, "rasterized": n_draws > _MANY} | line
        for k, chain in enumerate(draws):
            panel.plot(np.arange(1, n_draws + 1), chain, label=f"chain {k + 1}", **style)
        found = summary(draws)
        panel.set_title(name, loc="left", fontsize=9)
        panel.set_title(
            _verdict(found), loc="right", fontsize=8, color="0.4" if found.reliable else _DOUBT
        )
        panel.margins(x=0.01)
    panels[-1].set_xlabel("draw")
    return panels


def plot_similarity(
    matrix: Any, labels: Any = None, *, cmap: str = "Blues", ax: Axes | None = None
) -> Axes:
    """Draw in which share of the draws two rows are in one cluster, rows of a cluster side by side.

    Parameters
    ----------
    matrix : array-like of shape (n, n)
        The posterior similarity of rows, from 0 to 1.
    labels : array-like of shape (n,), optional
        A partition, such as the point estimate. Its clusters are drawn from the largest to the
        smallest and outlined; within a cluster, the rows that are most surely in it come first.
        Without it, rows are in the order of an average-linkage tree.
    cmap : str, default "Blues"
        A colour map of matplotlib.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its only image holds the matrix in the order drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.plots import plot_similarity
    >>> P = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.1], [0.9, 0.1, 1.0]])
    >>> ax = plot_similarity(P, labels=[0, 1, 0])
    >>> np.asarray(ax.images[0].get_array())[0].tolist()
    [1.0, 0.9, 0.2]
    """
    P = _similarities(matrix)
    codes = None if labels is None else _codes(labels, len(P))
    order = _tree_order(P) if codes is None else _cluster_order(P, codes)
    ax = given_or_new(ax, (5.4, 4.6))
    image = ax.imshow(P[np.ix_(order, order)], vmin=0, vmax=1, cmap=cmap)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85)
    bar.set_label("share of draws in one cluster")
    bar.outline.set_visible(False)
    if codes is not None:
        _outline(ax, codes[order])
    ax.set_xlabel("rows, by cluster" if codes is not None else "rows, by similarity")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


# ------------------------------------------------------------------ chains


def _chains(name: str, draws: Any) -> Array:
    values = np.asarray(draws, dtype=float)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"trace[{name!r}] must have the shape (n_chains, n_draws) with at least one draw; got "
            f"the shape {values.shape}."
        )
    return values


def _panels(n: int, given: Sequence[Axes] | None) -> list[Axes]:
    if n == 0:
        raise ValueError("trace is empty; give at least one quantity to draw.")
    if given is None:
        import matplotlib.pyplot as plt

        size = (7.0, 0.6 + 1.5 * n)
        _, made = plt.subplots(n, 1, sharex=True, squeeze=False, figsize=size, layout="constrained")
        return list(made[:, 0])
    panels = list(np.ravel(np.asarray(given, dtype=object)))
    if len(panels) != n:
        raise ValueError(f"ax must be one for each of the {n} quantities; got {len(panels)}.")
    return panels


def _verdict(found: Summary) -> str:
    r_hat = "undefined" if np.isnan(found.r_hat) else f"{found.r_hat:.2f}"
    ess = "undefined" if np.isnan(found.ess) else f"{found.ess:,.0f}"
    return f"R-hat {r_hat}, ESS {ess}"


# ------------------------------------------------------------------ similarity


def _similarities(matrix: Any) -> Array:
    P = np.asarray(matrix)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.size == 0:
        raise ValueError(f"matrix must be square and not empty; got the shape {P.shape}.")
    slack = 1e-6  # of single precision
    if not (P.min() >= -slack and P.max() <= 1 + slack):
        raise ValueError(
            f"matrix must hold shares from 0 to 1; got values from {P.min():g} to {P.max():g}."
        )
    return P


def _codes(labels: Any, n_rows: int) -> Array:
    """Labels 0, 1, ... from the largest cluster to the smallest."""
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise ValueError(
            f"labels must be one for each of the {n_rows} rows of the matrix; got an array of "
            f"shape {values.shape}."
        )
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(-sizes, kind="stable"))[codes]


def _cluster_order(P: Array, codes: Array) -> Array:
    """By cluster, and within one by the mean similarity to its rows, highest first."""
    company = np.empty(len(P))
    for k in range(codes.max() + 1):
        rows = np.flatnonzero(codes == k)
        company[rows] = P[np.ix_(rows, rows)].mean(axis=1)
    return np.lexsort((-company, codes))


def _tree_order(P: Array) -> Array:
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(P) < 2:
        return np.arange(len(P))
    upper = np.triu_indices(len(P), 1)
    return np.asarray(leaves_list(linkage((1 - P[upper]).clip(0, 1), "average")))


def _outline(ax: Axes, ordered: Array) -> None:
    """A square about each cluster of at least two rows; rows of one cluster are consecutive."""
    from matplotlib.patches import Rectangle

    sizes = np.bincount(ordered)
    for first, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        if size > 1:
            corner = (first - 0.5, first - 0.5)
            square = Rectangle(corner, size, size, fill=False, edgecolor=_OUTLINE, linewidth=0.9)
            ax.add_patch(square)
