"""Claims about cells: their order, and agreement with runs of other code on other splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from scipy import stats

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


# ------------------------------------------------ agreement with other code

# of so many cells one in twenty is outside by chance
_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Reference:
    """Means over ``splits`` splits, of other code."""

    splits: int
    means: tuple[tuple[float, ...], ...]


def count_errors_apart(cell: Cell, mean: float, splits: int, least: float) -> float:
    """The difference from a mean over other splits, in its standard errors.

    Both spreads are taken for ours, or ``least`` if that is more: a few splits may agree by
    chance. Ours is uncertain, so the value is the one that a normal would have at the quantile of
    Student's t.

    Examples
    --------
    >>> cell = Cell("Yale", "PCA", (0.50, 0.54, 0.52, 0.56), 0.5)
    >>> round(count_errors_apart(cell, 0.53, 10, 0.0), 6)
    0.0
    >>> round(count_errors_apart(cell, 0.56, 10, 0.0), 1)
    1.5
    """
    n = len(cell.values)
    width = max(cell.spread, least) * math.sqrt(1 / n + 1 / splits)
    gap = abs(cell.ours - mean)
    if width == 0:
        return 0.0 if gap == 0 else math.inf
    return float(stats.norm.isf(stats.t.sf(gap / width, n - 1)))


def check_within_errors(name: str, cells: Sequence[Sequence[Cell]], reference: Reference) -> Check:
    """Whether nine cells of ten are within two standard errors of the reference.

    Parameters
    ----------
    name : str
        Of the set.
    cells : sequence of sequences of Cell
        As ``reference.means`` has them.
    reference : Reference
    """
    typical = median(cell.spread for mine in cells for cell in mine)
    apart = {
        (cell.row, cell.column): count_errors_apart(cell, mean, reference.splits, typical)
        for mine, means in zip(cells, reference.means, strict=True)
        for cell, mean in zip(mine, means, strict=False)
    }
    near = sum(value <= 2 for value in apart.values())
    detail = f"{near} of {len(apart)} cells; most {max(apart.values()):.1f} standard errors"
    far = [f"{row} {column}" for (row, column), value in apart.items() if value > 2]
    if far:
        detail += "; not " + ", ".join(far)
    claim = f"{name}: nine cells of ten are within two standard errors of other code"
    return Check(claim, near >= _SHARE * len(apart), detail)
