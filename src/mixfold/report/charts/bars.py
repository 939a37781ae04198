"""Bar charts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixfold.contracts import Array
from mixfold.report.charts.axes import chart, frame, room_for
from mixfold.report.charts.scale import Scale, scale_of
from mixfold.report.formatting import number
from mixfold.report.markup import Html, tag

_WIDTH, _HEIGHT = 640, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 30, 50
# length of the marks of single rows
_MARKS = 7


def bar_chart(values: Array, label: str, x_label: str, y_label: str) -> Html:
    """Bars numbered from one."""
    values = np.asarray(values, float)
    y = scale_of(np.append(values, 0.0), _HEIGHT - _BOTTOM, _TOP, 0.0)
    left = room_for(y.low, y.high, least=_LEFT)
    x = Scale(0.4, len(values) + 0.6, left, _WIDTH - _RIGHT)
    parts = [frame(x, y, x_label, y_label, _whole(len(values)))]
    for i, value in enumerate(values, 1):
        words = tag("title", f"{x_label} {i}: {number(value, 4)}")
        parts.append(_bar(x(i - 0.35), x(i + 0.35), y(0.0), y(float(value)), words))
    return chart(_WIDTH, _HEIGHT, label, *parts)


def _bar(left: float, right: float, base: float, top: float, words: Html) -> Html:
    low, high = max(base, top), min(base, top)
    size = {"width": f"{right - left:.2f}", "height": f"{low - high:.2f}"}
    return tag("rect", words, x=left, y=high, **size, class_="fill")


def _whole(n: int) -> list[float]:
    step = max(1, -(-n // 12))
    return [float(v) for v in range(1, n + 1, step)]


def histogram(
    counts: Array,
    edges: Array,
    label: str,
    x_label: str,
    marks: Sequence[float],
    y_label: str = "rows",
) -> Html:
    """How many rows lie between the edges; ``marks`` are places of single rows."""
    y = scale_of(np.append(counts, 0.0), _HEIGHT - _BOTTOM - _MARKS, _TOP, 0.0)
    left = room_for(y.low, y.high, least=_LEFT)
    x = Scale(float(edges[0]), float(edges[-1]), left, _WIDTH - _RIGHT)
    parts = [frame(x, y, x_label, y_label, gap=_MARKS)]
    for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True):
        words = tag("title", f"{number(low)} to {number(high)}: {number(n, 6)}")
        parts.append(_bar(x(float(low)), x(float(high)) - 1, y(0.0), y(float(n)), words))
    for value in marks:
        at = x(float(np.clip(value, edges[0], edges[-1])))
        parts.append(tag("line", x1=at, x2=at, y1=y.start, y2=y.start + _MARKS, class_="odd"))
    return chart(_WIDTH, _HEIGHT, label, *parts)
