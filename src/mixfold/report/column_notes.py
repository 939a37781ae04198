"""Notes about columns: constant ones, and one whose scale dominates the others."""

from __future__ import annotations

import numpy as np

from mixfold.report.capabilities import units_matter
from mixfold.report.formatting import join_words, share, short
from mixfold.report.section import Note
from mixfold.report.subject import Subject

# a column with more of the variance of all leaves little to see of the others
_MOST = 0.9
_NAMED = 4


def column_notes(subject: Subject) -> list[Note]:
    """Notes about columns of numbers; pixels at an edge and rare words are as they are."""
    if subject.look is None or subject.image is not None or hasattr(subject.model, "topics_"):
        return []
    return [*_constant(subject), *_drowning(subject)]


def _constant(subject: Subject) -> list[Note]:
    assert subject.look is not None
    columns = subject.look.columns
    same = (columns.minimum == columns.maximum) & (columns.observed > 1)
    names = [short(subject.names[j], 24) for j in np.flatnonzero(same)]
    if not names:
        return []
    one = len(names) == 1
    holds, leave = ("holds", "Leave it out") if one else ("hold", "Leave them out")
    text = f"{join_words(names, _NAMED)} {holds} the same value in all rows: no information."
    return [Note(text, leave)]


def _drowning(subject: Subject) -> list[Note]:
    """Of models to which units matter: a column that has nearly all of the variance."""
    assert subject.look is not None
    variance = np.nan_to_num(subject.look.columns.deviation) ** 2
    total = float(variance.sum())
    if len(variance) < 2 or not 0 < total < np.inf or not units_matter(subject.model):
        return []
    largest = int(variance.argmax())
    part = float(variance[largest]) / total
    if part <= _MOST:
        return []
    text = (
        f"{short(subject.names[largest], 24)} has {share(part)} of the variance of all columns. "
        "This model depends on the units of the columns, so the other columns hardly count."
    )
    return [Note(text, "Divide each column by its standard deviation before the fit")]
