"""Claims about cells: their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from papers.frame.table import Cell, Check

# ------------------------------------------------ order of cells


def check_growth(claim: str, series: Sequence[Sequence[Cell]]) -> Check:
    """Check that our values rise strictly along each of some series of cells.

    Parameters
    ----------
    claim : str
        What is claimed, for example ``"SER grows with d"``.
    series : sequence of sequences of Cell
        Each in the order in which it should rise, of at least two cells.

    Examples
    --------
    >>> cells = [Cell("d=6", "SER", (17.3,), 17.4), Cell("d=12", "SER", (18.9,), 18.9)]
    >>> check = check_growth("SER grows with d", [cells])
    >>> print(check.holds, check.detail, sep="; ")
    True; in 1 of 1 series, as published (1 of 1)
    """
    if not series or any(len(cells) < 2 for cells in series):
        raise ValueError(f"{claim!r} cannot be checked on a series of fewer than two cells.")
    falls = [
        f"{a.row} {a.ours:.4g} -> {b.row} {b.ours:.4g}"
        for cells in series
        for a, b in pairwise(cells)
        if not a.ours < b.ours
    ]
    rising = sum(_rises([cell.ours for cell in cells]) for cells in series)
    detail = f"in {rising} of {len(series)} series{_describe_published(series)}"
    if falls:
        detail += f"; not from {', '.join(falls)}"
    return Check(claim, not falls, detail)


def _rises(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _describe_published(series: Sequence[Sequence[Cell]]) -> str:
    values = [[cell.published for cell in cells] for cells in series]
    known = [[v for v in row if v is not None] for row in values if None not in row]
    if not known:
        return ""
    rising = sum(map(_rises, known))
    return f", {'as published' if rising == len(known) else 'published'} ({rising} of {len(known)})"
