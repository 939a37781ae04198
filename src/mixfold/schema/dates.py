"""Dates and times as people write them; a column has one way of writing, found from all entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

DAY = 86400.0
_EPOCH = datetime(1970, 1, 1)
# dates that stand for "never" or "not known"
SENTINELS = ("0001-01-01", "9999-12-31", "9999-01-01", "1900-01-01", "1899-12-30", "1970-01-01")

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y",
    "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d. %B %Y", "%Y%m%d",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f",
          "T%H:%M:%S%z", "T%H:%M:%S.%f%z", " %H:%M:%S%z", " %I:%M %p", " %I:%M:%S %p")  # fmt: skip
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_MONTHS = ("%Y-%m", "%b %Y", "%B %Y", "%m/%Y")
# day and month can be told apart only where one of them is above twelve
_SWAPPED = {"%d/%m/%Y": "%m/%d/%Y", "%d-%m-%Y": "%m-%d-%Y", "%d/%m/%y": "%m/%d/%y"}
_LIKELY = re.compile(r"\d.*[-/.:\s].*\d|^\d{8}$")


@dataclass(frozen=True, slots=True)
class FoundDates:
    """A way of writing (as of ``strptime``), whether it is a time of day, and what it left open."""

    format: str
    is_clock: bool
    remarks: tuple[str, ...]
    unread: tuple[str, ...]


def parse_date(text: str, written: str) -> float | None:
    """Days since 1970, or None."""
    try:
        return to_days(datetime.strptime(text.strip(), written))
    except ValueError:
        return None


def parse_clock(text: str, written: str) -> float | None:
    """Hours since midnight, or None."""
    try:
        return to_hours(datetime.strptime(text.strip(), written).time())
    except ValueError:
        return None


def to_days(value: date | datetime) -> float:
    """Days since 1970, in UTC where a zone is given."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return (value - _EPOCH).total_seconds() / DAY


def from_days(days: float, whole: bool) -> datetime:
    """The moment so many days after 1970; ``whole``: at midnight."""
    from datetime import timedelta

    limits = to_days(datetime(1, 1, 1)), to_days(datetime(9999, 12, 31))
    days = min(max(days, limits[0]), limits[1])
    return _EPOCH + (timedelta(days=round(days)) if whole else timedelta(seconds=round(days * DAY)))


def to_hours(value: time) -> float:
    return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600


def find_dates(entries: Sequence[str]) -> FoundDates | None:
    """The way in which nearly all entries are dates or times of day, or None."""
    texts = [text.strip() for text in entries]
    likely = [text for text in texts if _LIKELY.search(text)]
    if not likely or len(likely) < 0.8 * len(texts):
        return None
    dates = [day + clock for day in _DAYS for clock in _TIMES if not (day == "%Y%m%d" and clock)]
    found = _best(likely, texts, [*dates, *_MONTHS], parse_date)
    if found is not None:
        written, unread = found
        return FoundDates(*_settle_order(written, texts, unread))
    found = _best(likely, texts, list(_CLOCKS), parse_clock)
    return None if found is None else FoundDates(found[0], True, (), found[1])


def _best(
    likely: list[str],
    texts: list[str],
    ways: list[str],
    parse: Callable[[str, str], float | None],
) -> tuple[str, tuple[str, ...]] | None:
    some = likely[:: max(1, len(likely) // 20)]
    counted = {way: sum(parse(text, way) is not None for text in some) for way in ways}
    hopeful = sorted((way for way in ways if counted[way]), key=lambda way: -counted[way])
    best: tuple[str, tuple[str, ...]] | None = None
    for way in hopeful[:6]:
        unread = tuple(text for text in texts if parse(text, way) is None)
        if len(unread) <= 0.1 * len(texts) and (best is None or len(unread) < len(best[1])):
            best = way, unread
    return best


def _settle_order(
    written: str, texts: list[str], unread: tuple[str, ...]
) -> tuple[str, bool, tuple[str, ...], tuple[str, ...]]:
    """Day before month or after it, where the entries do not tell."""
    for first, second in _SWAPPED.items():
        if not written.startswith((first, second)):
            continue
        ways = [written.replace(first, way).replace(second, way) for way in (first, second)]
        values = [[parse_date(text, way) for text in texts] for way in ways]
        if any(None in one for one in values):  # one of them reads less
            break
        ordered = [_is_sorted(one) for one in values]
        chosen = 1 if ordered[1] and not ordered[0] else 0
        names = ("day before month", "month before day")
        why = ", in which they are in order" if ordered[chosen] != ordered[1 - chosen] else ""
        remark = f"read with the {names[chosen]}{why}; {names[1 - chosen]} would be possible"
        return ways[chosen], False, (remark,), ()
    return written, False, (), unread


def _is_sorted(values: Sequence[float | None]) -> bool:
    known = [value for value in values if value is not None]
    return len(known) > 2 and (known == sorted(known) or known == sorted(known, reverse=True))
