"""Words that stand for something: missing, yes and no, grades, days, kinds of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# these stand for a missing entry anywhere
MISSING = frozenset(
    {
        "",
        "na",
        "n/a",
        "n.a.",
        "nan",
        "null",
        "?",
        "#n/a",
        "#n/a!",
        "#value!",
        "#div/0!",
        "#ref!",
        "<na>",
        "(null)",
        "nat",
        "…",
    }
)
# these do among numbers and dates; of categories they may be one
MISSING_AMONG_NUMBERS = frozenset(
    {
        "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "none", "nil", "missing",
        "unknown", "n.d.",
        "nd", "not available", "not applicable", "no data", "k.a.", "tbd", "refused", "inf",
    }
)  # fmt: skip
# among categories these are missing, too
_DASHES = frozenset({"-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "…"})

_FALSE = (
    "no",
    "n",
    "false",
    "f",
    "off",
    "non",
    "nein",
    "absent",
    "negative",
    "neg",
    "never",
    "nee",
    "não",
    "нет",
)
_TRUE = (
    "yes",
    "y",
    "true",
    "t",
    "on",
    "oui",
    "ja",
    "si",
    "sí",
    "present",
    "positive",
    "pos",
    "sim",
    "да",
    "x",
)

SCALES: tuple[tuple[str, ...], ...] = (
    ("very low", "low", "medium", "high", "very high"),
    ("low", "moderate", "high"),
    ("low", "middle", "high"),
    ("none", "mild", "moderate", "severe", "very severe"),
    ("never", "rarely", "seldom", "sometimes", "often", "usually", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("strongly disagree", "disagree", "slightly disagree", "neither agree nor disagree",
     "slightly agree", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("bad", "average", "good"),
    ("not at all", "a little", "somewhat", "quite", "very"),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl", "xxxl"),
    ("small", "medium", "large"),
    ("young", "middle", "old"),
    ("first", "second", "third", "fourth", "fifth"),
    ("i", "ii", "iii", "iv", "v"),
    ("none", "bronze", "silver", "gold", "platinum"),
    ("niedrig", "mittel", "hoch"), ("klein", "mittel", "groß"), ("nie", "selten", "manchmal",
     "oft", "immer"), ("jamais", "rarement", "parfois", "souvent", "toujours"),
)  # fmt: skip
# how much an adverb adds to an adjective: "slightly", the adjective alone, "very"
_DEGREES = {
    "slightly": 1, "somewhat": 1, "rather": 1, "mildly": 1, "weakly": 1, "moderately": 2,
    "fairly": 2, "quite": 2, "mostly": 2, "": 3, "very": 4, "strongly": 4, "highly": 4,
    "completely": 5, "totally": 5, "extremely": 5,
}  # fmt: skip
_NEITHER = frozenset({"neutral", "neither", "undecided", "average", "mixed", "unsure", "same"})
_NEGATIVE = ("dis", "un", "in", "im", "not ", "less ", "bad", "poor", "worse", "sad", "weak",
             "low", "negative", "against", "cold")  # fmt: skip
CYCLES: tuple[tuple[str, ...], ...] = (
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december"),
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ("spring", "summer", "autumn", "winter"),
    ("spring", "summer", "fall", "winter"),
    ("n", "ne", "e", "se", "s", "sw", "w", "nw"),
)  # fmt: skip
_NUMBER = r"\d+(?:[.,]\d+)?"
_RANGE = re.compile(
    rf"""^(?P<below><=?|\u2264|under\s|below\s|less\sthan\s|up\sto\s|unter\s|bis\s|moins\sde\s)?
    (?P<above>>=?|\u2265|over\s|above\s|more\sthan\s|über\s|ab\s|plus\sde\s)?\s*(?P<low>{_NUMBER})\s*
    (?:(?:-|\u2013|to\s|bis\s)\s*{_NUMBER}|(?P<open>\+|and\s\w+|or\s\w+|und\s\w+|oder\s\w+))?\s*
    (?:years|yrs|y|k|%|jahre)?$""",
    re.VERBOSE | re.IGNORECASE,
)

_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
ID_NAMES = frozenset(
    {
        "id",
        "ids",
        "uuid",
        "guid",
        "key",
        "index",
        "idx",
        "no",
        "nr",
        "seqn",
        "caseid",
        "rowid",
        "identifier",
    }
)
CODE_NAMES = frozenset(
    {"zip", "zipcode", "plz", "postal", "postcode", "code", "phone", "tel", "telephone",
     "mobile", "fax", "iban", "isbn",
     "ssn", "barcode", "ean", "sku"}
)  # fmt: skip
COUNT_NAMES = frozenset(
    {"n", "num", "number", "count", "counts", "visits", "children", "times", "freq", "frequency"}
)
YEAR_NAMES = frozenset({"year", "yr", "jahr", "annee", "anno"})
# names of columns of numbers that go round, and where they begin again
PERIODS: dict[str, tuple[float, float]] = {
    "hour": (0, 24), "hours": (0, 24), "hr": (0, 24), "weekday": (0, 7), "dow": (0, 7),
    "month": (1, 12),
    "angle": (0, 360), "direction": (0, 360), "heading": (0, 360), "bearing": (0, 360),
    "azimuth": (0, 360), "wind": (0, 360), "minute": (0, 60), "longitude": (-180, 360),
}  # fmt: skip


def name_parts(name: str) -> set[str]:
    """Words in the name of a column: ``customerID`` has ``customer`` and ``id``."""
    return {part.lower() for part in _PARTS.findall(name)} | {name.lower()}


def is_missing(text: str, among_numbers: bool) -> bool:
    """Whether an entry says that nothing is known."""
    folded = text.strip().casefold()
    return folded in MISSING or folded in (MISSING_AMONG_NUMBERS if among_numbers else _DASHES)


def is_yes(level: Any) -> bool:
    """Whether a level says that something is so."""
    return level is True or (isinstance(level, str) and level.casefold() in _TRUE)


def order_yes_no(levels: Sequence[str]) -> list[str]:
    """Two words, that for no first if one of them says so."""
    folded = [level.casefold() for level in levels]
    turned = folded[0] in _TRUE or folded[1] in _FALSE
    as_it_is = folded[1] in _TRUE or folded[0] in _FALSE
    return [levels[1], levels[0]] if turned and not as_it_is else list(levels)


def find_scale(levels: Sequence[str]) -> list[str] | None:
    """Grades in their order, if the words are grades that are known, or ranges of numbers."""
    folded = {level.casefold().strip(): level for level in levels}
    for scale in SCALES:
        if set(folded) <= set(scale):
            return [folded[word] for word in scale if word in folded]
    graded = _order_by_degree(folded)
    if graded:
        return graded
    ranges = {level: _RANGE.match(level.strip()) for level in levels}
    found = {level: match for level, match in ranges.items() if match is not None}
    if len(found) < max(3, len(levels)) or all(m[0] == m["low"] for m in found.values()):
        return None

    def place(level: str) -> tuple[float, int]:
        match = found[level]
        return float(match["low"].replace(",", ".")), bool(match["above"]) - bool(match["below"])

    return sorted(levels, key=place)


def _order_by_degree(folded: dict[str, str]) -> list[str] | None:
    """From "very inaccurate" to "very accurate": two opposite words, each with its adverbs."""
    found: dict[str, tuple[str, int]] = {}
    for text in folded:
        adverb, _, rest = text.partition(" ")
        degree = _DEGREES.get(adverb)
        found[text] = (rest, degree) if rest and degree else (text, _DEGREES[""])
    neither = {text for text in folded if text.split()[0] in _NEITHER}
    poles = {word for text, (word, _) in found.items() if text not in neither}
    graded = sum(found[text][0] != text for text in found)
    if len(folded) < 3 or graded < 2 or len(neither) > 1 or len(poles) not in (1, 2):
        return None
    below = [word for word in poles if word.startswith(_NEGATIVE)] if len(poles) == 2 else []
    if len(poles) == 2 and len(below) != 1:
        longer = max(poles, key=len)  # "disagree" has "agree" in it
        shorter = min(poles, key=len)
        if not longer.endswith(shorter):
            return None
        below = [longer]

    def place(text: str) -> int:
        if text in neither:
            return 0
        word, degree = found[text]
        return -degree if word in below else degree

    places = [place(text) for text in folded]
    return (
        [folded[text] for text in sorted(folded, key=place)]
        if len(set(places)) == len(places)
        else None
    )


def find_cycle(levels: Sequence[str]) -> tuple[list[str], int] | None:
    """Days, months, seasons in their order, and how many there are of them."""
    folded = {level.casefold().strip().rstrip("."): level for level in levels}
    for cycle in CYCLES:
        if set(folded) <= set(cycle) and len(folded) >= 3:
            return [folded[word] for word in cycle if word in folded], len(cycle)
    return None
