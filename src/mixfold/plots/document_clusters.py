"""Plots of clusters of documents: their topics and members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.axes import given_or_new
from mixfold.plots.scatter import group_by_label
from mixfold.plots.topics import choose_topics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 30  # clusters, unless they are named
_BORDER = "#b2182b"  # between labels: no grey or blue of the matrix can be taken for it


def plot_cluster_topics(
    model: Any,
    *,
    clusters: Sequence[int] | None = None,
    topics: Sequence[int] | None = None,
    n_words: int = 3,
    vocabulary: Sequence[str] | None = None,
    cmap: str = "Blues",
    ax: Axes | None = None,
) -> Axes:
    """Draw the shares of topics (columns) in clusters of documents (rows).

    Parameters
    ----------
    model : PCP
        A fitted one.
    clusters : sequence of int, optional
        Which ones, in this order; by default the largest, no more than 30.
    topics : sequence of int, optional
        Which ones, in this order; by default up to 30 of the largest, side by side if the same
        cluster has most of them.
    n_words : int, default 3
        Words that stand for a topic; 0 shows its number only.
    vocabulary : sequence of str, optional
        Names of the columns; by default those of the fit, or their numbers.
    cmap : str, default "Blues"
        A colour map of matplotlib.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its only image holds the shares in the order drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PCP
    >>> from mixfold.plots import plot_cluster_topics
    >>> X = np.array([[4, 4, 0, 0]] * 30 + [[0, 0, 4, 4]] * 10)
    >>> model = PCP(2, 2, random_state=0).fit(X)
    >>> ax = plot_cluster_topics(model, vocabulary=["sea", "ship", "oven", "salt"], n_words=2)
    >>> np.asarray(ax.images[0].get_array()).argmax(axis=1).tolist()
    [0, 1]
    """
    if not hasattr(model, "cluster_topics_"):
        raise ValueError(f"a {type(model).__name__} has no clusters with topics; give a PCP.")
    rows = _choose_clusters(len(model.weights_), clusters)
    columns = _side_by_side(model, rows) if topics is None else choose_topics(model, topics)
    words = model.top_words(n_words, vocabulary)
    size = (1.6 + 0.36 * len(columns), 1.6 + 0.1 * bool(n_words) + 0.26 * len(rows))
    ax = given_or_new(ax, (max(size[0], 4.0), max(size[1], 2.8)))
    image = ax.imshow(
        model.cluster_topics_[np.ix_(rows, columns)], vmin=0, vmax=1, cmap=cmap, aspect="auto"
    )
    heads = [" ".join([str(k), *map(str, words[k])]) for k in columns]
    turned: dict[str, Any] = {"rotation": 50, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(columns)), heads, fontsize=8, **(turned if n_words else {}))
    shares = [f"{m}  {model.weights_[m]:.1%}" for m in rows]
    ax.set_yticks(range(len(rows)), shares, fontsize=8)
    ax.tick_params(length=0)
    ax.set_xlabel("topic")
    ax.set_ylabel("cluster (share)")
    _bar(ax, image, "share of the topic")
    return ax


def plot_document_clusters(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    clusters: Sequence[int] | None = None,
    cmap: str = "Greys",
    ax: Axes | None = None,
) -> Axes:
    """Draw the probabilities of clusters (columns) of documents (rows), sorted by their labels.

    Parameters
    ----------
    model : PCP, or any other with ``predict_proba``
        A fitted one.
    X : whatever ``model.predict_proba`` takes
        The documents.
    labels : array-like of shape (n,), optional
        What the documents are known to be, for example their newsgroups; None, NaN and -1 mark
        unknown ones, which come last. Without it documents are sorted by their clusters.
    clusters : sequence of int, optional
        Which ones, in this order; by default up to 30 of the largest, side by side if most of
        their documents have the same label.
    cmap : str, default "Greys"
        A colour map of matplotlib.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its only image holds the probabilities in the order drawn. Lines part the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PCP
    >>> from mixfold.plots import plot_document_clusters
    >>> X = np.array([[4, 4, 0, 0], [0, 0, 4, 4]] * 20)
    >>> model = PCP(2, 2, random_state=0).fit(X)
    >>> ax = plot_document_clusters(model, X, ["sea", "food"] * 20)
    >>> np.asarray(ax.images[0].get_array())[[0, 19, 20, 39]].round().astype(int).tolist()
    [[1, 0], [1, 0], [0, 1], [0, 1]]
    """
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"a {type(model).__name__} has no clusters of rows; give a PCP.")
    P = np.asarray(model.predict_proba(X))
    codes, names = _labels(labels, len(P))
    columns = _by_label(P, codes) if clusters is None else _choose_clusters(P.shape[1], clusters)
    place = np.full(P.shape[1], len(columns))
    place[columns] = np.arange(len(columns))
    hard = P.argmax(axis=1)
    order = np.lexsort((-P[np.arange(len(P)), hard], place[hard], codes))
    ax = given_or_new(ax, (max(3.6, 1.6 + 0.24 * len(columns)), 5.0))
    # not smoothed: a column would run into the next
    shown = P[order][:, columns]
    image = ax.imshow(shown, vmin=0, vmax=1, cmap=cmap, aspect="auto", interpolation="nearest")
    _part(ax, codes[order], names, len(P))
    ax.set_xticks(range(len(columns)), [str(m) for m in columns], fontsize=8)
    hidden = P.shape[1] - len(columns)
    ax.set_xlabel("cluster" + (f" ({hidden} more are not shown)" if hidden else ""))
    _bar(ax, image, "probability")
    return ax


def _labels(labels: Any, n_rows: int) -> tuple[Array, list[str]]:
    """Codes of rows into names; of rows without a label the code is one more."""
    if labels is None:
        return np.zeros(n_rows, dtype=int), []
    groups = group_by_label(labels, n_rows)
    unknown = groups.codes < 0
    names = [*groups.names, *["no label"] * bool(unknown.any())]
    return np.where(unknown, len(groups.names), groups.codes), names


def _by_label(P: Array, codes: Array) -> list[int]:
    """The largest clusters, by the label that most of their documents have, then by size."""
    mass = P.sum(axis=0)
    kept = np.argsort(-mass, kind="stable")[:_MOST]
    sums = np.array([P[codes == c].sum(axis=0) for c in range(codes.max() + 1)])
    order = np.lexsort((-mass[kept], sums[:, kept].argmax(axis=0)))
    return [int(m) for m in kept[order]]


def _side_by_side(model: Any, rows: list[int]) -> list[int]:
    """The largest topics, by the cluster that has most of each; later clusters have later ones."""
    kept = np.array(choose_topics(model, None))
    shares = model.cluster_topics_[rows][:, kept]
    order = np.lexsort((-shares.max(axis=0), shares.argmax(axis=0)))
    return [int(k) for k in kept[order]]


def _choose_clusters(n: int, clusters: Sequence[int] | None) -> list[int]:
    if clusters is None:
        return list(range(min(n, _MOST)))
    if not len(clusters) or any(not 0 <= m < n for m in clusters):
        raise ValueError(
            f"clusters must be numbers from 0 to {n - 1}, at least one; got {clusters}."
        )
    return [int(m) for m in clusters]


def _part(ax: Axes, ordered: Array, names: list[str], n_rows: int) -> None:
    """Lines between labels, and the names of labels beside their documents."""
    if not names:
        ax.set_yticks([])
        ax.set_ylabel(f"{n_rows:,} documents, by cluster")
        return
    sizes = np.bincount(ordered, minlength=len(names))
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        ax.axhline(end - 0.5, color=_BORDER, linewidth=0.9)
    ax.set_yticks(ends - (sizes + 1) / 2, names, fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel(f"{n_rows:,} documents, by label")


def _bar(ax: Axes, image: Any, label: str) -> None:
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
