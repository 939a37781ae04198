"""Section: missing entries, and how well the model imputes hidden ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.sources import open_source
from mixfold.report.capabilities import Ask, filled_of
from mixfold.report.column_notes import column_notes
from mixfold.report.formatting import count, join_words, number, percent, plural, share, short
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
            f" To see how well the model fills them, {percent(_HIDDEN)} of the known entries"
            f"{_of_rows(subject)} were hidden and filled from the rest of their row, "
            f"{_TRIALS} times."
        )
        numbers, codes = len(lacks) > len(subject.codes), len(subject.codes) > 0
        if numbers:
            of = " for numbers" if codes else ""
            lead += (
                f' "Recovered"{of} is R²: 100% is exact, 0% is no better than the mean of the '
                "column."
            )
        if codes:
            of = " for codes" if numbers else ""
            lead += (
                f' "Recovered"{of} is the share that was filled correctly; in brackets, the share '
                "for always filling the most common code."
            )
        lead += " If the model was fitted to these rows, new rows are filled somewhat less well."
    notes = (*column_notes(subject), *_notes(subject, lacks / n))
    return Section("missing", "Missing entries", lead, table_of_columns(subject, recovered), notes)


def table_of_columns(subject: Subject, recovered: Recovery | None = None) -> Html:
    """Every column by itself, those with most missing entries first."""
    look = subject.look
    assert look is not None
    lacks, columns = look.columns.missing, look.columns
    order = np.argsort(-lacks, kind="stable")[:_COLUMNS]
    head = ["column", "missing", "mean", "sd", "min", "max"]
    if recovered is not None:
        head.insert(2, "recovered")
    rows = []
    for j in order:
        part = lacks[j] / look.n_rows
        cells = [short(subject.names[j]), bar(part, share(float(part)))]
        if recovered is not None:
            part = f"{share(float(max(recovered.found[j], 0.0)))}"
            common = recovered.by_commonest[j]
            cells.append(f"{part} ({share(float(common))})" if j in subject.codes else part)
        numbers = (columns.mean[j], columns.deviation[j], columns.minimum[j], columns.maximum[j])
        texts = [number(v) for v in numbers]
        if subject.schema is not None:
            ends = [subject.entry(j, float(v)) for v in numbers[2:]]
            mean, spread = float(numbers[0]), float(numbers[1])
            texts = [subject.entry(j, mean), subject.spread(j, spread), *ends]
        if j in subject.codes:  # their mean means nothing
            texts[:2] = ["codes" if subject.schema is None else "words", ""]
        rows.append([*cells, *texts])
    more = f", the first {_COLUMNS} of {len(lacks)}" if len(lacks) > _COLUMNS else ""
    lacking = (
        "those with most missing entries first" if lacks.any() else "in the order of the table"
    )
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


@dataclass(frozen=True, slots=True)
class Recovery:
    """R^2 (D,) of hidden entries, of codes the share filled right; NaN where too few were tried.

    ``by_commonest`` (D,) is the share of right ones if the most common code were filled.
    """

    found: Array
    by_commonest: Array


def recovery(subject: Subject, fill: Ask) -> Recovery:
    """Hide known entries, fill them, and compare."""
    assert subject.look is not None
    sampled = subject.look.sampled
    few = np.linspace(0, len(sampled) - 1, n_tried(subject)).astype(int)  # rows may be sorted
    X = sampled.at(few).X
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)
    rng = np.random.default_rng(subject.seed)
    tried, errors, spread = (np.zeros(X.shape[1]) for _ in range(3))
    mean = np.nan_to_num(subject.look.columns.mean)
    usual = {j: _most_common(X[:, j]) for j in subject.codes}
    as_usual = np.zeros(X.shape[1])
    for _ in range(_TRIALS):
        hidden = ~np.isnan(X) & (rng.random(X.shape) < _HIDDEN)
        hidden &= (~np.isnan(X) & ~hidden).any(axis=1)[:, None]  # something must be left to go by
        filled = fill(open_source(np.where(hidden, np.nan, X)))
        tried += hidden.sum(axis=0)
        wrong = (X - filled) ** 2
        for j, code in usual.items():
            wrong[:, j] = np.round(filled[:, j]) != X[:, j]
            as_usual[j] += (X[hidden[:, j], j] == code).sum()
        errors += np.where(hidden, wrong, 0.0).sum(axis=0)
        # of the entries that were hidden: an outlier that was not would flatter the model
        spread += np.where(hidden, (X - mean) ** 2, 0.0).sum(axis=0)
    for j in subject.codes:
        spread[j] = tried[j]
    with np.errstate(invalid="ignore", divide="ignore"):
        found, common = 1 - errors / spread, as_usual / tried
    known = (tried >= _LEAST_PAIRS) & (spread > 0)
    return Recovery(np.where(known, found, np.nan), np.where(known, common, np.nan))


def _most_common(values: Array) -> float:
    """NaN if no value is there."""
    codes, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return float(codes[counts.argmax()]) if len(codes) else float("nan")


def _notes(subject: Subject, part: Array) -> list[Note]:
    assert subject.look is not None
    notes = []
    much = [subject.names[j] for j in np.flatnonzero(part > _MUCH)]
    if much:
        notes.append(
            Note(
                f"{plural(len(much), 'column')} with more than half of the entries missing "
                f"({join_words([short(n, 24) for n in much], 4)}).",
                "What this report says of them is based on few rows",
                serious=False,
            )
        )
    if subject.look.columns.empty_rows:
        notes.append(
            Note(
                f"{plural(subject.look.columns.empty_rows, 'row')} without any entry: no "
                "information.",
                "Leave them out",
            )
        )
    return notes
