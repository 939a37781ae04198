"""Notes about columns: constant ones, and one whose scale dominates the others."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    text = f"{join_words(names, _NAMED)} {holds} a single value in all rows, which tells nothing."
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
        "This model takes columns in the units they have, so it sees little of the others."
    )
    return [Note(text, "Divide each column by its standard deviation before the fit")]


def units_matter(model: Any) -> bool:
    """Whether other units of a column would give another fit: one noise, or one distance, for all.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PPCA, FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 1)) + rng.normal(size=(50, 4))
    >>> units_matter(PPCA(1).fit(X)), units_matter(FactorAnalysis(1).fit(X))
    (True, False)
    """
    if hasattr(model, "cluster_centers_"):
        return True
    if hasattr(model, "eigenvalues_") and hasattr(model, "kernel"):
        return True
    noise, loadings = (getattr(model, name, None) for name in ("noise_variance_", "loadings_"))
    if noise is not None and loadings is not None and not isinstance(loadings, list | tuple):
        components = np.shape(loadings)[:-2]
        return np.shape(noise) in ((), components)
    return getattr(model, "covariance_type", None) == "spherical"
