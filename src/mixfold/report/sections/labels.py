"""Section: labels that the fit did not use, against the groups it found."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.formatting import class_names, count, number, plural
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table

_LABELS, _GROUPS = 40, 20


def labels(subject: Subject) -> Section | None:
    """How often each label occurs in each group."""
    look, groups = subject.look, subject.groups
    if look is None or look.labels is None or look.targets is None or groups is None:
        return None
    counts = look.labels.counts[:, groups.shown]
    names = class_names(look.targets.classes)
    shown = groups.shown[:_GROUPS]
    part = counts / np.maximum(counts.sum(axis=0, keepdims=True), 1e-300)
    heads = groups.heads(shown)
    texts = [[count(v) for v in row[: len(shown)]] for row in counts[:_LABELS]]
    more = f", the first {_LABELS} of {count(len(names))} labels" if len(names) > _LABELS else ""
    units = f"{subject.unit}s"
    rows = f"Weight of the {units}" if look.is_weighted else units.capitalize()
    caption = (
        f"{rows} with each label (line) in each {groups.word} (column), "
        f"shaded by the share of the {groups.word}{more}"
    )
    shades = part[:_LABELS, : len(shown)]
    picture = heat_table("label", names[:_LABELS], heads, shades, texts, caption, most=1.0)
    lead = (
        f"The given labels, which were not used in the fit, against the {groups.several}. "
        f"Adjusted Rand index {number(adjusted_rand(counts))}: 1 is perfect agreement, 0 is what "
        "chance gives."
    )
    notes = tuple(_notes(counts))
    return Section("labels", "Labels and groups", lead, picture, notes)


def _notes(counts: Array) -> list[Note]:
    """A column that names rows rather than kinds of rows."""
    kinds, rows = len(counts), float(counts.sum())
    if kinds <= _LABELS or kinds < rows / 2:
        return []
    text = f"{count(kinds)} different labels were given for {plural(rows, 'row')}."
    return [Note(text, "If they name single rows, leave them out: they cannot match groups")]


def adjusted_rand(counts: Array) -> float:
    """Agreement of two divisions beyond chance, from their table (weights count as rows)."""

    def pairs(n: Array) -> float:
        return float((n * (n - 1) / 2).sum())

    both, rows, columns = pairs(counts), pairs(counts.sum(axis=1)), pairs(counts.sum(axis=0))
    total = pairs(np.array([counts.sum()]))
    expected = rows * columns / total if total > 0 else 0.0
    most = (rows + columns) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)
