"""Curves over numbers, with points that say their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mixfold.contracts import Array
from mixfold.report.charts.axes import chart, frame, room_for
from mixfold.report.charts.scale import Scale, scale_of
from mixfold.report.formatting import number
from mixfold.report.markup import Html, join, tag

WIDTH, HEIGHT = 640, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 14, 30, 50
# of more points only the line is drawn
_MARKED = 60


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (n,), (n,); ``crossed`` are those that do not count, drawn apart from the line."""

    label: str
    x: Array
    y: Array
    crossed: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))


def line_chart(
    curves: Sequence[Curve],
    label: str,
    x_label: str,
    y_label: str,
    *,
    ring: tuple[float, float] | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Html:
    """Curves in one frame. ``ring`` marks a point, ``marks`` are places across with words."""
    all_x, all_y = (np.concatenate([getattr(c, n) for c in curves]) for n in ("x", "y"))
    y = scale_of(all_y, HEIGHT - _BOTTOM, _TOP)
    x = scale_of(all_x, room_for(y.low, y.high, least=_LEFT), WIDTH - _RIGHT)
    whole = [v for v in x.ticks(8) if v == round(v)]
    parts = [frame(x, y, x_label, y_label, whole)]
    for at, words in marks:
        line = tag("line", x1=x(at), x2=x(at), y1=y.start, y2=y.end, class_="mark")
        parts.append(tag("g", line, tag("title", words)))
    parts += [_curve(c, i, x, y) for i, c in enumerate(curves)]
    if ring is not None:
        parts.append(tag("circle", cx=x(ring[0]), cy=y(ring[1]), r=8, class_="ring"))
    picture = chart(WIDTH, HEIGHT, label, *parts)
    return join([picture, legend([c.label for c in curves])]) if len(curves) > 1 else picture


def _curve(curve: Curve, index: int, x: Scale, y: Scale) -> Html:
    crossed = curve.crossed if curve.crossed.size else np.zeros(len(curve.x), dtype=bool)
    fine = np.isfinite(curve.y)
    places = [f"{x(a)},{y(b)}" for a, b in zip(curve.x[fine & ~crossed], curve.y[fine & ~crossed],
                                               strict=True)]  # fmt: skip
    parts = [tag("polyline", points=" ".join(places), class_="line")]
    if len(curve.x) <= _MARKED:
        for a, b, apart in zip(curve.x[fine], curve.y[fine], crossed[fine], strict=True):
            words = tag("title", f"{curve.label}: {number(a)}, {number(b, 6)}")
            parts.append(_cross(x(a), y(b), words) if apart else _dot(x(a), y(b), words))
    return tag("g", *parts, class_=f"series s{index % 8}")


def _dot(x: float, y: float, words: Html) -> Html:
    return tag("circle", words, cx=x, cy=y, r=3.5, class_="dot")


def _cross(x: float, y: float, words: Html) -> Html:
    path = f"M{x - 4} {y - 4}l8 8m0 -8l-8 8"
    return tag("path", words, d=path, class_="cross")


def legend(labels: Sequence[str]) -> Html:
    """What the colours of a chart are."""
    items = [
        tag("li", tag("span", class_=f"swatch s{i % 8}", aria_hidden="true"), label)
        for i, label in enumerate(labels)
    ]
    return tag("ul", *items, class_="legend")
