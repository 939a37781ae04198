"""Figure 9.3 (c) and table 9.2 drawn: who is in which cluster, and agreement by topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments import pcp_clustering_runs as runs
from mixfold.experiments import pcp_published as published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {
    runs.MEANS: ("#c8553d", "o-"),
    runs.MEAN_FIELD: ("#7fa8d6", "o-"),
    runs.PCP: ("#1f5fa8", "o-"),
    runs.UNIGRAMS: ("#6b6b6b", "o-"),
    runs.NMF: ("#6b8e23", "s"),
    runs.ALONE: ("#b0b0b0", "s"),
}
# documents that make one line of the picture: more could not be told apart
LINES = 400


@dataclass(frozen=True, slots=True)
class Assigned:
    """Documents by cluster (N, M), their classes, and the words of each cluster's main topic."""

    memberships: Array
    y: Array
    classes: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]

    def by_class(self) -> Array:
        """Documents of each class (rows) in each cluster."""
        return np.asarray(np.eye(len(self.classes))[self.y].T @ self.memberships)

    def owners(self) -> Array:
        """The class that most documents of a cluster have."""
        return np.asarray(self.by_class().argmax(axis=0))


def draw(figure: Figure, found: Mapping[str, Any], assigned: Assigned | None) -> None:
    """Agreement on the left, a panel for each corpus; the case study on the right."""
    wide = assigned is not None
    figure.set_size_inches(4.6 + 6.2 * wide, 7.4)
    grid = figure.add_gridspec(len(found), 1 + wide, width_ratios=(1, 1.35)[: 1 + wide])
    axes = [figure.add_subplot(grid[i, 0]) for i in range(len(found))]
    for ax, one in zip(axes, found.values(), strict=True):
        _agreement(ax, one)
    axes[-1].plot([], [], "k:", lw=1.2, label="published, K tuned")
    axes[-1].legend(fontsize=7, frameon=False, ncols=2, loc="lower left")
    axes[-1].set_xlabel("topics K", fontsize=9)
    if assigned is not None:
        _matrix(figure.add_subplot(grid[:, 1]), assigned)


def _agreement(ax: Axes, found: Any) -> None:
    for method, (colour, style) in STYLES.items():
        cells = [found.cell(method, k) for k in found.topics if (method, k) in found.outcomes]
        places = [found.topics.index(k) for k in found.topics if (method, k) in found.outcomes]
        spread = [0.0 if len(cell.values) < 2 else cell.spread for cell in cells]
        ax.errorbar(places, [cell.ours for cell in cells], yerr=spread, fmt=style, ms=4.5, lw=1.4,
                    elinewidth=0.8, color=colour, label=method)  # fmt: skip
    for method, value in published.NMI[found.name].items():
        ax.axhline(value, color=STYLES[method][0], ls=":", lw=1.2)
    ax.set_xticks(range(len(found.topics)), [str(k) for k in found.topics])
    ax.set_ylim(0, 1)
    ax.set_title(found.name, fontsize=10)
    ax.set_ylabel("NMI with the classes", fontsize=9)
    ax.grid(axis="y", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def _matrix(ax: Axes, assigned: Assigned) -> None:
    """Documents sorted by class; clusters beside others of the same class."""
    owners = assigned.owners()
    columns = np.argsort(owners, kind="stable")
    order = np.argsort(assigned.y, kind="stable")
    shown = thinned(assigned.memberships[np.ix_(order, columns)], LINES)
    n, m = assigned.memberships.shape
    ax.imshow(shown, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest",
              extent=(-0.5, m - 0.5, n, 0))  # fmt: skip
    ends = np.cumsum(np.bincount(assigned.y, minlength=len(assigned.classes)))
    middles = ends - np.diff(ends, prepend=0) / 2
    ax.set_yticks(middles, assigned.classes, rotation=90, va="center", fontsize=8)
    for end in ends[:-1]:
        ax.axhline(end, color="#c8553d", lw=0.8)
    for place in np.flatnonzero(np.diff(owners[columns])):
        ax.axvline(place + 0.5, color="#c8553d", lw=0.8)
    told = [" ".join(assigned.words[c][:3]) for c in columns]
    ax.set_xticks(range(m), told, rotation=90, fontsize=7)
    ax.tick_params(length=0)
    ax.set_title("Newsgroup: clusters of documents, sorted by class (figure 9.3)", fontsize=10)
    ax.set_xlabel("clusters, by the words of their main topic", fontsize=9)


def thinned(rows: Array, lines: int) -> Array:
    """Means of neighbouring rows, so that a picture of many rows shows their shares."""
    if len(rows) <= lines:
        return rows
    starts = np.arange(lines) * len(rows) // lines  # evenly: lines must stay at their places
    counts = np.diff(starts, append=len(rows))
    return np.asarray(np.add.reduceat(rows, starts, axis=0) / counts[:, None])
