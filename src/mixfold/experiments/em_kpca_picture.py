"""Figure 5.3 redrawn: time and error of each solver against N and d."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Protocol

from mixfold.experiments.em_kpca_runs import CONVERGED, SOURCE, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# colour, marker, line: ours are drawn through, scikit-learn's are dashed
STYLES = {
    SOURCE: ("#c8553d", "o", "-"),
    CONVERGED: ("#e0a030", "s", "-"),
    "krylov": ("#1f5fa8", "o", "-"),
    "chebyshev": ("#58a4b0", "^", "-"),
    "arpack": ("#2b2b2b", "o", "--"),
    "randomized": ("#8a5aa8", "v", "--"),
    "dense": ("#8c8c8c", "s", "--"),
}
# errors of less are rounding
_LEAST = 1e-14

Results = Mapping[tuple[str, int, int], Mapping[str, Sequence[Outcome]]]


class Sizes(Protocol):
    """Which N belongs to the panels of d, and which d to those of N."""

    @property
    def fixed(self) -> int: ...

    @property
    def most(self) -> int: ...


def draw(figure: Figure, results: Results, size: Sizes) -> None:
    """A row for each table: time and error against N, then against d; medians over repeats."""
    names = list(dict.fromkeys(data for data, _, _ in results))
    figure.set_size_inches(15, 0.9 + 3.6 * len(names))
    axes = figure.subplots(len(names), 4, squeeze=False)
    for line, data in zip(axes, names, strict=True):
        mine = {(n, d): v for (of, n, d), v in results.items() if of == data}
        fixed = min(size.fixed, max(n for n, _ in mine))
        by_rows = {n: v for (n, d), v in sorted(mine.items()) if d == size.most}
        by_axes = {d: v for (n, d), v in sorted(mine.items()) if n == fixed}
        _times(line[0], by_rows, f"{data}: time, d = {size.most}", "rows N")
        _errors(line[1], by_rows, f"{data}: error, d = {size.most}", "rows N")
        _times(line[2], by_axes, f"{data}: time, N = {fixed}", "axes d")
        _errors(line[3], by_axes, f"{data}: error, N = {fixed}", "axes d")
        for ax in line[:2]:
            _plain_ticks(ax, list(by_rows))
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)


def _times(
    ax: Axes, series: Mapping[int, Mapping[str, Sequence[Outcome]]], title: str, x: str
) -> None:
    for name, (colour, marker, line) in STYLES.items():
        points = {
            at: median(o.seconds for o in by[name]) for at, by in series.items() if name in by
        }
        ax.plot(list(points), list(points.values()), line, marker=marker, ms=4, color=colour,
                label=name)  # fmt: skip
    _dress(ax, title, x, "CPU seconds")


def _errors(
    ax: Axes, series: Mapping[int, Mapping[str, Sequence[Outcome]]], title: str, x: str
) -> None:
    for name, (colour, marker, line) in STYLES.items():
        points = {
            at: max(_LEAST, median(o.error for o in by[name]))
            for at, by in series.items()
            if name in by and name != "dense"
        }
        ax.plot(list(points), list(points.values()), line, marker=marker, ms=4, color=colour)
    _dress(ax, title, x, "sine of the largest angle")
    ax.set_ylim(_LEAST / 3, 5)


def _dress(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_yscale("log")
    ax.set_title(title, fontsize=9.5)
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _plain_ticks(ax: Axes, values: list[int]) -> None:
    """A logarithmic axis that shows the numbers of rows there are, where they do not collide."""
    from matplotlib.ticker import NullFormatter

    ax.set_xscale("log")
    shown: list[int] = []
    for value in reversed(values):  # the largest in any case
        if not shown or value < shown[-1] / 1.6:
            shown.append(value)
    ax.set_xticks(shown, [f"{value:,}" for value in shown])
    ax.xaxis.set_minor_formatter(NullFormatter())
