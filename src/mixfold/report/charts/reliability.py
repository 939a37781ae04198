"""Reliability diagrams: predicted probabilities against observed frequencies."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.charts.axes import chart, frame
from mixfold.report.charts.scale import Scale
from mixfold.report.formatting import count, share
from mixfold.report.markup import Html, tag

_WIDTH, _HEIGHT = 480, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 30, 50


def reliability_chart(confidence: Array, correct: Array, weight: Array, word: str) -> Html:
    """Mean confidence, share that is correct and rows, (bins,) each; empty bins are left out."""
    x = Scale(0.0, 1.0, _LEFT, _WIDTH - _RIGHT)
    y = Scale(0.0, 1.0, _HEIGHT - _BOTTOM, _TOP)
    ideal = tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="ideal")
    parts = [frame(x, y, "probability of the predicted class", "share classified correctly"), ideal]
    used = weight > 0
    line = [f"{x(a)},{y(b)}" for a, b in zip(confidence[used], correct[used], strict=True)]
    parts.append(tag("g", tag("polyline", points=" ".join(line), class_="line"), class_="s0"))
    for a, b, n in zip(confidence[used], correct[used], weight[used], strict=True):
        words = tag("title", f"probability {share(a)}, correct {share(b)}, {word} {count(n)}")
        radius = round(3 + 9 * float(np.sqrt(n / weight.max())), 1)
        dot = tag("circle", words, cx=x(a), cy=y(b), r=radius, class_="dot")
        parts.append(tag("g", dot, class_="s0"))
        beside = 20 if 0.1 < b <= 0.5 else -12  # below the axis stand its ticks
        parts.append(tag("text", count(n), x=x(a), y=y(b) + beside, class_="tick middle halo"))
    label = "Reliability diagram: share of correct classes by predicted probability"
    return chart(_WIDTH, _HEIGHT, label, *parts, class_="chart square")
