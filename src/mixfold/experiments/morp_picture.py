"""F1 and AUC against the dimensions of the projection, by setting and table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mixfold.experiments import morp_runs as runs
from mixfold.experiments.morp_claims import REFERENCE, REFERENCE_DIM, Places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# colour, marker and line of a method; colours that differ for the colour-blind, too
STYLES = {
    runs.RAW: ("0.35", "", "--"),
    runs.PRINCIPAL: ("#0072b2", "s", "-"),
    runs.CORRELATED: ("#e69f00", "^", "-"),
    runs.MAX: ("#d55e00", "o", "-"),
    runs.INVERSE: ("#009e73", "v", ":"),
}

SETTING_WORDS = {"I": "labels that were known", "II": "new labels, unseen rows"}


def draw(figure: Figure, places: Places) -> None:
    """A row of panels for each setting, a column for each table and measure."""
    shown = [(name, measure) for name in places.names for measure in runs.MEASURES]
    figure.set_size_inches(1.2 + 3.3 * len(shown), 7)
    axes = figure.subplots(2, len(shown), sharex=True, sharey="col", squeeze=False)
    for row, setting in zip(axes, runs.SETTINGS, strict=True):
        for ax, (name, measure) in zip(row, shown, strict=True):
            _panel(ax, places, name, setting, measure)
            ax.set_title(f"{name}, setting {setting}", fontsize=10)
            ax.set_ylabel(f"{measure}, {SETTING_WORDS[setting]}", fontsize=9)
    for ax in axes.ravel():
        _finish(ax, places.dims)
    for ax in axes[-1]:
        ax.set_xlabel("dimensions d of the projection", fontsize=9)
    axes[0, 0].legend(
        loc="lower right", fontsize=7, title="bands: standard error", title_fontsize=7
    )


def _panel(ax: Axes, places: Places, name: str, setting: str, measure: str) -> None:
    for method, (colour, marker, line) in STYLES.items():
        cells = [places.at(name, setting, measure, method, d) for d in places.dims]
        means = [cell.ours for cell in cells]
        ax.plot(places.dims, means, line, marker=marker, color=colour, ms=5, lw=1.4, label=method)
        bars = [_error(cell.values, cell.spread) for cell in cells]
        low = [m - e for m, e in zip(means, bars, strict=True)]
        high = [m + e for m, e in zip(means, bars, strict=True)]
        ax.fill_between(places.dims, low, high, color=colour, alpha=0.12, lw=0)
    if name == "Reuters" and REFERENCE_DIM in places.dims:
        _others(ax, setting, measure)


def _others(ax: Axes, setting: str, measure: str) -> None:
    """Means of other code, a little to the right of ours."""
    j = runs.MEASURES.index(measure)
    for method, pair in REFERENCE[setting].items():
        first = method == runs.RAW
        ax.plot(
            REFERENCE_DIM * 1.12, pair[j], "D", ms=5, mfc="none", mec=STYLES[method][0], ls="",
            label="other code, d = 50" if first else None,
        )  # fmt: skip


def _error(values: tuple[float, ...], spread: float) -> float:
    return spread / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _finish(ax: Axes, dims: tuple[int, ...]) -> None:
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    ax.set_xticks(dims, [str(d) for d in dims])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.tick_params(labelsize=8, labelbottom=True, labelleft=True)
    ax.grid(color="0.92", lw=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
