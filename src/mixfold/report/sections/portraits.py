"""Section: each group of a table in a sentence, in the words of the table."""

from __future__ import annotations

import numpy as np

from mixfold.engine.sources import open_source
from mixfold.report.capabilities import Groups
from mixfold.report.formatting import share, short
from mixfold.report.markup import Html, tag
from mixfold.report.profiles import Profiles, profiles_of
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.schema import Column
from mixfold.schema.words import is_yes, name_parts

# deviations of all rows from which on a group is told apart by a column; columns, groups, names
_FAR, _COLUMNS, _GROUPS, _EXAMPLES = 0.35, 7, 14, 4
# a circle of which the rows of a group are about one side
_TOGETHER = 0.5
# a row that is an example of its group belongs to it with this probability at least
_SURE = 0.5
_PLACES = frozenset({"city", "town", "country", "region", "state", "stadt", "land", "place", "ort"})
# words for more and less of what a column is called
_COMPARATIVES = {
    "age": ("older", "younger"), "alter": ("older", "younger"), "height": ("taller", "shorter"),
    "weight": ("heavier", "lighter"), "price": ("dearer", "cheaper"),
    "temperature": ("warmer", "colder"), "distance": ("farther", "nearer"),
    "duration": ("longer", "shorter"), "length": ("longer", "shorter"),
}  # fmt: skip


def portraits(subject: Subject) -> Section | None:
    """Who is in each group, against all rows."""
    groups, found = subject.groups, profiles_of(subject)
    if subject.schema is None or groups is None or found is None or len(found.means) < 2:
        return None
    parts = found.parts / found.parts.sum()
    order = np.argsort(-parts, kind="stable")[:_GROUPS]
    items = [
        tag(
            "li",
            tag("strong", groups.label(groups.shown[i])),
            f" ({share(float(parts[i]))} of the {subject.unit}s): ",
            describe_group(subject, found, int(i)),
            _examples(subject, groups, int(groups.shown[i])),
        )
        for i in order
    ]
    more = f" Of {len(parts)} groups the largest {_GROUPS}." if len(parts) > _GROUPS else ""
    lead = (
        f"Each against all {subject.unit}s, what sets it apart most first. Numbers are what is "
        f"usual in the group, and in all {subject.unit}s.{more}"
    )
    return Section("portraits", "The groups in words", lead, tag("ul", *items, class_="described"))


def describe_group(subject: Subject, found: Profiles, i: int) -> str:
    """``more often from Rome (80% against 37%), older (52 against 41), fewer visits (2 against 5)``

    Of columns that tell the group apart, the first ones.
    """
    told: list[tuple[float, str]] = []
    for j, column in enumerate(subject.schema.used if subject.schema is not None else ()):
        if j in found.codes:
            size, words = _of_codes(subject, found, i, j, column)
        elif column.kind == "cyclic":
            size, words = _of_circle(subject, found, i, j, column)
        else:
            size = float(np.nan_to_num(abs(found.apart[i, j])))
            words = _of_numbers(subject, found, i, j, column)
        told.append((size, words))
    told = [one for one in sorted(told, key=lambda one: -one[0]) if one[0] >= _FAR and one[1]]
    if not told:
        return "much like all others."
    return ", ".join(words for _, words in told[:_COLUMNS]) + "."


def _of_codes(
    subject: Subject, found: Profiles, i: int, j: int, column: Column
) -> tuple[float, str]:
    shares = found.codes[j]
    together = found.parts @ shares / found.parts.sum()
    code, size = found.code_apart(i, j)
    more = "more often"
    if shares.shape[1] == 2 and len(column.levels) == 2 and is_yes(column.levels[1]):
        code, more = 1, "more often" if shares[i, 1] > together[1] else "less often"
    level, name = subject.level(j, code), short(subject.names[j], 40)
    numbers = f"({share(float(shares[i, code]))} against {share(float(together[code]))})"
    if column.levels and is_yes(column.levels[code]):
        return size, f"{more} {name}: {level} {numbers}"
    if name_parts(column.name) & _PLACES:
        return size, f"{more} from {level} {numbers}"
    return size, f"{more} {name} {level} {numbers}"


def _of_circle(
    subject: Subject, found: Profiles, i: int, j: int, column: Column
) -> tuple[float, str]:
    """Of hours and angles, where those of a group are about one place."""
    if column.period is None:
        return 0.0, ""
    mean, turn = found.means[i, j], 2 * np.pi / column.period[1]
    spread = found.deviations[i, j] if found.deviations is not None else np.inf
    others = np.angle(found.parts @ np.exp(1j * turn * found.means[:, j])) / turn
    apart = np.abs(np.angle(np.exp(1j * turn * (mean - others)))) / turn
    if not np.isfinite(spread) or turn * spread > _TOGETHER * np.pi:
        return 0.0, ""
    return float(apart / max(spread, 1e-9)), (
        f"{short(subject.names[j], 40)} about {subject.entry(j, mean)}"
    )


def _of_numbers(subject: Subject, found: Profiles, i: int, j: int, column: Column) -> str:
    more = found.apart[i, j] > 0
    name = short(subject.names[j], 40)
    if column.kind == "date":
        word = f"{name} {'later' if more else 'earlier'}"
    elif column.kind == "count":
        word = f"{'more' if more else 'fewer'} {name}"
    else:
        word = next(
            (pair[not more] for part, pair in _COMPARATIVES.items() if name.lower() == part),
            f"{'higher' if more else 'lower'} {name}",
        )
    own, usual = subject.entry(j, found.means[i, j]), subject.entry(j, found.mean[j])
    return f"{word} ({_with_unit(column, own)} against {_with_unit(column, usual)})"


def _with_unit(column: Column, text: str) -> str:
    style = column.numbers
    return text if style is None else f"{style.prefix}{text}{style.suffix}"


def _examples(subject: Subject, groups: Groups, k: int) -> Html | None:
    """Rows that are surely of the group, by the names that the table gives them."""
    look = subject.look
    if look is None or look.names is None:
        return None
    chances = np.asarray(groups.shares(open_source(look.sampled.X)))[:, k]
    best = np.argsort(-chances, kind="stable")[:_EXAMPLES]
    names = [subject.row_name(int(look.sampled.rows[n])) for n in best if chances[n] > _SURE]
    return tag("small", f" For example {', '.join(names)}.") if names else None
