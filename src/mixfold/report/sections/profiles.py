"""Which columns set each group apart."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import Groups
from mixfold.report.markup import Html, escape, folded, join, tag
from mixfold.report.profiles import Profiles, profiles_of
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table
from mixfold.report.words import number, short, signed

_COLUMNS, _GROUPS = 40, 14
# groups for which there is room for deviations as well
_SPELLED = 4
_FAR, _NAMED = 0.5, 4


def profiles(subject: Subject) -> Section | None:
    """Means of the groups against those of all rows, the columns that differ most first."""
    groups, found = subject.groups, profiles_of(subject)
    if groups is None or found is None or len(found.means) < 2:
        return None
    order = np.argsort(-np.nan_to_num(np.abs(found.apart)).max(axis=0), kind="stable")[:_COLUMNS]
    whose = "" if found.fitted else " of the rows"
    lead = (
        f"Means{whose} in each {groups.word}. Orange is above the mean of all rows, blue below; "
        "the shade tells by how many standard deviations (sd). Columns that differ most stand "
        "first."
    )
    which = _largest(groups)
    parts = (
        _words(groups, found, subject.names, which),
        _heat(groups, found, subject.names, order, which),
    )
    body = join(parts)
    if subject.image is not None and not subject.image.guessed:
        body = folded("By pixel, as a table", body)
    title = f"What sets the {groups.several} apart"
    return Section("profiles", title, lead, body)


def _largest(groups: Groups) -> Array:
    """Places of the groups that there is room for, in their order."""
    n = len(groups.shown)
    if n <= _GROUPS or groups.weights is None:
        return np.arange(min(n, _GROUPS))
    return np.sort(np.argsort(-groups.weights[groups.shown], kind="stable")[:_GROUPS])


def _words(groups: Groups, found: Profiles, names: list[str], which: Array) -> Html:
    """A line for each group: its columns that are far from the mean of all."""
    lines = []
    for i in which:
        text = _described(found.apart[i], names)
        lines.append(tag("li", tag("strong", groups.label(groups.shown[i])), f": {text}"))
    return tag("ul", *lines, class_="described")


def _described(apart: Array, names: list[str]) -> str:
    size = np.nan_to_num(np.abs(apart))
    best = [j for j in np.argsort(-size, kind="stable")[:_NAMED] if size[j] >= _FAR]
    if not best:
        return "close to the mean of all rows in every column"
    return ", ".join(
        f"{'high' if apart[j] > 0 else 'low'} {short(names[j])} ({signed(apart[j])} sd)"
        for j in best
    )


def _heat(groups: Groups, found: Profiles, names: list[str], order: Array, which: Array) -> Html:
    spelled = found.deviations is not None and len(which) <= _SPELLED
    texts, titles = [], []
    for j in order:
        texts.append([_cell(found, i, j, spelled) for i in which])
        titles.append([_title(found, i, j) for i in which])
    heads = groups.heads(groups.shown[which])
    hidden = len(names) - len(order)
    more = f"; {hidden} columns that differ less are left out" if hidden > 0 else ""
    more += f"; the largest {_GROUPS} {groups.several}" if len(groups.shown) > _GROUPS else ""
    spread = "" if found.deviations is None else " (hover for its standard deviation)"
    spread = " \u00b1 its standard deviation" if spelled else spread
    caption = f"Mean of each column in each {groups.word}{spread}{more}"
    rows, shades = [names[j] for j in order], found.apart[np.ix_(which, order)].T
    return heat_table("column", rows, heads, shades, texts, caption, most=2.0, titles=titles)


def _cell(found: Profiles, i: int, j: int, spelled: bool) -> Html:
    mean = number(found.means[i, j])
    if not spelled or found.deviations is None:
        return escape(mean)
    return join([mean, tag("small", f" \u00b1 {number(found.deviations[i, j], 2)}")])


def _title(found: Profiles, i: int, j: int) -> str:
    spread = "" if found.deviations is None else f" ± {number(found.deviations[i, j])} sd"
    return f"{number(found.means[i, j], 4)}{spread}; {signed(found.apart[i, j])} sd from all rows"
