"""A picture of ours against published: a panel for each measure, a line for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.run import Report
from papers.frame.table import Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OURS, _PUBLISHED = "#1f5fa8", "#c8553d"
# Ours a little above its line, published a little below: neither hides the other.
_SHIFT = 0.13


def draw_report(report: Report) -> Figure:
    """Draw a report; saving and closing the figure is the caller's affair."""
    from matplotlib.figure import Figure

    if report.table.draw is None:
        figure = _draw_cells(report.table)
    else:
        figure = Figure(layout="constrained")
        report.table.draw(figure)
    figure.suptitle(report.experiment.title, fontsize=11)
    quick = ", quick variant" if report.quick else ""
    note = f"{report.origin}; seed {report.seed}, {report.seconds:.0f} s{quick}; {report.made_with}"
    figure.supxlabel(note, fontsize=7, color="0.35")
    return figure


def _draw_cells(table: Table) -> Figure:
    """All cells, measure by measure."""
    from matplotlib.figure import Figure

    size = (1.6 + 3.1 * len(table.columns), 1.9 + 0.34 * len(table.rows))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(table.columns), sharey=True, squeeze=False)[0]
    for ax, column in zip(axes, table.columns, strict=True):
        _draw_panel(ax, table, column)
    axes[0].set_yticks(range(len(table.rows)), table.rows)
    axes[0].set_ylim(len(table.rows) - 0.5, -0.5)  # the first row on top
    _draw_legend(figure, axes)
    return figure


def _draw_panel(ax: Axes, table: Table, column: Column) -> None:
    from matplotlib.ticker import MaxNLocator

    ours, spread, published = _collect_values(table, column)
    lines = np.arange(len(table.rows))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    if column.logarithmic:
        ax.set_xscale("log")
        ours, published = (np.where(v > 0, v, np.nan) for v in (ours, published))
        spread = np.where(spread < ours, spread, np.nan)  # a bar to zero has no end there
    if column.tolerance is not None:
        width = np.array([column.tolerance.width(p) for p in published])
        ax.barh(lines, 2 * width, left=published - width, height=0.7, color="0.92", zorder=0)
    ax.errorbar(ours, lines - _SHIFT, xerr=spread, fmt="o", ms=5, color=_OURS, label="ours")
    ax.plot(
        published, lines + _SHIFT, "D", ms=5, mfc="none", mec=_PUBLISHED, ls="", label="published"
    )
    ax.set_title(column.heading, fontsize=10)
    ax.set_xlabel(_label_axis(table, column), fontsize=8)
    ax.grid(axis="x", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _collect_values(table: Table, column: Column) -> tuple[Array, Array, Array]:
    """Ours, spread and published by row; NaN where there is none."""
    values = np.full((3, len(table.rows)), np.nan)
    for j, row in enumerate(table.rows):
        cell = table.cell(row, column.name)
        if cell is not None:
            known = np.nan if cell.published is None else cell.published
            values[:, j] = cell.ours, cell.spread, known
    return values[0], values[1], values[2]


def _label_axis(table: Table, column: Column) -> str:
    cells = [cell for cell in table.cells if cell.column == column.name]
    hidden = any(cell.ours <= 0 or (cell.published or 1) <= 0 for cell in cells)
    if column.logarithmic and hidden:
        return "zeros are not drawn"
    return "" if column.tolerance is None else f"grey: {column.rule()}"


def _draw_legend(figure: Figure, axes: Any) -> None:
    drawn = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    names = ["ours", "published"]
    handles = [drawn[name] for name in names]
    figure.legend(handles, names, loc="outside upper right", ncols=2, frameon=False, fontsize=8)
