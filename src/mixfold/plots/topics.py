"""Topics as panels of their most probable words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.topics.topic_model import topic_shares
from mixfold.plots.axes import axes_was_a_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 5  # panels side by side
_PANEL, _LINE, _HEAD = 2.1, 0.19, 0.55  # width of a panel, height of a word and of a title: inches
_MOST = 30  # panels, unless topics are named


@axes_was_a_name
def plot_topics(
    model: Any,
    *,
    topics: Sequence[int] | None = None,
    n_words: int = 10,
    vocabulary: Sequence[str] | None = None,
    columns: int | None = None,
    color: Any = "C0",
    ax: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw the most probable words of each topic as bars, one panel for each topic.

    Parameters
    ----------
    model : PLSI, LatentDirichletAllocation or PCP
        A fitted one.
    topics : sequence of int, optional
        Which ones, in this order; by default all, the largest first, but no more than 30.
    n_words : int, default 10
        Words of each.
    vocabulary : sequence of str, optional
        Names of the columns; by default those of the fit, or their numbers.
    columns : int, optional
        Panels side by side; 5 by default.
    color : color, default "C0"
        Of the bars.
    ax : sequence of matplotlib.axes.Axes, optional
        One for each topic. Without it a figure is made with ``pyplot``; it is
        ``returned[0].figure``, to save and to close.

    Returns
    -------
    list of matplotlib.axes.Axes
        In the order of the topics. Bars are probabilities on one scale for all panels; titles tell
        the number of a topic and its share in the words of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import LatentDirichletAllocation
    >>> from mixfold.plots import plot_topics
    >>> X = np.array([[4, 4, 0, 0]] * 30 + [[0, 0, 4, 4]] * 10)
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> panels = plot_topics(model, n_words=2, vocabulary=["sea", "ship", "oven", "salt"])
    >>> [sorted(word.get_text() for word in panel.get_yticklabels()) for panel in panels]
    [['sea', 'ship'], ['oven', 'salt']]
    """
    shares = topic_shares(model)
    chosen = choose_topics(model, topics)
    if n_words < 1:
        raise ValueError(f"n_words must be 1 or more; got {n_words}.")
    names = model.top_words(n_words, vocabulary)
    panels = _panels(len(chosen), min(n_words, model.topics_.shape[1]), columns, ax)
    widest = max(float(model.topics_[k].max()) for k in chosen)
    for panel, k in zip(panels, chosen, strict=True):
        chances = np.sort(model.topics_[k])[::-1][:n_words]
        _bars(panel, [str(name) for name in names[k]], chances, widest, color)
        share = "" if shares is None else f"  {shares[k]:.1%}"
        panel.set_title(f"topic {k}{share}", fontsize=9, loc="left")
    return panels


def choose_topics(model: Any, topics: Sequence[int] | None) -> list[int]:
    """Numbers of topics: those that were named, or all of them, the largest first."""
    if not hasattr(model, "topics_"):
        raise ValueError(
            f"a {type(model).__name__} has no topics; give a fitted PLSI, "
            "LatentDirichletAllocation or PCP."
        )
    n = len(model.topics_)
    if topics is None:
        shares = topic_shares(model)
        order = np.arange(n) if shares is None else np.argsort(-shares, kind="stable")
        return [int(k) for k in order[:_MOST]]
    wrong = [k for k in topics if not 0 <= k < n]
    if wrong or not len(topics):
        raise ValueError(f"topics must be numbers from 0 to {n - 1}, at least one; got {topics}.")
    return [int(k) for k in topics]


def _panels(n: int, n_words: int, columns: int | None, ax: Sequence[Axes] | None) -> list[Axes]:
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != n:
            raise ValueError(f"ax must be one for each of the {n} topics; got {len(given)}.")
        return given
    import matplotlib.pyplot as plt

    if columns is not None and columns < 1:
        raise ValueError(f"columns must be 1 or more; got {columns}.")
    across = min(n, columns or _COLUMNS)
    down = -(-n // across)
    size = (_PANEL * across, (_HEAD + _LINE * n_words) * down)
    figure, made = plt.subplots(down, across, squeeze=False, figsize=size, layout="constrained")
    for unused in made.flat[n:]:
        figure.delaxes(unused)
    figure.supxlabel("probability of the word in the topic", fontsize=8, color="0.4")
    return list(made.flat[:n])


def _bars(ax: Axes, names: list[str], chances: Array, widest: float, color: Any) -> None:
    places = np.arange(len(names))
    ax.barh(places, chances, height=0.75, color=color)
    ax.set_yticks(places, names, fontsize=8)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, 1.02 * widest)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=7, colors="0.4")
    ax.locator_params(axis="x", nbins=3)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
