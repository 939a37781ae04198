"""Agreement with runs of other code on other splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scipy import stats

from mixfold.experiments.table import Cell, Check

# of so many cells one in twenty is outside by chance
_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Reference:
    """Means over ``splits`` splits, of other code."""

    splits: int
    means: tuple[tuple[float, ...], ...]


def errors_apart(cell: Cell, mean: float, splits: int, least: float) -> float:
    """The difference from a mean over other splits, in its standard errors.

    Both spreads are taken for ours, or ``least`` if that is more: a few splits may agree by
    chance. Ours is uncertain, so the value is the one that a normal would have at the quantile of
    Student's t.

    Examples
    --------
    >>> cell = Cell("Yale", "PCA", (0.50, 0.54, 0.52, 0.56), 0.5)
    >>> round(errors_apart(cell, 0.53, 10, 0.0), 6), round(errors_apart(cell, 0.56, 10, 0.0), 1)
    (0.0, 1.5)
    """
    n = len(cell.values)
    width = max(cell.spread, least) * math.sqrt(1 / n + 1 / splits)
    gap = abs(cell.ours - mean)
    if width == 0:
        return 0.0 if gap == 0 else math.inf
    return float(stats.norm.isf(stats.t.sf(gap / width, n - 1)))


def within_errors(name: str, cells: Sequence[Sequence[Cell]], reference: Reference) -> Check:
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
        (cell.row, cell.column): errors_apart(cell, mean, reference.splits, typical)
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
