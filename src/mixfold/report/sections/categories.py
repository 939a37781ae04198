"""Probabilities of categories, by column and group."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import Groups
from mixfold.report.formatting import number, plural, share, short
from mixfold.report.markup import Html, join
from mixfold.report.profiles import Profiles, profiles_of
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table

_COLUMNS, _GROUPS, _CODES, _BINARY = 12, 14, 12, 40
# a code that is rarer in all rows does not occur
_NEVER = 1e-9


def categories(subject: Subject) -> Section | None:
    """Columns that hold codes, those that tell most about the groups first."""
    groups, found = subject.groups, profiles_of(subject)
    if groups is None or found is None or len(found.means) < 2 or not found.codes:
        return None
    order = [int(j) for j in found.order if int(j) in found.codes]
    binary = [j for j in order if found.codes[j].shape[1] == 2]
    several = [j for j in order if found.codes[j].shape[1] != 2]
    parts = [_picture(subject, groups, found, j) for j in several[:_COLUMNS]]
    if binary:
        ones = _ones(subject, groups, found, binary)
        first = order[0] in binary
        parts = [ones, *parts] if first else [*parts, ones]
    hidden = max(0, len(several) - _COLUMNS) + max(0, len(binary) - _BINARY)
    lead = (
        f"The share of each {_word(subject)} in each {groups.word} and in all rows, by the "
        f"parameters of the model. Columns that tell most about the {groups.word} of a row come "
        f"first; bits: mutual information of the column and the {groups.word}."
    )
    more = f" Left out: {plural(hidden, 'column')} that tell less." if hidden else ""
    return Section("categories", f"{_title(subject)} by {groups.word}", lead + more, join(parts))


def _word(subject: Subject) -> str:
    """What an entry is called: the columns hold codes, or words that a schema has coded."""
    return "code" if subject.schema is None else "category"


def _title(subject: Subject) -> str:
    return "Codes" if subject.schema is None else "Categories"


def _shown(groups: Groups) -> Array:
    return np.arange(min(len(groups.shown), _GROUPS))


def _picture(subject: Subject, groups: Groups, found: Profiles, column: int) -> Html:
    """A line for each code that occurs."""
    shares = found.codes[column]
    together = found.parts @ shares / found.parts.sum()
    codes = np.flatnonzero(together > _NEVER)
    if len(codes) > _CODES:
        codes = np.sort(codes[np.argsort(-together[codes], kind="stable")[:_CODES]])
        more = f"; the {_CODES} most common codes"
    else:
        more = ""
    which = _shown(groups)
    values = np.column_stack([shares[which][:, codes].T, together[codes]])
    heads = [*groups.heads(groups.shown[which]), "all rows"]
    texts = [[share(float(v)) for v in row] for row in values]
    caption = f"{short(subject.names[column])}: {_bits(found, column)}{more}"
    names = [subject.level(column, float(c)) for c in codes]
    return heat_table(
        "code" if subject.schema is None else "value",
        names,
        heads,
        values,
        texts,
        caption,
        most=1.0,
    )


def _ones(subject: Subject, groups: Groups, found: Profiles, columns: list[int]) -> Html:
    """Columns of zeros and ones together: a line for each, the share of ones."""
    shown, which = columns[:_BINARY], _shown(groups)
    ones = np.stack([found.codes[j][:, 1] for j in shown])
    together = ones @ found.parts / found.parts.sum()
    values = np.column_stack([ones[:, which], together])
    heads = [*groups.heads(groups.shown[which]), "all rows", "bits"]
    texts = [
        [*(share(float(v)) for v in row), number(found.information[j], 2)]
        for j, row in zip(shown, values, strict=True)
    ]
    shades = np.column_stack([values, np.zeros(len(values))])
    names, caption = [subject.names[j] for j in shown], "Columns of zeros and ones: share of ones"
    if subject.schema is not None:
        names = [f"{name}: {subject.level(j, 1)}" for j, name in zip(shown, names, strict=True)]
        caption = "Columns of two values: share of one of them"
    return heat_table("column", names, heads, shades, texts, caption, most=1.0)


def _bits(found: Profiles, column: int) -> str:
    return f"{number(found.information[column], 2)} bits"
