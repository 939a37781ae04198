"""Section: the least usual rows, and the columns responsible."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.shell.oddness import oddness_of
from mixfold.report.capabilities import ODDNESS
from mixfold.report.charts.bars import histogram
from mixfold.report.formatting import count, number, odder, oddness_share, percent, share, short
from mixfold.report.images import affordable, grey, tile
from mixfold.report.markup import Html, details, join, listed, tag
from mixfold.report.rows.odd import RARE, OddRows
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.surprise import Reason, expected_as, reasons_of
from mixfold.report.tables import table

_NAMED = 3
# part of the rows beyond the rarest hundredth of the model, and rows, from which on it is told
_MANY, _ENOUGH = 0.05, 100


def novelty(subject: Subject) -> Section | None:
    """Rows by how unlikely the model finds them."""
    look = subject.look
    if look is None or look.odd is None or not len(look.odd.rows):
        return None
    odd, name = look.odd, look.usualness_name
    picture = _histogram(subject, odd, name)
    reasons = reasons_of(subject)
    lead = _lead(subject, name)
    if any(np.isfinite(reason.oddness) for row in reasons for reason in row):
        lead += (
            " In brackets after an entry: its value predicted from the other entries of the row, "
            "and how odd the entry is given these."
        )
    elif any(np.isfinite(reason.expected) for row in reasons for reason in row):
        lead += f" In brackets after an entry: {expected_as(subject)}."
    listing = _table(subject, odd, name, reasons)
    if subject.image is not None and not subject.image.guessed:
        listing = details("Which pixels make them odd", listing)
    body = join([_pictures(subject, odd), picture, listing])
    return Section("novelty", f"The oddest {subject.unit}s", lead, body, _notes(subject, odd, name))


def _notes(subject: Subject, odd: OddRows, name: str) -> tuple[Note, ...]:
    """Far more odd rows than the model would draw: it does not describe them."""
    if name != ODDNESS or odd.weight < _ENOUGH or odd.beyond < _MANY * odd.weight:
        return ()
    text = (
        f"{share(odd.beyond / odd.weight)} of the rows are odder than {percent(1 - RARE)} of rows "
        f"drawn from the model, where {percent(RARE)} is expected. The model does not describe "
        "these rows: they may have heavier tails, more groups or other dependence than it assumes."
    )
    return (Note(text, f"Look at the oddest rows and at the map; {_other_model(subject)}"),)


def _other_model(subject: Subject) -> str:
    """What may describe the rows better."""
    groups = subject.groups
    mixed = groups is not None and groups.word != "class" and len(groups.names) > 1
    model = subject.model
    if hasattr(model, "latent_points_"):
        return "transform skewed columns, or let the surface bend more (n_basis)"
    if hasattr(model, "active_") and hasattr(model, "loadings_") and not mixed:
        return "transform skewed columns, or compare with a mixture by inference='em'"
    if hasattr(model, "loadings_") and not mixed:
        return "transform skewed columns, try more factors, or a mixture of such models"
    if groups is not None and groups.word == "class":
        return "try several components for each class, or another family"
    if hasattr(model, "loadings_"):
        return "transform skewed columns, or try more components"
    if not hasattr(model, "covariances_"):  # of counts and codes
        return "try more components, or another family"
    return "transform skewed columns, try more components, or another family"


def _lead(subject: Subject, name: str) -> str:
    assert subject.look is not None
    size = count(subject.look.n_rows)
    if subject.has_topics:
        return (
            f"The documents with the lowest {name}, of all {size}. They may be in another "
            "language, be tables or noise, or have a subject without a topic. The mean over few "
            "words varies more: short documents come first more often. After a word: how often it "
            "occurs, and in brackets how often it would be expected from the topics of the "
            "document."
        )
    if name == ODDNESS:
        odd = subject.look.odd
        assert odd is not None
        part = odd.beyond / odd.weight if odd.weight else 0.0
        lacking = bool(subject.look.columns.missing.any())
        return (
            f"The oddest of all {size} rows. They may be errors of measurement, rare kinds, or "
            "rows of another population. Odder than 99.8% means: of rows drawn from the model"
            f"{' with the same entries missing' * lacking}, 99.8% have a higher density. "
            f"{share(part)} of the rows are odder than {percent(1 - RARE)} of such rows; if the "
            f"model were true, it would be {percent(RARE)}."
        )
    return (
        f"The rows with the lowest {name}, of all {size}. They may be errors of measurement, rare "
        "kinds, or rows of another population."
    )


def _table(subject: Subject, odd: OddRows, name: str, reasons: list[list[Reason]]) -> Html:
    assert subject.look is not None
    groups, name_of = subject.groups, subject.row_name
    by_oddness = name == ODDNESS
    head = ["", "because of", "odder than" if by_oddness else name]
    if groups is not None and len(groups.names) > 1:
        head.append("largest topic" if groups.word == "topic" else groups.word)

    def told(value: float) -> str:
        return (
            oddness_share(float(oddness_of(np.asarray(value)))) if by_oddness else number(value, 4)
        )

    rows = []
    for i, row in enumerate(odd.rows):
        cells = [name_of(int(row)), _words(subject, reasons[i]), told(odd.values[i])]
        if groups is not None and len(groups.names) > 1:
            cells.append(groups.names[odd.group[i]])
        rows.append(cells)
    return table(head, rows, f"The oddest {subject.unit}s, oddest first", text=(0, 1))


def _words(subject: Subject, reasons: list[Reason]) -> Html | str:
    told = [_reason(subject, reason) for reason in reasons[:_NAMED]]
    return listed(told, "; ") if told else "no single entry: the combination"


def _reason(subject: Subject, reason: Reason) -> str:
    """``income 12 (expected 40)``; of codes, ``colour = 2 (most probable 0)``."""
    name = short(subject.names[reason.column], 30)
    codes = reason.column in subject.codes
    seen = subject.entry(reason.column, reason.value)
    text = f"{name} = {seen}" if codes else f"{name} {seen}"
    said = []
    if np.isfinite(reason.expected):
        # the expected one of zeros and ones is the probability of a one
        value = round(reason.expected) if codes else reason.expected
        shown = subject.entry(reason.column, value)
        said.append(f"{'most probable' if codes else 'expected'} {shown}")
    if np.isfinite(reason.oddness):
        said.append(odder(reason.oddness))
    return f"{text} ({', '.join(said)})" if said else text


def _histogram(subject: Subject, odd: OddRows, name: str) -> Html | None:
    """How usual the rows of the sample are, with the oddest rows of all marked below."""
    values = sampled_usualness(subject)
    if values is None:
        return None
    values = values[np.isfinite(values)]
    if len(values) < 20 or np.ptp(values) == 0:
        return None
    if name == ODDNESS:
        return _by_oddness(subject, values)
    low = float(np.quantile(values, 0.005))
    low -= 0.1 * (float(values.max()) - low)
    if np.ptp(values) <= 1e-9 * np.abs(values).max():
        return None  # they differ by rounding: neither bins nor ticks tell them apart
    counts, edges = np.histogram(np.clip(values, low, None), bins=40)
    label = f"How many {subject.unit}s have which {name}"
    picture = histogram(counts, edges, label, name, list(odd.values), f"{subject.unit}s")
    hint = (
        f"Marks below the axis: the oddest {subject.unit}s; those beyond the left end are drawn "
        "at it."
    )
    return join([picture, tag("p", hint, class_="hint")])


def _by_oddness(subject: Subject, values: Array) -> Html:
    counts, edges = np.histogram(oddness_of(values), bins=20, range=(0.0, 1.0))
    label = f"How many {subject.unit}s have which oddness"
    picture = histogram(counts, edges, label, "oddness: share of such rows that are less odd", [])
    hint = (
        "For rows drawn from the model all bars would be about equally high. A higher bar at the "
        "right end: more odd rows than the model expects."
    )
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
    names = [subject.row_name(row) for row in odd.rows[:shown]]
    tiles = [tile(grey(x, shape, low, high, n), n) for x, n in zip(X, names, strict=False)]
    return tag("div", *tiles, class_="sheet")
