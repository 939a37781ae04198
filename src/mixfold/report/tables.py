"""HTML tables that scroll sideways where they are wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.formatting import short
from mixfold.report.markup import Html, join, tag

# steps of the signed and of the plain scale of a heat map; the style sheet colours them
_STEPS = 5


def table(
    head: Sequence[Any],
    rows: Sequence[Sequence[Any]],
    caption: str,
    *,
    text: Sequence[int] = (0,),
    class_: str = "",
) -> Html:
    """A table whose first cells head their rows; ``text`` are the columns that are no numbers."""
    aligned = ["text" if c in text else "number" for c in range(len(head))]
    top = [
        tag("th", cell, scope="col", class_=kind) for cell, kind in zip(head, aligned, strict=True)
    ]
    lines = []
    for row in rows:
        first = tag("th", row[0], scope="row", class_=aligned[0])
        rest = [tag("td", cell, class_=k) for cell, k in zip(row[1:], aligned[1:], strict=True)]
        lines.append(tag("tr", first, *rest))
    body = (
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *top)),
        tag("tbody", *lines),
    )
    return _wide(tag("table", *body, class_=class_ or None), caption)


def heat_table(
    corner: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Array,
    texts: Sequence[Sequence[Any]],
    caption: str,
    *,
    most: float,
    titles: Sequence[Sequence[str]] | None = None,
) -> Html:
    """Numbers on a ground whose shade tells their size; blue is below zero, orange above."""
    top = [tag("th", corner, scope="col", class_="text")]
    top += [tag("th", short(name, 24), scope="col", title=name) for name in columns]
    lines = []
    for i, name in enumerate(rows):
        cells = [
            tag(
                "td",
                texts[i][j],
                class_=shade(values[i, j], most),
                title=None if titles is None else titles[i][j],
            )
            for j in range(len(columns))
        ]
        lines.append(
            tag("tr", tag("th", short(name), scope="row", class_="text", title=name), *cells)
        )
    body = (
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *top)),
        tag("tbody", *lines),
    )
    return _wide(tag("table", *body, class_="heat"), caption)


def shade(value: float, most: float) -> str:
    """The class of a cell: ``p3`` for three fifths of the most, ``m3`` for that below zero."""
    if not np.isfinite(value) or most <= 0:
        return "p0"
    step = int(min(_STEPS, np.floor(abs(value) / most * _STEPS + 0.5)))
    return f"{'m' if value < 0 else 'p'}{step}"


def facts(pairs: Sequence[tuple[str, Any]]) -> Html:
    """Names and values side by side."""
    return tag("dl", *[tag("div", tag("dt", n), tag("dd", v)) for n, v in pairs], class_="facts")


def bar(part: float, label: str) -> Html:
    """A small bar in a cell, with its number."""
    width = 100 * float(np.clip(part, 0, 1)) if np.isfinite(part) else 0.0
    picture = tag(
        "svg",
        tag("rect", width=100, height=8, class_="track"),
        tag("rect", width=f"{width:.1f}", height=8, class_="fill"),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )
    return join([tag("span", label), picture])


def _wide(content: Html, label: str) -> Html:
    """May be moved sideways, by keys as well."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)
