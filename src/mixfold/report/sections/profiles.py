"""Section: the columns that distinguish each group."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import Groups
from mixfold.report.formatting import add_sign, number, share, short
from mixfold.report.markup import Html, details, escape, join, listed, tag
from mixfold.report.profiles import Profiles, profiles_of
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table

_COLUMNS, _GROUPS = 40, 14
# groups for which there is room for deviations as well
_SPELLED = 4
_FAR, _NAMED = 0.5, 4
# parts of the standard deviation of a column that are shown as zero: floors of rates
_NOTHING = 1e-4
NORMAL = ", numbers taken as normal within each group"


def profiles(subject: Subject) -> Section | None:
    """What the groups are like against all rows, the columns that tell most about them first."""
    groups, found = subject.groups, profiles_of(subject)
    if groups is None or found is None or len(found.means) < 2:
        return None
    order = np.array([j for j in found.order if j not in found.codes], dtype=int)
    which = _largest(groups)
    parts = [_words(subject, groups, found, which)]
    if len(order):
        parts.append(_heat(subject, groups, found, order[:_COLUMNS], which))
    body = join(parts)
    if subject.image is not None and not subject.image.guessed:
        body = details("By pixel, as a table", body)
    title = f"What sets the {groups.several} apart"
    return Section("profiles", title, _lead(groups, found), body)


def _lead(groups: Groups, found: Profiles) -> str:
    """How to read the lines and the table."""
    first = (
        f"Columns are sorted by how much they tell about the {groups.word} of a row (mutual "
        f"information{NORMAL * bool(found.numbers.any())})."
    )
    if not found.numbers.any():
        return (
            f"Codes that are more common in a {groups.word} than in all rows, with their share of "
            f"the rows in both. {first}"
        )
    whose = "by the parameters of the model" if found.fitted else "of its rows"
    lead = (
        f"Means in each {groups.word}, {whose}. Orange is above the mean of all rows, blue below; "
        f"the darker, the more standard deviations (sd) of all rows it is away. {first}"
    )
    more = " Columns of codes are described by the shares of their codes, here and below."
    return lead + more if found.codes else lead


def _largest(groups: Groups) -> Array:
    """Places of the groups that there is room for, in their order."""
    n = len(groups.shown)
    if n <= _GROUPS or groups.weights is None:
        return np.arange(min(n, _GROUPS))
    return np.sort(np.argsort(-groups.weights[groups.shown], kind="stable")[:_GROUPS])


def _words(subject: Subject, groups: Groups, found: Profiles, which: Array) -> Html:
    """A line for each group: its columns that are far from those of all rows."""
    lines = []
    for i in which:
        text = _describe_profile(subject, found, int(i))
        lines.append(tag("li", tag("strong", groups.label(groups.shown[i])), ": ", text))
    return tag("ul", *lines, class_="described")


def _describe_profile(subject: Subject, found: Profiles, i: int) -> Html | str:
    size = np.nan_to_num(np.abs(found.apart[i]))
    for j in found.codes:
        size[j] = found.code_apart(i, j)[1]
    best = [int(j) for j in np.argsort(-size, kind="stable")[:_NAMED] if size[j] >= _FAR]
    if not best:
        return "close to all rows in every column"
    return listed([_told(subject, found, i, j) for j in best], ", ")


def _told(subject: Subject, found: Profiles, i: int, j: int) -> str:
    """``high income (+1.2 sd)``, or ``colour 2 in 81.0% (all rows 33.0%)``."""
    name = short(subject.names[j])
    if j not in found.codes:
        apart = found.apart[i, j]
        return f"{'high' if apart > 0 else 'low'} {name} ({add_sign(apart)} sd)"
    code, _ = found.code_apart(i, j)
    shares = found.codes[j]
    together = found.parts @ shares[:, code] / found.parts.sum()
    level = subject.level(j, code)
    all_rows = share(float(together))
    return f"{name} = {level} in {share(float(shares[i, code]))} (all rows {all_rows})"


def _heat(subject: Subject, groups: Groups, found: Profiles, order: Array, which: Array) -> Html:
    spelled = found.deviations is not None and len(which) <= _SPELLED
    texts, titles = [], []
    for j in order:
        texts.append([_cell(subject, found, i, j, spelled) for i in which])
        titles.append([_title(found, i, j) for i in which])
    heads = groups.heads(groups.shown[which])
    hidden = int(found.numbers.sum()) - len(order)
    more = f"; {hidden} columns that tell less are left out" if hidden > 0 else ""
    more += f"; the largest {_GROUPS} {groups.several}" if len(groups.shown) > _GROUPS else ""
    whose = "the model" if found.spread_by_model else "its rows"
    spread = "" if found.deviations is None else " (hover for the standard deviation)"
    spread = f" \u00b1 the standard deviation of {whose}" if spelled else spread
    caption = f"Mean of each column in each {groups.word}{spread}{more}"
    rows, shades = [subject.names[j] for j in order], found.apart[np.ix_(which, order)].T
    return heat_table("column", rows, heads, shades, texts, caption, most=2.0, titles=titles)


def _cell(subject: Subject, found: Profiles, i: int, j: int, spelled: bool) -> Html:
    mean = _rate(found, j, found.means[i, j])
    deviation = None if found.deviations is None else found.deviations[i, j]
    spread = "" if deviation is None else f" \u00b1 {_rate(found, j, deviation, 2)}"
    kind = None if subject.schema is None else subject.schema.used[j]
    if kind is not None and (kind.kind == "date" or kind.scale not in ("plain", "share")):
        mean = subject.entry(j, found.means[i, j])
        if deviation is not None:
            between = " \u00b1 " if kind.kind == "date" else " "
            words = subject.spread(j, deviation, 2)
            spread = between + words if words else ""
    return join([mean, tag("small", spread)]) if spelled and spread else escape(mean)


def _rate(found: Profiles, j: int, value: float, digits: int = 3) -> str:
    """A number of a column; zero where it is nothing beside how much the column varies."""
    return "0" if abs(value) < _NOTHING * found.deviation[j] else number(value, digits)


def _title(found: Profiles, i: int, j: int) -> str:
    spread = "" if found.deviations is None else f" ± {number(found.deviations[i, j])} sd"
    return f"{number(found.means[i, j], 4)}{spread}; {add_sign(found.apart[i, j])} sd from all rows"
