"""The toy figures of source 004 redrawn: values on axes as contours over the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments import kernel_toys_runs as runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SHOWN_STEPS = (0, 5, 20, 100)
RED, BLUE, GREY = "#c23b22", "#1f5fa8", "0.45"
# half-widths of the windows
_NEAR, _FAR, _ACROSS = (1.0, 1.1), (4.0, 4.0), (5.2, 3.1)
_CELLS = 70


@dataclass(frozen=True, slots=True)
class Panel:
    """Values (cells, cells) over a window, and the points that were seen, with their colours."""

    title: str
    values: Array
    half: tuple[float, float]
    points: Array
    colours: Sequence[str]


@dataclass(frozen=True, slots=True)
class Scenes:
    """All panels: rows of panels under the name of a figure, and the directions of 7.2."""

    panels: dict[str, list[list[Panel]]]
    points: Array
    classes: Array
    labelled: Array
    directions: dict[str, Array]


def grid(half: tuple[float, float]) -> Array:
    """Points of a window, row by row, (cells^2, 2)."""
    x, y = (np.linspace(-h, h, _CELLS) for h in half)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def scenes(rng: np.random.Generator, seed: int) -> Scenes:
    """One draw of every toy, with what is shown of it."""
    X = runs.three_groups(rng)
    panels = {
        "4.2: the first eight components of kernel PCA": _components(X),
        "5.2: EM, the best axes of its span": _steps(X, seed),
        "5.4: two groups, then batches of ten points": _batches(X),
    }
    square, y = runs.crossed_groups(rng)
    few = np.full(len(y), -1)
    few[runs.outermost(square)] = y[runs.outermost(square)]
    known = few >= 0
    panels["7.3: all points labelled"] = [
        _axes("kernel PCA", runs.principal(square, runs.AXES, runs.WIDTH), square, y),
        _axes("SPPCA", runs.kernel_supervised(square, y), square, y),
    ]
    panels["7.4: five points of each group labelled"] = [
        _axes("SPPCA", runs.kernel_supervised(square[known], y[known]), square, few),
        _axes("S2PPCA", runs.kernel_supervised(square, few), square, few),
    ]
    points, classes = runs.two_classes(rng)
    known = runs.some_labelled(classes, rng)
    return Scenes(panels, points, classes, known, runs.directions(points, classes, known))


def _components(X: Array) -> list[list[Panel]]:
    model = runs.principal(X, 8)
    values = model.transform(grid(_NEAR))
    panels = [
        _near(f"axis {k + 1}, eigenvalue {model.eigenvalues_[k]:.2f}", values[:, k], X)
        for k in range(8)
    ]
    return [panels[:4], panels[4:]]


def _steps(X: Array, seed: int) -> list[list[Panel]]:
    points = grid(_NEAR)
    states = runs.em_steps(X, SHOWN_STEPS, seed, points)
    titles = [f"{s.steps} steps, error {s.error:.1g}" if s.steps else "start" for s in states]
    columns = [*(s.values for s in states), runs.principal(X, runs.AXES).transform(points)]
    return _by_axis([*titles, "exact"], columns, [X] * len(columns))


def _batches(X: Array) -> list[list[Panel]]:
    points, models = grid(_NEAR), runs.grown(X)
    columns = [model.transform(points) for model in models]
    columns.append(runs.principal(X, runs.AXES).transform(points))
    counts = [len(X) - runs.EACH + runs.BATCH * i for i in range(len(models))]
    titles = [f"{n} points" for n in counts] + [f"{len(X)} at once"]
    return _by_axis(titles, columns, [X[:n] for n in [*counts, len(X)]])


def _by_axis(
    titles: Sequence[str], columns: Sequence[Array], points: Sequence[Array]
) -> list[list[Panel]]:
    """A row for each axis; signs are those of the last column."""
    rows = []
    for k in range(runs.AXES):
        last = columns[-1][:, k]
        signs = [np.sign(values[:, k] @ last) or 1.0 for values in columns]
        rows.append([
            _near(title if k == 0 else "", sign * values[:, k], X)
            for title, values, sign, X in zip(titles, columns, signs, points, strict=True)
        ])  # fmt: skip
    return rows


def _near(title: str, values: Array, X: Array) -> Panel:
    return Panel(title, values.reshape(_CELLS, _CELLS), _NEAR, X, ["0.1"] * len(X))


def _axes(name: str, model: Any, X: Array, y: Array) -> list[Panel]:
    """The values on each axis; axes point to the red class where that has a meaning."""
    values = np.array(model.transform(grid(_FAR)))
    colours = [{1: RED, 0: BLUE}.get(int(label), GREY) for label in y]
    mine = model.transform(X)
    known = y >= 0
    values *= np.where((mine[known] * (y[known, None] - 0.5)).sum(axis=0) < 0, -1.0, 1.0)
    return [
        Panel(f"{name}, axis {k + 1}", values[:, k].reshape(_CELLS, _CELLS), _FAR, X, colours)
        for k in range(runs.AXES)
    ]


# ------------------------------------------------ drawing


def draw(figure: Figure, shown: Scenes) -> None:
    """All figures, one below or beside the other."""
    figure.set_size_inches(15, 20)
    parts: Any = figure.subfigures(4, 1, height_ratios=[7.2, 5.6, 7.2, 5.2])
    first, second, third, fourth = parts
    names = list(shown.panels)
    places = [first, *second.subfigures(1, 2), *third.subfigures(1, 2)]
    for place, name in zip(places, names, strict=True):
        _figure(place, name, shown.panels[name])
    _directions(fourth, shown)


def _figure(place: SubFigure, name: str, rows: Sequence[Sequence[Panel]]) -> None:
    place.suptitle(f"Figure {name}", fontsize=11, fontweight="bold")
    axes = place.subplots(len(rows), len(rows[0]), squeeze=False)
    for line, panels in zip(axes, rows, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            _panel(ax, panel)
    if len(rows) == runs.AXES:
        for k, line in enumerate(axes):
            line[0].set_ylabel(f"axis {k + 1}", fontsize=9)


def _panel(ax: Axes, panel: Panel) -> None:
    (w, h), values = panel.half, panel.values
    extent = (-w, w, -h, h)
    ax.imshow(values, origin="lower", extent=extent, cmap="gray", aspect="auto", alpha=0.75,
              interpolation="bilinear")  # fmt: skip
    ax.contour(values, 9, extent=extent, colors="#2f7fb8", linewidths=0.7, linestyles="solid")
    sizes = [
        10 if colour == GREY else 16 if colour in (RED, BLUE) else 8 for colour in panel.colours
    ]
    x, y = panel.points.T
    ax.scatter(x, y, s=sizes, c=panel.colours, linewidths=0.4, edgecolors="white")
    ax.set_title(panel.title, fontsize=9)
    ax.set(xticks=[], yticks=[], xlim=(-w, w), ylim=(-h, h))


def _directions(place: SubFigure, shown: Scenes) -> None:
    place.suptitle(
        "Figure 7.2: directions of one factor (large points: the labelled ones of S2PPCA)",
        fontsize=11,
        fontweight="bold",
    )
    free, held = place.subplots(1, 2)
    for ax, suffix in ((free, ""), (held, ", noises held")):
        for c, colour in ((-1, BLUE), (1, RED)):
            ax.scatter(*shown.points[shown.classes == c].T, s=8, c=colour, alpha=0.4)
            known = shown.labelled[shown.classes[shown.labelled] == c]
            ax.scatter(*shown.points[known].T, s=34, c=colour, edgecolors="0.1", linewidths=0.8)
        for name, (colour, line) in _LINES.items():
            w = shown.directions[name if name == "PCA" else f"{name}{suffix}"]
            angle = runs.to_first_axis(w)
            ax.axline((0, 0), w, color=colour, ls=line, lw=2, label=f"{name}: {angle:.0f}°")
        ax.set_title("noises held" if suffix else "noises learned", fontsize=10)
        ax.set_xlabel("first coordinate", fontsize=9)
        ax.set_ylabel("second coordinate", fontsize=9)
        ax.set(xlim=(-_ACROSS[0], _ACROSS[0]), ylim=(-_ACROSS[1], _ACROSS[1]), aspect="equal")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)


_LINES = {
    "PCA": ("#2b2b2b", "-"),
    "S2PPCA": ("#2f8f4e", "-"),
    "SPPCA, labelled points only": ("#e0a030", "--"),
    "SPPCA, all labelled": ("#8a5aa8", "-"),
}
