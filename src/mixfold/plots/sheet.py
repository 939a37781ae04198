"""Many small images in one ``Axes``: where each goes, and how large its title may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixfold.contracts import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Missing pixels get a colour that no grey can be taken for.
_MISSING = "#e8b08a"
_GAP, _BAND_GAP, _TITLE = 0.06, 0.2, 0.26  # between images, bands, and for a title: in images
_FONT, _SMALLEST_FONT, _CHARACTER = 9.0, 4.0, 0.6  # points, points, width of one in font sizes
_IMAGE, _WIDEST, _HIGHEST = 72.0, 1000.0, 2500.0  # points, if the figure is made here


class Tile(NamedTuple):
    """One image, its place on the sheet, and the values of its first and last colour."""

    row: int
    column: int
    image: Array
    limits: tuple[float, float]
    cmap: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The sheet in pixels of its images: y runs down, labels stand left of x = 0."""

    height: int
    width: int
    tops: Array  # of each row, and the foot of the last
    n_columns: int
    longest_title: int
    label_points: float

    @property
    def size(self) -> tuple[float, float]:
        """Width (without labels) and height."""
        return self.n_columns * self.pitch - (self.pitch - self.width), float(self.tops[-1])

    @property
    def pitch(self) -> float:
        return self.width + _GAP * float(np.sqrt(self.height * self.width))

    def unit(self, width_points: float, height_points: float) -> float:
        """Points of a pixel, if the sheet is to fit into a space."""
        width, height = self.size
        room = max(width_points - self.label_points, 0.3 * width_points)
        return min(room / width, height_points / height)

    def label_font(self, unit: float) -> float:
        """So that two lines are not higher than an image."""
        return max(_SMALLEST_FONT, min(_FONT, 0.36 * self.height * unit))

    def title_font(self, unit: float) -> float:
        """As large as the space above and the width of an image allow."""
        high = 0.8 * _TITLE * self.height * unit
        wide = self.width * unit / (_CHARACTER * max(1, self.longest_title))
        return max(_SMALLEST_FONT, min(_FONT, high, wide))


def draw_sheet(tiles: Sequence[Tile], labels: Sequence[str] = (), *, ax: Axes | None) -> Axes:
    """Draw tiles, all of one shape, on ``ax`` or on a new figure that is as large as they need.

    ``labels`` are written at the left of the rows. If there are more rows than labels, the labels
    repeat, and each run of rows that they name is set apart as a band.
    """
    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    layout = _layout(tiles, labels)
    ax, unit = _new_axes(layout) if ax is None else (ax, layout.unit(*_space(ax)))
    maps = {t.cmap: colormaps[t.cmap].with_extremes(bad=_MISSING) for t in tiles}
    frames = []
    for tile in tiles:
        x, y = tile.column * layout.pitch, layout.tops[tile.row]
        ax.imshow(
            tile.image,
            cmap=maps[tile.cmap],
            vmin=tile.limits[0],
            vmax=tile.limits[1],
            extent=(x, x + layout.width, y + layout.height, y),
        )
        frames.append(Rectangle((x, y), layout.width, layout.height))
    # White images would have no border on white paper.
    borders = PatchCollection(frames, facecolor="none", edgecolor="0.75", linewidth=0.4)
    borders.set_clip_on(False)  # half of a line at the edge would be cut off
    ax.add_collection(borders)
    _write(ax, layout, tiles, labels, unit)
    width, height = layout.size
    ax.set_xlim(-layout.label_points / unit, width)
    ax.set_ylim(height, 0)
    ax.set_axis_off()
    return ax


def _layout(tiles: Sequence[Tile], labels: Sequence[str]) -> _Layout:
    height, width = tiles[0].image.shape
    n_rows = 1 + max(tile.row for tile in tiles)
    titled = {tile.row for tile in tiles if tile.title}
    gap = _GAP * np.sqrt(height * width)
    tops, foot = [], 0.0
    for row in range(n_rows):
        apart = _BAND_GAP * height if labels and row and row % len(labels) == 0 else 0.0
        foot += apart + (_TITLE * height if row in titled else gap if row else 0.0)
        tops.append(foot)
        foot += height
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    return _Layout(
        height=height,
        width=width,
        tops=np.array([*tops, foot]),
        n_columns=1 + max(tile.column for tile in tiles),
        longest_title=max(len(tile.title) for tile in tiles),
        label_points=_CHARACTER * _FONT * (longest + 1) if longest else 0.0,
    )


def _space(ax: Axes) -> tuple[float, float]:
    """Width and height of an ``Axes``, in points."""
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    return box.width * points, box.height * points


def _new_axes(layout: _Layout) -> tuple[Axes, float]:
    """An ``Axes`` that fills a figure of its own, and the points of a pixel on it."""
    import matplotlib.pyplot as plt

    unit = layout.unit(_WIDEST, _HIGHEST)
    unit = min(unit, _IMAGE / float(np.sqrt(layout.height * layout.width)))
    width, height = layout.size
    size = ((width * unit + layout.label_points) / 72, height * unit / 72)
    return plt.subplots(figsize=size, layout="constrained")[1], unit


def _write(
    ax: Axes, layout: _Layout, tiles: Sequence[Tile], labels: Sequence[str], unit: float
) -> None:
    def write(text: str, x: float, y: float, shift: tuple[float, float], **font: Any) -> None:
        ax.annotate(text, (x, y), shift, textcoords="offset points", annotation_clip=False, **font)

    size = layout.label_font(unit)
    for row, top in enumerate(layout.tops[:-1] if labels else ()):
        label, middle = labels[row % len(labels)], top + layout.height / 2
        write(label, 0, middle, (-size / 2, 0), fontsize=size, ha="right", va="center")
    size = layout.title_font(unit)
    for tile in tiles:
        if tile.title:
            middle, top = tile.column * layout.pitch + layout.width / 2, layout.tops[tile.row]
            write(tile.title, middle, top, (0, size / 5), fontsize=size, ha="center", va="bottom")
