"""What a column is: rules from its entries and its name, in the order in which they are asked.

The entries come as text, or as numbers, truth values and dates of a typed table. Each rule that
applies says why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.schema import words
from mixfold.schema.column import Column
from mixfold.schema.dates import SENTINELS, find_dates, parse_clock, parse_date, to_days
from mixfold.schema.numbers import FoundFormat, NumberFormat, find_format, is_bound
from mixfold.schema.scales import NAMES, choose_scale, is_beta

# fewer different values than this are levels, if each has a few rows
_MOST_LEVELS = 30
# rows that a category should have on average
_ROWS_PER_LEVEL = 5
# of the entries that say something, so many have to be numbers in a column of numbers
_SHARE_OF_NUMBERS = 0.9
# unless it is one word that they are not
_MOST_OF_A_WORD = 0.5
# identifiers: a column of fewer rows may well have different values by chance
_FEWEST_ROWS_OF_IDS = 10
# numbers that stand for "not known" where nothing else comes near them
_NINES = (9, 99, 999, 9999, 99999, 9.99, 99.9, 99.99, 999.9, 999.99)
_OTHERS = (98, 998, 9998, 88, 888, 8888, 77, 777, 7777)
_STAND_INS = [-1, *(sign * value for value in (*_NINES, *_OTHERS) for sign in (1, -1))]


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of one column, ``None`` where nothing stands, and the type of the others."""

    name: str
    values: Sequence[Any]
    stored: str
    levels: tuple[Any, ...] = ()
    ordered: bool = False
    decimal: str = ""


def judge(entries: Entries) -> Column:
    """What the column is."""
    known = [value for value in entries.values if value is not None]
    if entries.stored == "float":
        known = [value for value in known if not math.isnan(value)]
    if entries.stored == "text" and not entries.levels:
        return _judge_text(entries, [str(value) for value in known])
    make = _Maker(entries.name, entries.stored)
    if not known:
        return make("empty", "it has no entries", used=False)
    if entries.levels:
        return _judge_levels(make, list(entries.levels), entries.ordered)
    if entries.stored == "boolean":
        return _of_two(make, sorted(set(known)), "it holds True and False")
    if entries.stored in ("date", "datetime"):
        return _judge_days(make, [to_days(v) for v in known], ())
    if entries.stored == "time":
        return make("cyclic", "it holds times of day", period=(0.0, 24.0))
    if entries.stored == "duration":
        seconds = [value.total_seconds() for value in known]
        return _judge_numbers(make, np.array(seconds), ())
    if entries.stored == "other":
        return make("text", f"it holds entries such as {known[0]!r:.40}", used=False)
    return _judge_numbers(make, np.array([float(v) for v in known]), ())


@dataclass(frozen=True, slots=True)
class _Maker:
    """Columns of one name."""

    name: str
    stored: str
    decimal: str = ""

    def __call__(self, kind: str, reason: str, **more: Any) -> Column:
        return Column(self.name, kind, reason, stored=self.stored, **more)

    @property
    def words(self) -> set[str]:
        return words.name_parts(self.name)


# ------------------------------------------------ text


def _judge_text(entries: Entries, known: list[str]) -> Column:
    make = _Maker(entries.name, "text", entries.decimal)
    counts = Counter(text.strip() for text in known)
    for text in [one for one in counts if words.is_missing(one, among_numbers=False)]:
        del counts[text]
    if not counts:
        return make("empty", "it has no entries", used=False)
    if _are_codes(counts):
        width = len(next(iter(counts)))
        why = f"some of its numbers begin with zeros and all have {width} digits, as codes do"
        return _judge_codes(make, counts, why)
    for find in (_find_numbers, _find_dates):
        found = find(make, counts)
        if found is not None:
            return found
    return _judge_categories(make, counts)


def _are_codes(counts: Counter[str]) -> bool:
    """Numbers of one width, some with a zero in front: 007, 04109."""
    if not all(text.isdecimal() for text in counts):
        return False
    return len({len(text) for text in counts}) == 1 and any(
        text[0] == "0" and len(text) > 1 for text in counts
    )


def _find_numbers(make: _Maker, counts: Counter[str]) -> Column | None:
    among = {text: n for text, n in counts.items() if not words.is_missing(text, True)}
    found = find_format(among, make.decimal) if among else None
    if found is None:
        return None
    odd = Counter({text: among[text] for text in found.unread})
    share = odd.total() / sum(among.values())
    n_numbers = len(among) - len(odd)
    # a word that comes again and again beside numbers stands for none; so do a few odd entries
    one_word = len(odd) <= 2 and n_numbers >= 10 and not any(c.isdigit() for t in odd for c in t)
    if share > (_MOST_OF_A_WORD if one_word else 1 - _SHARE_OF_NUMBERS) or len(odd) > 10:
        return None
    if len(among) - len(odd) < 2 and len(odd) >= 2:
        return None
    values = {text: found.format.parse(text) for text in among if text not in odd}
    remarks = [*found.remarks, *_remarks_on_odd(odd)]
    bounds = [text for text in values if is_bound(text)]
    if bounds:
        n = sum(among[text] for text in bounds)
        remarks.append(f"{n} entries such as {bounds[0]!r} are limits: they are read as the limit")
    numbers = np.repeat(
        [float(v) for v in values.values() if v is not None], [among[t] for t in values]
    )
    column = _judge_numbers(make, numbers, tuple(odd), found)
    if column.levels:  # levels are what stands in the table
        column = replace(column, levels=_as_written(column.levels, values, among))
    return replace(
        column, numbers=found.format, missing=column.missing, remarks=(*remarks, *column.remarks)
    )


def _as_written(
    levels: tuple[Any, ...], values: dict[str, float | None], counts: dict[str, int]
) -> tuple[Any, ...]:
    """The numbers in the way they are written most often."""
    return tuple(
        max(
            (text for text, value in values.items() if value == level),
            key=lambda text: counts[text],
            default=str(level),
        )
        for level in levels
    )


def _remarks_on_odd(odd: Counter[str]) -> list[str]:
    if not odd:
        return []
    shown = ", ".join(repr(text) for text, _ in odd.most_common(3))
    return [f"{odd.total()} entries are no numbers and count as missing: {shown}"]


def _find_dates(make: _Maker, counts: Counter[str]) -> Column | None:
    among = [text for text in counts if not words.is_missing(text, True)]
    found = find_dates(among) if among else None
    if found is None:
        return None
    odd = Counter({text: counts[text] for text in found.unread})
    remarks = list(found.remarks)
    if odd:
        shown = ", ".join(repr(text) for text, _ in odd.most_common(3))
        remarks.append(f"{odd.total()} entries are no dates and count as missing: {shown}")
    parse = parse_clock if found.is_clock else parse_date
    values = {text: parse(text, found.format) for text in among if text not in odd}
    if found.is_clock:
        column = make("cyclic", "it holds times of day", period=(0.0, 24.0))
    else:
        days = [float(v) for t, v in values.items() if v is not None for _ in range(counts[t])]
        column = _judge_days(make, days, tuple(odd))
    return replace(column, dates=found.format, remarks=(*remarks, *column.remarks))


def _judge_categories(make: _Maker, counts: Counter[str]) -> Column:
    spelled: dict[str, Counter[str]] = {}
    for text, n in counts.items():
        spelled.setdefault(" ".join(text.split()).casefold(), Counter())[text] += n
    best = {key: ways.most_common(1)[0][0] for key, ways in spelled.items()}
    others = {
        text: best[key] for key, ways in spelled.items() for text in ways if text != best[key]
    }
    remarks = []
    if others:
        wrong, right = next(iter(others.items()))
        remarks.append(
            f"{len(others)} other spellings are read as one, such as {wrong!r} as {right!r}"
        )
    total, levels = counts.total(), sorted(best.values(), key=str.casefold)
    more = {"spellings": others, "remarks": tuple(remarks)}
    if len(levels) == 1:
        return make(
            "constant", f"it is {levels[0]!r} in all rows", used=False, levels=tuple(levels)
        )
    if len(levels) == 2:
        return _of_two(make, words.order_yes_no(levels), "it has two values", **more)
    cycle = words.find_cycle(levels)
    if cycle:
        names, size = cycle
        return make(
            "cyclic", f"its {len(names)} values are names of what comes again after {size}",
            levels=tuple(names), period=(0.0, float(size)), **more,
        )  # fmt: skip
    scale = words.find_scale(levels)
    if scale:
        return _of_levels(make, scale, "ordered", "its values are grades", **more)
    if "id" in make.words and len(levels) == total >= _FEWEST_ROWS_OF_IDS:
        return make(
            "identifier", "each row has a value of its own, and it is called so", used=False
        )
    if total < _ROWS_PER_LEVEL * len(levels) and len(levels) > 6:
        return _too_many(make, levels, total)
    return _of_levels(make, levels, "category", f"it has {len(levels)} different values", **more)


def _too_many(make: _Maker, levels: list[str], total: int) -> Column:
    """Names, texts, identifiers: hardly a value comes twice."""
    spaces = np.mean([text.count(" ") for text in levels])
    if len(levels) == total:
        if spaces < 0.5 and np.mean([any(c.isdigit() for c in text) for text in levels]) > 0.5:
            return make("identifier", "each row has a value of its own", used=False)
        return make("text", "each row has a value of its own", used=False)
    rows = total / len(levels)
    reason = f"it has {len(levels)} different values, {rows:.1f} rows each"
    remark = f"to model it anyway: schema.set({make.name!r}, kind='category')"
    return make("text", reason, used=False, remarks=(remark,))


def _judge_codes(make: _Maker, counts: Counter[str], why: str) -> Column:
    total, levels = counts.total(), sorted(counts)
    if len(levels) == total >= _FEWEST_ROWS_OF_IDS:
        return make("identifier", "each row has a value of its own", used=False)
    if total < _ROWS_PER_LEVEL * len(levels) and len(levels) > 6:
        return replace(_too_many(make, levels, total), kind="identifier")
    if len(levels) == 1:
        return make(
            "constant", f"it is {levels[0]!r} in all rows", used=False, levels=tuple(levels)
        )
    return _of_levels(make, levels, "category", why)


# ------------------------------------------------ levels


def _judge_levels(make: _Maker, levels: list[Any], ordered: bool) -> Column:
    """A column that the table itself holds as categories."""
    why = "it is categorical in the table"
    if ordered and len(levels) > 2:
        return _of_levels(make, levels, "ordered", "it is ordered in the table")
    if len(levels) <= 2:
        words_only = all(isinstance(level, str) for level in levels)
        two = words.order_yes_no(levels) if words_only and len(levels) == 2 else levels
        return _of_two(make, two, why)
    scale = words.find_scale(levels) if all(isinstance(one, str) for one in levels) else None
    if scale:
        return _of_levels(make, scale, "ordered", "its values are grades")
    return _of_levels(make, levels, "category", why)


def _of_levels(make: _Maker, levels: list[Any], kind: str, reason: str, **more: Any) -> Column:
    return make(kind, reason, levels=tuple(levels), **more)


def _of_two(make: _Maker, levels: Sequence[Any], reason: str, **more: Any) -> Column:
    if len(levels) == 1:
        return make(
            "constant", f"it is {levels[0]!r} in all rows", used=False, levels=tuple(levels)
        )
    return make("yes/no", reason, levels=tuple(levels), **more)


# ------------------------------------------------ dates


def _judge_days(make: _Maker, days: list[float], missing: tuple[str, ...]) -> Column:
    values = np.array(days)
    ends = {day: to_days(date.fromisoformat(day)) for day in SENTINELS}
    ends = {day: end for day, end in ends.items() if (np.abs(values - end) < 1).any()}
    # each against the others, but for what may stand for missing as well
    usual = values[[all(abs(v - end) >= 1 for end in ends.values()) for v in values]]
    stand_ins = tuple(day for day, end in ends.items() if _is_apart(np.append(usual, end), end))
    remarks = []
    for day in stand_ins:
        values = values[np.abs(values - ends[day]) >= 1]
        remarks.append(f"{day} lies far from all other dates and counts as missing")
    if len(set(values)) <= 1:
        return make("constant", "it is the same in all rows", used=False, missing=missing)
    whole = bool(np.all(values == np.floor(values)))
    return make(
        "date", "its entries are dates", step=1.0 if whole else None, low=float(values.min()),
        high=float(values.max()), missing=(*missing, *stand_ins), remarks=tuple(remarks),
    )  # fmt: skip


# ------------------------------------------------ numbers


def _judge_numbers(
    make: _Maker, values: Array, missing: tuple[str, ...], found: FoundFormat | None = None
) -> Column:
    values = values[np.isfinite(values)]
    values, stand_ins = _without_stand_ins(values)
    remarks = tuple(
        f"{value:g} lies apart from all other numbers and counts as missing" for value in stand_ins
    )
    column = _kind_of_numbers(make, values, found.format if found else None)
    as_text = tuple(f"{value:g}" for value in stand_ins)
    return replace(column, missing=(*missing, *as_text), remarks=(*remarks, *column.remarks))


def _without_stand_ins(values: Array) -> tuple[Array, tuple[float, ...]]:
    """The numbers but those that stand for missing ones, such as -999 among ages."""
    found: list[float] = []
    for stand_in in sorted(_STAND_INS, key=abs, reverse=True):
        if len(values) > 3 and np.sum(values == stand_in) >= 2 and _is_apart(values, stand_in):
            found.append(float(stand_in))
            values = values[values != stand_in]
    return values, tuple(found)


def _is_apart(values: Array, one: float) -> bool:
    """Whether a value lies beyond all others, by more than these are spread."""
    others = values[np.abs(values - one) >= min(1.0, 0.5 * abs(one))]
    if len(np.unique(others)) < 3:
        return False
    gap = max(others.min() - one, one - others.max())
    if one == -1:  # the usual number for none, where all others are not negative
        return bool(others.min() >= 0 and np.all(others == np.round(others)) and others.max() > 12)
    return bool(gap > np.ptp(others))


def _kind_of_numbers(make: _Maker, values: Array, written: NumberFormat | None) -> Column:
    different = np.unique(values)
    n, u = len(values), len(different)
    if u == 0:
        return make("empty", "it has no entries", used=False)
    if u == 1:
        return make("constant", f"it is {different[0]:g} in all rows", used=False)
    whole = bool(np.all(values == np.round(values)))
    limits = {"low": float(different[0]), "high": float(different[-1]), "step": _step(different)}
    names = make.words
    if whole:
        special = _whole_numbers(make, names, values, different, limits)
        if special is not None:
            return special
    if u == 2 and n > 4:
        return _of_two(make, _plain(different, whole), "it has two values")
    for word, (start, period) in words.PERIODS.items():
        inside = start <= different[0] and different[-1] <= start + period
        if word in names and inside and different[-1] - different[0] > 0.5 * period:
            reason = f"it is called {word!r} and lies between {start:g} and {start + period:g}"
            return make("cyclic", reason, period=(start, period), **limits)
    percent = written is not None and written.suffix.strip() == "%"
    if not whole and not percent and different[0] >= 0 and different[-1] <= 1:
        share = _judge_shares(make, values, limits)
        if share is not None:
            return share
    scale, gain = choose_scale(values)
    if scale != "plain":
        reason = f"its {NAMES[scale]} is far closer to a few normals (BIC {gain:.0f} lower)"
        return make("number", reason, scale=scale, **limits)
    return make("number", f"it has {u} different numbers", **limits)


def _judge_shares(make: _Maker, values: Array, limits: dict[str, Any]) -> Column | None:
    """Numbers between 0 and 1 that beta laws describe better than normals do.

    Zeros and ones are moved inwards as far as one of so many rows can tell (Smithson and Verkuilen
    2006): (x (n - 1) + 1 / 2) / n.
    """
    ends = values.min() == 0 or values.max() == 1
    margin = 0.5 / len(values) if ends else 0.0
    if not is_beta(margin + (1 - 2 * margin) * values):
        return None
    reason = "its numbers lie between 0 and 1, and beta laws suit them better than normals"
    return make("number", reason, scale="share", margin=margin, **limits)


def _whole_numbers(
    make: _Maker, names: set[str], values: Array, different: Array, limits: dict[str, Any]
) -> Column | None:
    n, u, low, high = len(values), len(different), different[0], different[-1]
    in_turn = u == n and np.mean(np.diff(different) == 1) > 0.95
    steps = np.diff(values)
    if n >= _FEWEST_ROWS_OF_IDS and u == n:
        if names & words.ID_NAMES:
            return make(
                "identifier", "each row has a number of its own, and it is called so", used=False
            )
        if in_turn and (np.all(steps == 1) or np.all(steps == -1)):
            return make("identifier", "it counts the rows", used=False)
        if high >= 1e9:
            return make("identifier", "each row has a long number of its own", used=False)
    if names & words.CODE_NAMES and u > 2:
        levels = _plain(different, True)
        counts = Counter({str(level): int(np.sum(values == level)) for level in levels})
        column = _judge_codes(make, counts, "it is called as codes are")
        return replace(column, levels=tuple(levels) if column.levels else ())
    for word, (start, period) in words.PERIODS.items():
        inside = start <= low and high <= start + period and u <= period + 1
        if word in names and inside and high - low > 0.5 * period:
            reason = f"it is called {word!r} and lies between {low:g} and {high:g}"
            return make("cyclic", reason, period=(start, period), **limits)
    if names & words.YEAR_NAMES and low > 1000 and high < 3000:
        if u <= 6:
            return _of_levels(
                make, _plain(different, True), "ordered", f"it has {u} different years"
            )
        return make("number", "it holds years", **limits)
    if 3 <= u <= 11 and low == 1 and high == u and n >= 3 * u and not names & words.COUNT_NAMES:
        remark = f"if the numbers are names of kinds: schema.set({make.name!r}, kind='category')"
        return _of_levels(
            make, _plain(different, True), "ordered", f"its numbers are 1 to {u}",
            remarks=(remark,),
        )  # fmt: skip
    called_so = bool(names & words.COUNT_NAMES)
    small = low >= 0 and u > 2 and (low <= 1 or called_so) and values.mean() < 100
    if small and (called_so or _looks_counted(values)):
        return make("count", "its numbers are whole, small and not negative", **limits)
    return None


def _looks_counted(values: Array) -> bool:
    """Whether whole numbers from 0 on are spread as counts are: at least as much as a Poisson law
    has it, and not evenly between two ends."""
    mean = values.mean()
    return bool(mean < 30 and values.var() > 0.4 * mean)


def _step(different: Array) -> float | None:
    """The distance of which all numbers are multiples, if it is a round one."""
    for step in (1000.0, 100.0, 10.0, 1.0, 0.5, 0.1, 0.05, 0.01, 0.001):
        scaled = different / step
        if np.all(np.abs(scaled - np.round(scaled)) < 1e-6 * np.maximum(1, np.abs(scaled))):
            return step if len(different) > 1 else None
    return None


def _plain(values: Array, whole: bool) -> list[Any]:
    return [int(v) if whole else float(v) for v in values]


# ------------------------------------------------ types of entries


def stored_type(values: Sequence[Any]) -> str:
    """The name of the type that all entries of a column have."""
    kinds = {_type_of(value) for value in values if value is not None}
    if kinds <= {"integer", "float"} and kinds:
        return "integer" if kinds == {"integer"} else "float"
    if kinds == {"date", "datetime"}:
        return "datetime"
    if len(kinds) == 1:
        return kinds.pop()
    return "text" if kinds <= {"text", "integer", "float", "boolean", "decimal"} else "other"


def _type_of(value: Any) -> str:
    for kind, name in (
        (bool, "boolean"), (np.bool_, "boolean"), (int, "integer"), (np.integer, "integer"),
        (float, "float"), (np.floating, "float"), (Decimal, "decimal"), (str, "text"),
        (datetime, "datetime"), (date, "date"), (time, "time"), (timedelta, "duration"),
    ):  # fmt: skip
        if isinstance(value, kind):
            return name
    return "other"
