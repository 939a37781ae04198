"""Probabilities of categories, by column and group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import Groups
from mixfold.report.markup import join
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table
from mixfold.report.words import share, short

_COLUMNS, _GROUPS, _CODES = 12, 14, 12


def categories(subject: Subject) -> Section | None:
    """Columns that hold codes, those that differ most between groups first."""
    groups = subject.groups
    if groups is None or len(groups.names) < 2:
        return None
    found = sorted(_columns(subject.model, subject.names), key=lambda c: -_spread(c[1], groups))
    if not found:
        return None
    pictures = [_picture(name, chances, groups) for name, chances in found[:_COLUMNS]]
    hidden = len(found) - len(pictures)
    lead = f"How probable each code is in each {groups.word}; the darker, the more probable."
    more = f" {hidden} columns that differ less are left out." if hidden > 0 else ""
    return Section("categories", "Codes by component", lead + more, join(pictures))


def _columns(model: Any, names: list[str]) -> Iterator[tuple[str, Array]]:
    """Names of columns of codes, and the probability of each code (K, C)."""
    for columns, parameters in _parts(model):
        chances = parameters.get("probabilities")
        if not isinstance(chances, list | tuple):
            continue
        for j, one in enumerate(chances):
            if np.ndim(one) == 2:
                place = columns[j] if columns is not None else j
                yield names[place] if isinstance(place, int | np.integer) else str(place), one


def _parts(model: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Columns of each family of a model (None: all) and its parameters."""
    parts = getattr(model, "parameters_", None)
    if parts is None:
        yield None, {"probabilities": getattr(model, "probabilities_", None)}
        return
    for name, parameters in parts.items():
        given = model.family[name] if isinstance(model.family, Mapping) else None
        yield given, parameters


def _spread(chances: Array, groups: Groups) -> float:
    return float(np.ptp(np.asarray(chances)[groups.shown], axis=0).max())


def _picture(name: str, chances: Array, groups: Groups) -> Any:
    shown = groups.shown[:_GROUPS]
    values = np.asarray(chances, float)[shown].T[:_CODES]
    heads = groups.heads(shown)
    texts = [[share(v) for v in row] for row in values]
    hidden = np.shape(chances)[1] - len(values)
    more = f" (the first {_CODES} codes)" if hidden > 0 else ""
    rows = [str(code) for code in range(len(values))]
    return heat_table("code", rows, heads, values, texts, f"{short(name)}{more}", most=1.0)
