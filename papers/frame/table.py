"""What a rerun gives: cells beside what was published, and verdicts by a stated rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Verdict(StrEnum):
    """How a cell compares with the published one."""

    reproduced = "reproduced"
    better = "better"
    differs = "differs"
    open = "not judged"


class Best(Enum):
    """Which values of a measure are the better ones."""

    higher = "higher"
    lower = "lower"
    neither = "neither"

    def prefers(self, ours: float, published: float) -> bool:
        """Whether ours is an improvement; a NaN never is."""
        if self is Best.neither:
            return False
        return ours > published if self is Best.higher else ours < published


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a value may lie from the published one p: ``absolute + relative * |p|``.

    Examples
    --------
    >>> Tolerance(absolute=0.5).allows(17.3, 17.7), Tolerance(relative=0.1).allows(1.0, 2.0)
    (True, False)
    """

    absolute: float = 0.0
    relative: float = 0.0

    def allows(self, ours: float, published: float) -> bool:
        """Whether ``ours`` is near enough; a NaN never is."""
        return abs(ours - published) <= self.width(published)

    def width(self, published: float) -> float:
        """The largest difference that is allowed."""
        return self.absolute + self.relative * abs(published)

    def words(self, unit: str = "") -> str:
        """The rule for people.

        Examples
        --------
        >>> Tolerance(absolute=0.5).words("dB"), Tolerance(0.01, 0.1).words()
        ('within 0.5 dB', 'within 0.01 + 10 %')
        """
        parts = [f"{self.absolute:g} {unit}".strip()] if self.absolute or not self.relative else []
        if self.relative:
            parts.append(f"{self.relative:.3g}" if self.relative > 1 else f"{self.relative:.0%}")
        return "within " + " + ".join(part.replace("%", " %") for part in parts)


@dataclass(frozen=True, slots=True)
class Column:
    """A measure: its name, and when a value counts as the published one.

    Attributes
    ----------
    name : str
        Heading, as short as the published one.
    meaning : str
        What is measured and how, in a sentence.
    unit : str
        Empty for a pure number.
    tolerance : Tolerance or None
        None: shown beside the published value, not judged, unless the cell has a tolerance of its
        own; ``meaning`` should say why.
    form : str
        Format of a value, for example ``".2f"``.
    logarithmic : bool
        Draw on a logarithmic axis.
    best : Best
        Whether a value beyond the tolerance is an improvement, on which side.
    own : str
        The rule in words where cells have tolerances of their own.
    """

    name: str
    meaning: str
    unit: str = ""
    tolerance: Tolerance | None = None
    form: str = ".3g"
    logarithmic: bool = False
    best: Best = Best.neither
    own: str = ""

    @property
    def heading(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def rule(self) -> str:
        """When a cell is called reproduced, for people."""
        if self.own:
            return self.own
        return "not judged" if self.tolerance is None else self.tolerance.words(self.unit)

    def verdict(self, cell: Cell) -> Verdict:
        """Judge a cell of this column."""
        tolerance = self.tolerance if cell.tolerance is None else cell.tolerance
        if tolerance is None or cell.published is None:
            return Verdict.open
        if tolerance.allows(cell.ours, cell.published):
            return Verdict.reproduced
        return Verdict.better if self.best.prefers(cell.ours, cell.published) else Verdict.differs


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of a table.

    Attributes
    ----------
    row, column : str
        Where it stands; ``column`` is the name of a ``Column``.
    values : tuple of float
        What we got, one value for each repeat (another split, say, with other random numbers).
    published : float or None
        None where no number is published.
    published_spread : float or None
        The standard deviation that is printed with it.
    why : str
        What is known of a difference, with its evidence, in a sentence.
    tolerance : Tolerance or None
        Of this cell alone, for example two of its published standard deviations; None: that of
        the column.
    """

    row: str
    column: str
    values: tuple[float, ...]
    published: float | None = None
    published_spread: float | None = None
    why: str = ""
    tolerance: Tolerance | None = None

    @property
    def ours(self) -> float:
        """The mean over repeats."""
        return math.fsum(self.values) / len(self.values)

    @property
    def spread(self) -> float:
        """Standard deviation over repeats; NaN for a single one."""
        gaps = [value - self.ours for value in self.values]
        squares = math.fsum(gap * gap for gap in gaps)
        return math.sqrt(squares / (len(gaps) - 1)) if len(gaps) > 1 else math.nan


@dataclass(frozen=True, slots=True)
class Check:
    """A claim about the table as a whole, such as an order of its cells."""

    claim: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Table:
    """The result of a rerun.

    Attributes
    ----------
    columns : tuple of Column
        In the order in which they are shown.
    cells : tuple of Cell
        Row by row; a row may lack some columns.
    checks : tuple of Check
    settings : tuple of (str, str)
        What was run, by name: repeats, restarts, what the quick variant leaves out.
    notes : tuple of str
        What a reader must know to judge the differences.
    draw : callable or None
        ``draw(figure)`` makes a picture of the table's own; None: all cells, measure by measure.
    """

    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]
    checks: tuple[Check, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    draw: Callable[[Figure], None] | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        places = [(cell.row, cell.column) for cell in self.cells]
        if not places:
            raise ValueError("A table needs at least one cell.")
        if len(set(names)) < len(names) or len(set(places)) < len(places):
            raise ValueError("A table has a column or a cell twice; give each its own name.")
        for cell in self.cells:
            if cell.column not in names:
                raise ValueError(
                    f"The cell {cell.row!r} is in the column {cell.column!r}, which the table "
                    f"does not declare; its columns are {', '.join(map(repr, names))}."
                )
            if not cell.values:
                raise ValueError(f"The cell {cell.row!r}, {cell.column!r} has no value.")

    @property
    def rows(self) -> tuple[str, ...]:
        """Labels of the rows, in order."""
        return tuple(dict.fromkeys(cell.row for cell in self.cells))

    def cell(self, row: str, column: str) -> Cell | None:
        """The entry at a place, if there is one."""
        found = (c for c in self.cells if (c.row, c.column) == (row, column))
        return next(found, None)

    def verdicts(self, column: Column) -> Counter[Verdict]:
        """How many cells of a column have which verdict."""
        return Counter(column.verdict(c) for c in self.cells if c.column == column.name)

    def judged(self, column: Column) -> str:
        """The same for people, empty if no cell is judged.

        Examples
        --------
        >>> column = Column("error", "of a test", tolerance=Tolerance(0.1), best=Best.lower)
        >>> cells = [Cell(str(e), "error", (e,), 2.0) for e in (1.0, 2.0, 3.0)]
        >>> Table((column,), tuple(cells)).judged(column)
        '1 of 3 reproduced, 1 better, 1 differs'
        """
        counts = self.verdicts(column)
        total = sum(counts.values()) - counts[Verdict.open]
        if not total:
            return ""
        others = (Verdict.better, Verdict.differs)
        more = [f"{counts[verdict]} {verdict}" for verdict in others if counts[verdict]]
        return ", ".join([f"{counts[Verdict.reproduced]} of {total} reproduced", *more])

    @property
    def differences(self) -> tuple[Cell, ...]:
        """The cells that differ, row by row."""
        rules = {column.name: column for column in self.columns}
        return tuple(c for c in self.cells if rules[c.column].verdict(c) is Verdict.differs)
