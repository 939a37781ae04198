"""The axes of a chart: frame, ticks, labels."""

from __future__ import annotations

from typing import Any

from mixfold.report.charts.scale import Scale, tick_texts, ticks
from mixfold.report.markup import Html, join, tag

# of texts at the side: a letter on a narrow screen, where the style sheet makes them larger
_LETTER, _ROOM = 10, 10
# below the axis: texts of the ticks, and what the axis shows
_TICKS, _LABEL = 8, 46


def chart(width: int, height: int, label: str, *children: Any, class_: str = "chart") -> Html:
    """A picture with a name for those who do not see it."""
    return tag(
        "svg",
        tag("title", label),
        *children,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
        class_=class_,
    )


def room_for(low: float, high: float, most: int = 5, *, least: int) -> int:
    """How far from the edge an axis stands, so that the texts of its ticks are not cut off."""
    texts = tick_texts(ticks(low, high, most))
    return max(least, _ROOM + _LETTER * max((len(text) for text in texts), default=0))


def frame(
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    x_ticks: list[float] | None = None,
    most: tuple[int, int] = (6, 5),
    gap: int = 0,
) -> Html:
    """Lines and texts of both axes, with given ticks across, or at most so many.

    ``gap`` is room between the axis and its texts, for marks.
    """
    marks = x.ticks(most[0]) if x_ticks is None else x_ticks
    return join([_bottom(x, y, x_label, marks, gap), _side(x, y, y_label, y.ticks(most[1]))])


def _bottom(x: Scale, y: Scale, label: str, marks: list[float], gap: int) -> Html:
    parts: list[Html] = []
    for value, text in zip(marks, tick_texts(marks), strict=True):
        at = y.start + _TICKS + gap
        parts.append(tag("text", text, x=x(value), y=at, class_="tick middle below"))
    parts.append(tag("line", x1=x.start, x2=x.end, y1=y.start, y2=y.start, class_="axis"))
    middle = (x.start + x.end) / 2
    parts.append(tag("text", label, x=middle, y=y.start + _LABEL + gap, class_="label middle"))
    return join(parts)


def _side(x: Scale, y: Scale, label: str, marks: list[float]) -> Html:
    parts: list[Html] = []
    for value, text in zip(marks, tick_texts(marks), strict=True):
        at = y(value)
        parts.append(tag("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="grid"))
        parts.append(tag("text", text, x=x.start - 6, y=at + 4, class_="tick end"))
    parts.append(tag("text", label, x=x.start - 4, y=y.end - 10, class_="label"))
    return join(parts)
