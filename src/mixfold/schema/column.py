"""What one column is, why, and how its entries become numbers and numbers entries again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mixfold.schema.numbers import NumberFormat

# what a column can be; those of the second line are set aside
MODELLED = ("number", "count", "yes/no", "category", "ordered", "cyclic", "date")
SET_ASIDE = ("identifier", "text", "constant", "copy", "empty")
KINDS = (*MODELLED, *SET_ASIDE)
SCALES = ("plain", "log", "sqrt", "cbrt", "reciprocal", "share")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    kind : str
        'number', 'count', 'yes/no', 'category', 'ordered', 'cyclic' or 'date'; or, set aside,
        'identifier', 'text', 'constant', 'copy' or 'empty'.
    reason : str
        Why it was taken for that.
    used : bool
        Whether models see it.
    levels : tuple
        The categories, in the order of their codes 0, 1, ...
    scale : str
        Of numbers: 'plain'; 'log', 'sqrt', 'cbrt' or 'reciprocal' (positive and skewed: models see
        the logarithm, a root or -1 / x); 'share' (between 0 and 1).
    margin : float
        Of shares of which some are 0 or 1: models see them between the margin and 1 - margin.
    step : float or None
        The distance at which numbers are recorded: 1 for whole ones.
    low, high : float or None
        The smallest and the largest number seen.
    period : tuple of float or None
        Of 'cyclic' numbers: where they begin, and after how much they begin again.
    missing : tuple of str
        What stands for a missing entry, besides the usual words and empty ones.
    numbers : NumberFormat or None
        How numbers are written, in a column of text.
    dates : str or None
        How dates are written, in a column of text; as of ``datetime.strptime``.
    stored : str
        What the entries are: 'text', 'integer', 'float', 'boolean', 'date', 'datetime', 'time',
        'decimal' or 'duration'.
    copy_of : str
        The column that it repeats.
    spellings : dict
        Other ways of writing a level, and the level.
    remarks : tuple of str
        What was decided about it that one may want to know.
    """

    name: str
    kind: str
    reason: str
    used: bool = True
    levels: tuple[Any, ...] = ()
    scale: str = "plain"
    step: float | None = None
    low: float | None = None
    high: float | None = None
    period: tuple[float, float] | None = None
    missing: tuple[str, ...] = ()
    numbers: NumberFormat | None = None
    dates: str | None = None
    stored: str = "text"
    copy_of: str = ""
    spellings: dict[str, Any] = field(default_factory=dict)
    margin: float = 0.0
    remarks: tuple[str, ...] = ()

    @property
    def has_levels(self) -> bool:
        """Whether models see codes of levels."""
        return bool(self.levels) and self.kind in ("yes/no", "category", "ordered", "cyclic")

    def describe(self) -> str:
        """The kind in a few words, for people."""
        if self.kind == "number":
            return {"plain": "number", "share": "share of 1"}.get(
                self.scale, "positive number, skewed"
            )
        if self.kind in ("category", "ordered"):
            return f"{self.kind} of {len(self.levels)}"
        if self.kind == "copy":
            return f"copy of {self.copy_of!r}"
        return self.kind
