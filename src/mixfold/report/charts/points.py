"""Scatter plots of rows: SVG, which the script of the page moves and colours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixfold.contracts import Array
from mixfold.report.charts.axes import frame
from mixfold.report.charts.scale import Scale, inner_scale
from mixfold.report.markup import Html, tag

WIDTH, HEIGHT = 760, 520
LEFT, RIGHT, TOP, BOTTOM = 62, 26, 38, 62
_MOST_NAMES = 20
# room that a line and a letter of a name take
_LINE, _LETTER = 14, 9


def point_map(
    x: Array, y: Array, groups: Array, names: Sequence[str], labels: tuple[str, str], title: str
) -> Html:
    """Points (n,), (n,) in the colours of their groups (-1 is none), which are named in place."""
    across = inner_scale(x, LEFT, WIDTH - RIGHT)
    up = inner_scale(y, HEIGHT - BOTTOM, TOP)
    dots = [
        f'<circle cx="{across(a)}" cy="{up(b)}" r="3.2" class="{colour_class(g)}"/>'
        for a, b, g in zip(x, y, groups, strict=True)
    ]
    clip = tag("rect", x=LEFT, y=TOP, width=WIDTH - LEFT - RIGHT, height=HEIGHT - TOP - BOTTOM)
    words = [
        tag("text", name, x=place[0], y=place[1], class_="name middle")
        for name, place in _place_names(x, y, groups, names, across, up)
    ]
    parts = (
        tag("title", title),
        tag("defs", tag("clipPath", clip, id="map-clip")),
        tag("g", frame(across, up, *labels, most=(9, 7)), class_="frame"),
        tag("g", Html("".join(dots)), class_="points", clip_path="url(#map-clip)"),
        tag("g", *words, class_="names", aria_hidden="true"),
    )
    box = f"0 0 {WIDTH} {HEIGHT}"
    return tag("svg", *parts, viewBox=box, role="img", class_="chart map", aria_label=title)


def _place_names(
    x: Array, y: Array, groups: Array, names: Sequence[str], across: Scale, up: Scale
) -> list[tuple[str, tuple[float, float]]]:
    """Names in the middle of their points; none that would lie on another one (see the legend)."""
    placed: list[tuple[str, tuple[float, float]]] = []
    if not 1 < len(names) <= _MOST_NAMES:
        return placed
    for k, name in enumerate(names):
        own = groups == k
        if not own.any():
            continue
        at = across(float(np.median(x[own]))), up(float(np.median(y[own])))
        if not any(
            abs(at[1] - other[1]) < _LINE
            and abs(at[0] - other[0]) < _LETTER * (len(name) + len(said)) / 2
            for said, other in placed
        ):
            placed.append((name, at))
    return placed


def beyond(x: Array, y: Array) -> int:
    """How many points lie outside of the picture."""
    outside = np.zeros(len(x), dtype=bool)
    for values in (x, y):
        scale = inner_scale(values, 0.0, 1.0)
        outside |= (values < scale.low) | (values > scale.high)
    return int(outside.sum())


def colour_class(group: int) -> str:
    """Eight colours, then the same as rings."""
    return f"g{group % 8}{' hollow' * (group // 8 % 2)}" if group >= 0 else "none"
