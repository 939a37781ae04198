"""Numbers as people write them: ``1.234,56``, ``$93,817``, ``5.8 %``, ``(1,200)``, ``569 g``.

A column of text has one convention, which is found from all of its entries together: a single
``1,234`` may be a thousand or one and a quarter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CURRENCIES = (
    r"[A-Z]{0,2}[$€£¥₹₽₩₺₪฿]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|BRL|ZAR|"
    r"MXN|Rs\.?|kr\.?|Fr\.?|ca\.|~|≈"
)
_SPACES = "  \u00a0\u202f\u2009"
_PATTERN = re.compile(
    rf"""^(?P<open>\()?\s*
    (?P<bound>[<>]=?|[≤≥])?\s*
    (?P<sign>[+\-\u2212\u2013])?\s*
    (?P<prefix>{_CURRENCIES})?\s*
    (?P<inner>[+\-\u2212\u2013])?\s*
    (?P<body>\d(?:[\d.,'\u2019{_SPACES}]*\d)?|[.,]\d+|\d+[.,])
    (?P<power>[eE][+\-]?\d+)?\s*
    (?P<suffix>[^\d\s()\[\]*†‡§<>+\-=]{{1,8}}(?:/[^\W\d_]{{1,5}})?)?\s*
    (?P<note>(?:[*†‡§¹²³]|\[\w{{1,3}}\])+)?\s*
    (?P<close>\))?$""",
    re.VERBOSE,
)
# spaces and apostrophes between digits always part thousands
_ALWAYS_THOUSANDS = re.compile(rf"['\u2019{_SPACES}]")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : str
        ``.`` or ``,``.
    thousands : str
        What parts groups of three digits; empty if nothing does.
    prefix, suffix : str
        A currency or a unit, with the space beside it.
    negative_in_parentheses : bool
    digits : int
        Most digits after the decimal mark.
    """

    decimal: str = "."
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    negative_in_parentheses: bool = False
    digits: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether ``float`` reads these numbers."""
        return self.decimal == "." and not (
            self.thousands or self.prefix or self.suffix or self.negative_in_parentheses
        )

    def parse(self, text: str) -> float | None:
        """The number, or None; of ``<0.05`` the limit."""
        match = _PATTERN.match(text.strip())
        if match is None or (match["open"] is None) != (match["close"] is None):
            return None
        if not (
            self._is_unit(match["prefix"], self.prefix)
            and self._is_unit(match["suffix"], self.suffix)
        ):
            return None
        body = _ALWAYS_THOUSANDS.sub("", match["body"])
        other = "," if self.decimal == "." else "."
        whole, _, fraction = body.partition(self.decimal)
        if other in whole:
            groups = whole.split(other)
            if self.thousands != other or not _are_thousands(groups):
                return None
            whole = "".join(groups)
        if self.decimal in fraction or other in fraction:
            return None
        value = float(f"{whole or '0'}.{fraction or '0'}{match['power'] or ''}")
        negative = (match["sign"] or match["inner"] or "+") != "+" or match["open"]
        return -value if negative else value

    @staticmethod
    def _is_unit(found: str | None, known: str) -> bool:
        return not found or found.strip().casefold() == known.strip().casefold()

    def format(self, value: float, digits: int | None = None) -> str:
        """The number as the column writes it."""
        digits = self.digits if digits is None else digits
        text = f"{abs(value):,.{digits}f}"
        if self.thousands != "," or self.decimal != ".":
            swap = {",": self.thousands, ".": self.decimal}
            text = "".join(swap.get(one, one) for one in text)
        text = f"{self.prefix}{text}{self.suffix}"
        if value >= 0 or not float(f"{value:.{digits}f}"):
            return text
        return f"({text})" if self.negative_in_parentheses else f"-{text}"


def _are_thousands(groups: Sequence[str]) -> bool:
    return 1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])


def is_bound(text: str) -> bool:
    """Whether an entry is a limit of detection, such as ``<0.05``."""
    match = _PATTERN.match(text.strip())
    return match is not None and match["bound"] is not None


@dataclass(frozen=True, slots=True)
class FoundFormat:
    """A convention, what was ambiguous about it, and the entries that it does not read."""

    format: NumberFormat
    remarks: tuple[str, ...]
    unread: tuple[str, ...]


def find_format(entries: Iterable[str], decimal: str = "") -> FoundFormat | None:
    """The convention in which most of the entries are numbers; None if few are, or units differ.

    ``decimal`` is the mark, if it is known.
    """
    texts = [text.strip() for text in entries]
    matches = {text: _PATTERN.match(text) for text in texts}
    read = {text: match for text, match in matches.items() if match is not None}
    if 2 * len(read) < len(matches) or not read:
        return None
    prefixes = Counter(m["prefix"].casefold() for m in read.values() if m["prefix"])
    suffixes = Counter(m["suffix"].casefold() for m in read.values() if m["suffix"])
    for units in (prefixes, suffixes):
        if len(units) > 1 and units.most_common()[1][1] > 0.02 * len(read):
            return None  # grams and kilograms
    decimal, thousands, remarks = _find_marks([match["body"] for match in read.values()], decimal)
    found = NumberFormat(
        decimal,
        thousands,
        _unit_as_written(read, prefixes, "prefix"),
        _unit_as_written(read, suffixes, "suffix"),
        any(match["open"] for match in read.values()),
    )
    unread = tuple(text for text in matches if found.parse(text) is None)
    digits = [
        len(match["body"].rpartition(decimal)[2])
        for text, match in read.items()
        if decimal in match["body"] and found.parse(text) is not None
    ]
    found = NumberFormat(
        found.decimal, found.thousands, found.prefix, found.suffix,
        found.negative_in_parentheses, max(digits, default=0),
    )  # fmt: skip
    return FoundFormat(found, remarks, unread)


def _unit_as_written(read: dict[str, re.Match[str]], units: Counter[str], side: str) -> str:
    """The unit with the space that stands between it and the number, most often."""
    if not units:
        return ""
    unit = units.most_common(1)[0][0]
    ways: Counter[str] = Counter()
    for match in read.values():
        if match[side] and match[side].casefold() == unit:
            gap = match.start("body") - match.end(side)
            if side == "suffix":
                end = match.end("power") if match["power"] else match.end("body")
                gap = match.start(side) - end
                ways[" " * min(gap, 1) + match[side]] += 1
            else:
                ways[match[side] + " " * min(gap, 1)] += 1
    return ways.most_common(1)[0][0]


def _find_marks(bodies: list[str], known: str) -> tuple[str, str, tuple[str, ...]]:
    """The decimal mark, the mark of thousands, and what the entries leave open."""
    votes: Counter[str] = Counter()
    grouped: Counter[str] = Counter()
    open_marks: Counter[str] = Counter()
    for body in bodies:
        space = _ALWAYS_THOUSANDS.search(body)
        if space:
            grouped[" " if space[0] in _SPACES else "'"] += 1
            body = _ALWAYS_THOUSANDS.sub("", body)
        marks = [one for one in body if one in ".,"]
        if len(set(marks)) == 2:
            votes[marks[-1]] += 1
            grouped[marks[0]] += 1
        elif len(marks) > 1:
            grouped[marks[0]] += 1
            votes["." if marks[0] == "," else ","] += 1
        elif marks:
            whole, _, fraction = body.partition(marks[0])
            if len(fraction) == 3 and 1 <= len(whole) <= 3 and whole.lstrip("0"):
                open_marks[marks[0]] += 1
            else:
                votes[marks[0]] += 1
    remarks: list[str] = []
    if known:
        decimal = known
    elif votes:
        decimal = votes.most_common(1)[0][0]
    elif open_marks and not open_marks["."]:
        decimal = "."
        remarks.append("'1,234' is read as 1234, not as 1.234")
    else:
        decimal = "."
    other = "," if decimal == "." else "."
    if grouped[other] or open_marks[other]:
        return decimal, other, tuple(remarks)
    rest = [mark for mark in grouped if mark not in ".,"]
    return decimal, rest[0] if rest else "", tuple(remarks)
