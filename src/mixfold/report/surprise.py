"""Why a row is unusual: how unlikely each of its entries is, given the others.

Without an entry the log density of a row rises by -log p(entry | the others), its surprise. What
that is for ordinary rows is subtracted, so that columns in any units, and counts, compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.engine.sources import open_source
from mixfold.estimators.shell.oddness import PointDensity, cell_tails, oddness_of
from mixfold.report.capabilities import filled_of, takes_missing
from mixfold.report.profiles import profiles_of
from mixfold.report.subject import Subject

# rows whose entries are left out one at a time, all of them together
_MOST_ROWS = 40_000
_ORDINARY = 60
# surprises below are no reason
_LEAST = 1.0
# draws for the oddness of an entry, and of all entries of the oddest rows together
_DRAWS, _MOST_DRAWS = 400, 400_000
# entries that are less odd are no reason
_ODD = 0.9


@dataclass(frozen=True, slots=True)
class Reason:
    """A column that makes a row odd: its value there, and what the model expected (or NaN)."""

    column: int
    value: float
    expected: float
    strength: float
    # of the entry given the others of its row; NaN if that is not known
    oddness: float = float("nan")


def reasons_of(subject: Subject) -> list[list[Reason]]:
    """For each of the oddest rows its reasons, strongest first."""
    look, model = subject.look, subject.model
    assert look is not None and look.odd is not None
    X = look.odd.X
    if hasattr(model, "topics_"):
        return _by_counts(subject, X)
    if _can_leave_entries_out(subject):
        found = _by_surprise(subject, X, lambda rows: np.asarray(model.score_samples(rows), float))
        return _with_oddness(model, X, found)
    return _by_distance(subject, X)


def _can_leave_entries_out(subject: Subject) -> bool:
    """Whether the density of a row without an entry can be asked for, in no long time."""
    look, model = subject.look, subject.model
    assert look is not None and look.odd is not None
    n, width = look.odd.X.shape
    holes = takes_missing(model) and width > 1 and hasattr(model, "score_samples")
    enough = (n + _ORDINARY) * width <= _MOST_ROWS
    return holes and enough and look.questions.usualness is not None


def expected_as(subject: Subject) -> str:
    """What the expected value of an entry is."""
    if hasattr(subject.model, "topics_"):
        return "how often the topics of the document let it be expected"
    if _can_leave_entries_out(subject):
        return "its value predicted from the other entries of the row"
    groups = subject.groups
    if groups is not None and profiles_of(subject) is not None:
        return f"the mean of the column in the {groups.word} of the row"
    return "the mean of the column in all rows"


def _by_surprise(
    subject: Subject, X: Array, score: Callable[[object], Array]
) -> list[list[Reason]]:
    assert subject.look is not None
    few = subject.look.sampled
    typical = few.at(np.linspace(0, len(few) - 1, min(_ORDINARY, len(few))).astype(int)).X
    typical = np.asarray(typical.toarray() if hasattr(typical, "toarray") else typical, float)
    ordinary = _surprises(typical, score)
    ordinary[:, np.isnan(ordinary).all(axis=0)] = 0.0  # a column that none of them has
    excess = _surprises(X, score) - np.nanmedian(ordinary, axis=0)
    fill = filled_of(subject.model)
    expected = np.full(X.shape, np.nan) if fill is None else _predict_each_entry(X, fill)
    return [_strongest(excess[i], X[i], expected[i]) for i in range(len(X))]


def _with_oddness(model: Any, X: Array, found: list[list[Reason]]) -> list[list[Reason]]:
    """Reasons with the oddness of their entries, where that does not take long."""
    density = model._point_density() if hasattr(model, "oddness") else None
    if not isinstance(density, PointDensity):
        return found
    draws = 1 if density.mean is not None else _DRAWS
    if X.size * draws > _MOST_DRAWS:
        return found
    cells = oddness_of(cell_tails(density, draws, 0, Block(X, complete=False)))
    told = []
    for i, reasons in enumerate(found):
        known = [replace(reason, oddness=float(cells[i, reason.column])) for reason in reasons]
        told.append([reason for reason in known if not reason.oddness < _ODD])
    return told


def _leave_each_entry_out(X: Array) -> Array:
    """Each row once for each column, without that entry: (n * D, D)."""
    n, width = X.shape
    many = np.repeat(X, width, axis=0)
    many[np.arange(n * width), np.tile(np.arange(width), n)] = np.nan
    return many


def _surprises(X: Array, score: Callable[[object], Array]) -> Array:
    """-log p(entry | the other entries), (n, D); NaN where there is no entry."""
    without = score(open_source(_leave_each_entry_out(X))).reshape(X.shape)
    found = without - score(open_source(X))[:, None]
    return np.where(np.isnan(X), np.nan, found)


def _predict_each_entry(X: Array, fill: Callable[[object], Array]) -> Array:
    """Each entry as expected from the others."""
    n, width = X.shape
    filled = fill(open_source(_leave_each_entry_out(X)))
    return filled[np.arange(n * width), np.tile(np.arange(width), n)].reshape(n, width)


def _strongest(strength: Array, x: Array, expected: Array, least: float = _LEAST) -> list[Reason]:
    order = np.argsort(-np.nan_to_num(strength, nan=-np.inf), kind="stable")[:5]
    return [
        Reason(int(j), float(x[j]), float(expected[j]), float(strength[j]))
        for j in order
        if np.isfinite(strength[j]) and strength[j] >= least
    ]


def _by_distance(subject: Subject, X: Array) -> list[list[Reason]]:
    """Columns far from the mean of the row's group, or of all rows, in deviations."""
    assert subject.look is not None and subject.look.odd is not None
    columns, found, groups = subject.look.columns, profiles_of(subject), subject.groups
    reasons = []
    for i, x in enumerate(X):
        centre, scale = columns.mean, columns.deviation
        place: Any = (
            [] if groups is None else np.flatnonzero(groups.shown == subject.look.odd.group[i])
        )
        if found is not None and len(place):
            centre = found.means[place[0]]
            scale = scale if found.deviations is None else found.deviations[place[0]]
        apart = np.abs(x - centre) / np.where(scale > 0, scale, np.inf)
        reasons.append(_strongest(apart, x, centre, 2.0))
    return reasons


def _by_counts(subject: Subject, X: Array) -> list[list[Reason]]:
    """Words that a document has more often than its topics expect."""
    model = subject.model
    shares = np.asarray(model.transform(open_source(X)), float)
    expected = X.sum(axis=1, keepdims=True) * (shares @ np.asarray(model.topics_, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(X > 0, X * np.log(X / np.maximum(expected, 1e-300)), 0.0)
    return [_strongest(excess[i], X[i], expected[i]) for i in range(len(X))]
