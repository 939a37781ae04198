"""Section: missing entries, and how well the model imputes hidden ones."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.sources import open_source
from mixfold.report.capabilities import Ask, filled_of
from mixfold.report.column_notes import column_notes
from mixfold.report.formatting import count, number, plural, share, short
from mixfold.report.markup import Html, details
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import bar, table

_COLUMNS = 40
# part of the known entries that is hidden in each trial, trials, rows and entries of a trial
_HIDDEN, _TRIALS, _ROWS, _ENTRIES = 0.1, 8, 1000, 500_000
_LEAST_PAIRS = 10
_MUCH = 0.5


def missing(subject: Subject) -> Section | None:
    """Missing entries by column; told also if there are none."""
    look = subject.look
    if look is None or subject.has_topics:
        return None
    lacks, n = look.columns.missing, look.n_rows
    total = float(lacks.sum()) / (n * max(len(lacks), 1))
    if total == 0:
        lead = f"No entry is missing in the {plural(n, 'row')}."
        body = details("Columns, one by one", table_of_columns(subject))
        return Section("missing", "Missing entries", lead, body, tuple(column_notes(subject)))
    fill = filled_of(subject.model)
    recovered = None if fill is None else recovery(subject, fill)
    lead = (
        f"{share(total)} of all entries are missing, in {count(look.columns.incomplete_rows)} of "
        f"{plural(n, 'row')}."
    )
    if recovered is not None:
        lead += (
            f" How well they can be filled was tried on known entries{_of_rows(subject)}: "
            f"{share(_HIDDEN)} of them "
            "were hidden and filled from the rest of their row."
        )
        numbers, codes = len(lacks) > len(subject.codes), len(subject.codes) > 0
        if numbers:
            lead += " Told is R²: 100% is exact, 0% no better than the mean of the column."
        if codes:
            start = "Of columns of codes it" if numbers else "Told"
            lead += f" {start} is the share of hidden codes that were filled right."
        lead += " If these are the rows of the fit, it is a little flattering."
    notes = (*column_notes(subject), *_notes(subject, lacks / n))
    return Section("missing", "Missing entries", lead, table_of_columns(subject, recovered), notes)


def table_of_columns(subject: Subject, recovered: Array | None = None) -> Html:
    """Every column by itself, those that lack most first."""
    look = subject.look
    assert look is not None
    lacks, columns = look.columns.missing, look.columns
    order = np.argsort(-lacks, kind="stable")[:_COLUMNS]
    head = ["column", "missing", "mean", "sd", "least", "most"]
    if recovered is not None:
        head.insert(2, "can be recovered")
    rows = []
    for j in order:
        part = lacks[j] / look.n_rows
        cells = [short(subject.names[j]), bar(part, share(float(part)))]
        if recovered is not None:
            cells.append(share(float(max(recovered[j], 0.0))))
        numbers = (columns.mean[j], columns.deviation[j], columns.minimum[j], columns.maximum[j])
        texts = [number(v) for v in numbers]
        if j in subject.codes:  # their mean means nothing
            texts[:2] = ["codes", ""]
        rows.append([*cells, *texts])
    more = f", the first {_COLUMNS} of {len(lacks)}" if len(lacks) > _COLUMNS else ""
    lacking = "those that lack most first" if lacks.any() else "in their order"
    return table(head, rows, f"Columns, {lacking}{more}")


def n_tried(subject: Subject) -> int:
    """How many rows of the sample are tried."""
    assert subject.look is not None
    most = max(20, min(_ROWS, _ENTRIES // len(subject.names)))
    return min(most, len(subject.look.sampled))


def _of_rows(subject: Subject) -> str:
    assert subject.look is not None
    n = n_tried(subject)
    return f" of {plural(n, 'row')}" if n < subject.look.n_rows else ""


def recovery(subject: Subject, fill: Ask) -> Array:
    """R^2 (D,) of known entries that were hidden and filled; NaN where too few could be tried.

    Of columns of codes the share that was filled right.
    """
    assert subject.look is not None
    sampled = subject.look.sampled
    few = np.linspace(0, len(sampled) - 1, n_tried(subject)).astype(int)  # rows may be sorted
    X = sampled.at(few).X
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)
    rng = np.random.default_rng(subject.seed)
    tried, errors = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    spread = np.nan_to_num(subject.look.columns.deviation) ** 2
    for _ in range(_TRIALS):
        hidden = ~np.isnan(X) & (rng.random(X.shape) < _HIDDEN)
        hidden &= (~np.isnan(X) & ~hidden).any(axis=1)[:, None]  # something must be left to go by
        filled = fill(open_source(np.where(hidden, np.nan, X)))
        tried += hidden.sum(axis=0)
        wrong = (X - filled) ** 2
        for j in subject.codes:
            wrong[:, j] = np.round(filled[:, j]) != X[:, j]
        errors += np.where(hidden, wrong, 0.0).sum(axis=0)
    for j in subject.codes:
        spread[j] = 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - errors / tried / spread
    return np.where((tried >= _LEAST_PAIRS) & (spread > 0), found, np.nan)


def _notes(subject: Subject, part: Array) -> list[Note]:
    assert subject.look is not None
    notes = []
    much = [subject.names[j] for j in np.flatnonzero(part > _MUCH)]
    if much:
        notes.append(
            Note(
                f"{plural(len(much), 'column')} lack more than half of their entries "
                f"({', '.join(short(n, 24) for n in much[:4])}).",
                "What is said of them rests on few rows",
                serious=False,
            )
        )
    if subject.look.columns.empty_rows:
        notes.append(
            Note(
                f"{plural(subject.look.columns.empty_rows, 'row')} without a single entry.",
                "They say nothing; leave them out",
            )
        )
    return notes
