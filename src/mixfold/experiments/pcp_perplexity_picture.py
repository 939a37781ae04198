"""Table 9.1 drawn: perplexity by the number of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixfold.experiments import pcp_perplexity_runs as runs
from mixfold.experiments import pcp_published as published
from mixfold.experiments.pcp_perplexity_claims import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {runs.PLSI: "#6b8e23", runs.LDA: "#c8553d", runs.PCP: "#1f5fa8"}


def draw(figure: Figure, curves: Curves) -> None:
    """A row for each way to ask, a column for each corpus."""
    names = list(curves.unigrams)
    figure.set_size_inches(3.9 * len(names) + 1.6, 6.8)
    axes = figure.subplots(2, len(names), squeeze=False, sharex=True, sharey="col")
    for (above, below), name in zip(axes.T, names, strict=True):
        _whole(above, curves, name)
        _completion(below, curves, name)
        above.set_title(name, fontsize=11)
        below.set_xlabel("topics K", fontsize=9)
    axes[0][0].set_ylabel("perplexity, asked as in the source", fontsize=9)
    axes[1][0].set_ylabel("perplexity by completion", fontsize=9)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)


def _whole(ax: Axes, curves: Curves, name: str) -> None:
    for method, colour in COLOURS.items():
        ours = [curves.cell(name, k, method).ours for k in curves.topics]
        ax.plot(curves.topics, ours, "o-", ms=4.5, color=colour, label=method)
        theirs = published.PERPLEXITY[name][method]
        known = [theirs[published.TOPICS.index(k)] for k in curves.topics]
        ax.plot(curves.topics, known, "D--", ms=4, lw=0.9, mfc="none", color=colour, alpha=0.7,
                label=f"{method}, published")  # fmt: skip
    _finish(ax, curves, name)


def _completion(ax: Axes, curves: Curves, name: str) -> None:
    for method, colour in COLOURS.items():
        ours = [curves.cell(name, k, f"{method} half").ours for k in curves.topics]
        ax.plot(curves.topics, ours, "o-", ms=4.5, color=colour)
    _finish(ax, curves, name)


def _finish(ax: Axes, curves: Curves, name: str) -> None:
    ax.axhline(curves.unigrams[name], color="#707070", ls=":", label="frequencies of words")
    ax.set_xticks(curves.topics)
    ax.grid(axis="y", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
