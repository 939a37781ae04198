"""Growth of all models in one picture: a panel each, seconds by rows, both axes logarithmic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.problems import Array
from bench.tables import ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OURS, _PEER, _GUIDE = "#1f5fa8", "#c8553d", "0.65"
COLUMNS, WIDTH, HEIGHT = 8, 2.1, 2.1  # panels beside each other, inches of one
TITLE = "CPU seconds of a fit on one thread by number of rows; equal slopes are equal exponents"
_ROOM = 1.6  # factor that is left free above and below the curves


def curves(rows: list[dict[str, Any]]) -> Figure:
    """Draw the rows of the table that have figures; saving the figure is the caller's affair.

    All panels span the same factor of time, so that equal slopes are equal exponents.
    """
    from matplotlib.figure import Figure

    drawn = [row for row in rows if row["ours"] is not None and row["ours"]["cpu"]]
    lines = max(1, math.ceil(len(drawn) / COLUMNS))
    figure = Figure(figsize=(WIDTH * COLUMNS, HEIGHT * lines + 0.9), layout="constrained")
    axes = figure.subplots(lines, COLUMNS, squeeze=False).ravel()
    span = max((_span(row) for row in drawn), default=1.0)
    for ax, row in zip(axes, drawn, strict=False):
        _panel(ax, row, span)
    for ax in axes[len(drawn) :]:
        ax.set_visible(False)
    figure.suptitle(TITLE, fontsize=12)
    _legend(figure)
    return figure


def _span(row: dict[str, Any]) -> float:
    """Decades from the least to the most seconds of a panel, with room."""
    low, high = _limits(row)
    return math.log10(high / low * _ROOM**2)


def _limits(row: dict[str, Any]) -> tuple[float, float]:
    """The least and the most seconds of a panel."""
    clocks = np.concatenate([_clocks(row, "ours"), _clocks(row, "theirs"), _linear(row)])
    return float(clocks.min()), float(clocks.max())


def _clocks(row: dict[str, Any], side: str) -> Array:
    """What is too short for the clock counts as a tenth of a millisecond."""
    return np.maximum([] if row[side] is None else row[side]["cpu"], 1e-4)


def _linear(row: dict[str, Any]) -> Array:
    """Our first time, if it grew with the rows."""
    return np.asarray(_clocks(row, "ours")[0] * np.array(row["sizes"], float) / row["sizes"][0])


def _panel(ax: Axes, row: dict[str, Any], span: float) -> None:
    sizes = np.array(row["sizes"], float)
    ax.set_xscale("log")
    ax.set_yscale("log")
    middle, half = math.prod(_limits(row)) ** 0.5, 10 ** (span / 2)
    ax.set_ylim(middle / half, middle * half)
    ax.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.7)  # on the right there is the ratio
    own, peer = _clocks(row, "ours"), _clocks(row, "theirs")
    ax.plot(sizes, _linear(row), ":", color=_GUIDE, lw=1.2, zorder=0)
    if len(peer):
        ax.plot(sizes, peer, "D-", color=_PEER, ms=4, lw=1.4, mfc="white")
        ax.annotate(_short(ratio(peer[-1], own[-1])), (sizes[-1], peer[-1]), (6, 0), fontsize=8,
                    textcoords="offset points", va="center", color=_PEER)  # fmt: skip
    ax.plot(sizes, own, "o-", color=_OURS, ms=4, lw=1.4)
    _dress(ax, row, sizes)


def _short(text: str) -> str:
    """A ratio with two digits."""
    return f"{float(text[:-1]):.2g}x" if text.endswith("x") else text


def _dress(ax: Axes, row: dict[str, Any], sizes: Array) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    ax.set_title(row["model"], fontsize=8, loc="left", pad=14)
    peer = "no peer" if row["peer"] == "none" else f"peer: {row['peer']}"
    ax.text(0, 1.03, peer, transform=ax.transAxes, fontsize=6.5, color="0.4", va="bottom")
    ax.xaxis.set_major_locator(FixedLocator(sizes.tolist()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: _rows(n)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 3.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda t, _: f"{t:.3g} s"))
    ax.tick_params(labelsize=7, length=2)
    ax.grid(color="0.93", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _rows(n: float) -> str:
    return f"{n / 1000:g}k" if n >= 1000 else f"{n:g}"


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_OURS, marker="o", ms=4, lw=1.4, label="mixfold"),
        Line2D([], [], color=_PEER, marker="D", ms=4, lw=1.4, mfc="white",
               label="peer, and how many times as long it takes"),
        Line2D([], [], color=_GUIDE, ls=":", lw=1.2, label="linear growth"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
