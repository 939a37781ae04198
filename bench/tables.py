"""Markdown tables, readable in a terminal as they are."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table with columns of even width."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "| " + " | ".join("-" * w for w in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def ratio(theirs: float | None, ours: float | None) -> str:
    """How many times as much the other one takes."""
    if theirs is None or ours is None:
        return "-"
    return f"{theirs / ours:.2f}x" if min(theirs, ours) > 0 else "noise"


def difference(theirs: float | None, ours: float | None) -> str:
    """Relative difference of two log-likelihoods."""
    return "-" if theirs is None or ours is None else f"{abs(theirs - ours) / abs(theirs):.0e}"
