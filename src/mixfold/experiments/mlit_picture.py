"""Table 4 drawn: accuracies by method, and what the steps of the published algorithm do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixfold.experiments.table import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# percent that the axis of the steps spans at least: less is chance
LEAST_SPAN = 5.0
PUBLISHED, BEST, INSIDE = "#8c8c8c", "#c8553d", "#1f5fa8"


@dataclass(frozen=True, slots=True)
class Curve:
    """Accuracy by step, in percent, of a setting."""

    setting: str
    values: tuple[float, ...]


def draw(
    figure: Figure,
    cells: Mapping[str, Mapping[str, Mapping[str, Cell]]],
    curves: Mapping[str, Curve],
    majority: Mapping[str, float],
) -> None:
    """A column for each set: its methods above, the steps of MLiT (N) below."""
    figure.set_size_inches(3.4 * len(cells) + 3.4, 6.8)
    axes = figure.subplots(2, len(cells), squeeze=False, height_ratios=(3, 2))
    for (above, below), name in zip(axes.T, cells, strict=True):
        _methods(above, cells[name])
        most = majority[name]
        if above.get_xlim()[0] < most + 3:  # only where it is near
            above.axvline(
                most, color="#707070", ls=":", zorder=0, label="share of the largest class"
            )
        above.set_title(name, fontsize=11)
        _steps(below, curves[name])
    for ax in axes[0][1:]:
        ax.tick_params(labelleft=False)
    axes[1][0].set_ylabel("MLiT (N): accuracy [%]", fontsize=9)
    told = [ax.get_legend_handles_labels() for ax in axes[0]]
    by_label = {
        label: one for ones, labels in told for one, label in zip(ones, labels, strict=True)
    }
    figure.legend(
        by_label.values(), by_label.keys(), loc="outside right upper", frameon=False, fontsize=9
    )


def _methods(ax: Axes, methods: Mapping[str, Mapping[str, Cell]]) -> None:
    for place, by in enumerate(methods.values()):
        best, inside = by["accuracy [%]"], by["chosen inside [%]"]
        first = place == 0
        if best.published is not None:
            ax.errorbar(best.published, place - 0.2, xerr=best.published_spread, fmt="o",
                        mfc="white", color=PUBLISHED, ms=5, capsize=2,
                        label="published (spread over folds)" if first else None)  # fmt: skip
        _dot(ax, best, place, BEST, "best setting on the reported folds" if first else None)
        _dot(ax, inside, place + 0.2, INSIDE, "chosen inside the training rows" if first else None)
    ax.set_yticks(range(len(methods)), list(methods))
    ax.set_ylim(len(methods) - 0.5, -0.5)
    ax.set_xlabel("accuracy [%]", fontsize=9)
    ax.grid(axis="x", lw=0.4, alpha=0.5)
    ax.tick_params(labelsize=8)


def _dot(ax: Axes, cell: Cell, place: float, colour: str, label: str | None) -> None:
    ends = [[cell.ours - min(cell.values)], [max(cell.values) - cell.ours]]
    ax.errorbar(cell.ours, place, xerr=ends, fmt="o", color=colour, ms=5, label=label)


def _steps(ax: Axes, curve: Curve) -> None:
    ax.plot(range(len(curve.values)), curve.values, "o-", ms=3, color=BEST)
    top, low = max(curve.values), min(curve.values)
    ax.set_ylim(min(low - 0.5, top - LEAST_SPAN), top + 0.5)
    ax.set_xlabel("steps", fontsize=9)
    ax.set_title(curve.setting, fontsize=8)
    ax.grid(lw=0.4, alpha=0.5)
    ax.tick_params(labelsize=8)
    ax.locator_params(axis="x", integer=True)
