"""The oddest rows, and the columns that make them odd."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.charts.bars import histogram
from mixfold.report.images import affordable, grey, tile
from mixfold.report.markup import Html, folded, join, tag
from mixfold.report.rows.odd import OddRows
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.surprise import Reason, reasons_of
from mixfold.report.tables import table
from mixfold.report.words import count, number, short

_NAMED = 3


def novelty(subject: Subject) -> Section | None:
    """Rows by how unlikely the model finds them."""
    look = subject.look
    if look is None or look.odd is None or not len(look.odd.rows):
        return None
    odd, name = look.odd, look.usualness_name
    picture = _histogram(subject, odd, name)
    reasons = reasons_of(subject)
    lead = (
        f"Rows with the lowest {name}, of all {count(look.n_rows)}: mistakes of measurement, rare "
        "kinds, or rows that belong elsewhere. Look at them before trusting anything else."
    )
    listing = _table(subject, odd, name, reasons)
    if subject.image is not None and not subject.image.guessed:
        listing = folded("Which pixels make them odd", listing)
    body = join([_pictures(subject, odd), picture, listing])
    return Section("novelty", "The oddest rows", lead, body)


def _table(subject: Subject, odd: OddRows, name: str, reasons: list[list[Reason]]) -> Html:
    assert subject.look is not None
    groups, name_of = subject.groups, subject.look.row_name
    head = ["", "because of", name]
    if groups is not None and len(groups.names) > 1:
        head.append(groups.word)
    rows = []
    for i, row in enumerate(odd.rows):
        cells = [name_of(int(row)), _words(subject, reasons[i]), number(odd.values[i], 4)]
        if groups is not None and len(groups.names) > 1:
            cells.append(groups.names[odd.group[i]])
        rows.append(cells)
    return table(head, rows, "The oddest rows, oddest first", text=(0, 1))


def _words(subject: Subject, reasons: list[Reason]) -> str:
    told = [
        f"{short(subject.names[r.column], 30)} {number(r.value)}"
        + (f" (expected {number(r.expected)})" if np.isfinite(r.expected) else "")
        for r in reasons[:_NAMED]
    ]
    return "; ".join(told) or "no single column: the combination"


def _histogram(subject: Subject, odd: OddRows, name: str) -> Html | None:
    """How usual the rows of the sample are, with the oddest rows of all marked below."""
    values = sampled_usualness(subject)
    if values is None:
        return None
    values = values[np.isfinite(values)]
    if len(values) < 20 or np.ptp(values) == 0:
        return None
    low = float(np.quantile(values, 0.005))
    low -= 0.1 * (float(values.max()) - low)
    counts, edges = np.histogram(np.clip(values, low, None), bins=40)
    label = f"How many rows have which {name}"
    picture = histogram(counts, edges, label, name, list(odd.values))
    hint = "Marks below the axis: the oddest rows; those beyond the left end stand at it."
    return join([picture, tag("p", hint, class_="hint")])


def sampled_usualness(subject: Subject) -> Array | None:
    """The number by which rows are ranked, of the rows of the sample."""
    from mixfold.engine.sources import open_source

    look = subject.look
    if look is None or look.questions.usualness is None:
        return None
    return look.questions.usualness(open_source(look.sampled.X))


def _pictures(subject: Subject, odd: OddRows) -> Html | None:
    shape = subject.image
    if shape is None:
        return None
    X = odd.X
    low, high = float(np.nanmin(X)), float(np.nanmax(X))
    shown = affordable(shape, len(X))
    assert subject.look is not None
    names = [subject.look.row_name(row) for row in odd.rows[:shown]]
    tiles = [tile(grey(x, shape, low, high, n), n) for x, n in zip(X, names, strict=False)]
    return tag("div", *tiles, class_="sheet")
