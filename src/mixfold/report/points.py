"""The points of the map: positions of sampled rows, their groups, columns to colour by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.sources import open_source
from mixfold.estimators.shell.oddness import oddness_of
from mixfold.report.capabilities import ODDNESS, axis_word, filled_of, latents_of
from mixfold.report.formatting import class_names, short
from mixfold.report.profiles import profiles_of
from mixfold.report.projection import plane
from mixfold.report.rows.sample import Sampled
from mixfold.report.subject import Subject

_AXES, _COLUMNS, _CODES = 6, 24, 60


@dataclass(frozen=True, slots=True)
class Points:
    """Rows (n,) of the sample with named axes (n,), and columns to colour by.

    ``group`` (n,) numbers ``names``, -1 is none; ``classes`` likewise, if labels were given.
    Columns have a name, values, and whether these are codes.
    """

    rows: Array
    axes: list[tuple[str, Array]]
    first: tuple[int, int]
    group: Array
    names: list[str]
    word: str
    classes: tuple[Array, list[str]] | None
    usualness: tuple[str, Array] | None
    columns: list[tuple[str, Array, bool]]
    X: Any

    def __len__(self) -> int:
        return len(self.rows)


def points_of(subject: Subject) -> Points | None:
    """The sample as points; None if a row is no more than one number."""
    look = subject.look
    assert look is not None
    sampled = _thin_sample(look.sampled, subject.max_points)
    source = open_source(sampled.X)
    group, names = _groups(subject, source, len(sampled))
    axes, first = _axes(subject, sampled, source, group)
    ask = look.questions.usualness
    usual = None if ask is None else _usualness(look.usualness_name, ask(source))
    if len(axes) < 2:
        return None
    columns = [(subject.names[j], _column(sampled.X, j), j in subject.codes)
               for j in _choose_columns(subject)]  # fmt: skip
    columns = [*_numbers_given(subject, sampled), *columns]
    word = "" if subject.groups is None else subject.groups.word
    labels = _classes(subject, sampled)
    X = sampled.X
    return Points(sampled.rows, axes, first, group, names, word, labels, usual, columns, X)


def _usualness(name: str, values: Array) -> tuple[str, Array]:
    """As it is told: oddness for the logarithm of a tail probability."""
    return name, oddness_of(values) if name == ODDNESS else values


def brief(names: list[str]) -> list[str]:
    """Names that differ by their numbers only, as these."""
    heads = {name.rpartition(" ")[0] for name in names}
    return [short(n.rpartition(" ")[2] if len(heads) == 1 else n, 20) for n in names]


def _thin_sample(sampled: Sampled, most: int) -> Sampled:
    if len(sampled) <= most:
        return sampled
    return sampled.at(np.linspace(0, len(sampled) - 1, most).astype(int))


def _groups(subject: Subject, source: Any, n: int) -> tuple[Array, list[str]]:
    groups = subject.groups
    if groups is None or len(groups.names) < 2:
        return np.full(n, -1), []
    shares = groups.shares(source)
    place = np.full(len(groups.names), -1)
    place[groups.shown] = np.arange(len(groups.shown))
    names = [groups.label(k) for k in groups.shown]
    return place[shares.argmax(axis=1)], names


def _classes(subject: Subject, sampled: Sampled) -> tuple[Array, list[str]] | None:
    assert subject.look is not None
    targets = subject.look.targets
    if targets is None or not targets.classes or sampled.y is None:
        return None
    return targets.codes(sampled.y), class_names(targets.classes)


def _numbers_given(subject: Subject, sampled: Sampled) -> list[tuple[str, Array, bool]]:
    """Targets that are numbers, to colour by."""
    assert subject.look is not None
    targets = subject.look.targets
    if targets is None or not targets.numbers or sampled.y is None:
        return []
    table = targets.floats(sampled.y)
    several = table.shape[1] > 1
    names = [f"target {j}" if several else "target" for j in range(table.shape[1])]
    return [(name, table[:, j], False) for j, name in enumerate(names[:4])]


def _axes(
    subject: Subject, sampled: Sampled, source: Any, group: Array
) -> tuple[list[tuple[str, Array]], tuple[int, int]]:
    """Latents, then the plane that separates groups; and which two are shown first."""
    ask = latents_of(subject.model)
    axes: list[tuple[str, Array]] = []
    if ask is not None:
        latents = np.asarray(ask(source), float)
        word = axis_word(subject.model)[0]
        axes = [(f"{word} {j + 1}", latents[:, j]) for j in range(min(latents.shape[1], _AXES))]
    divided = bool((group >= 0).any())
    own = np.ndim(getattr(subject.model, "loadings_", 0)) == 3  # factors of each component's own
    n_latents = len(axes)
    if sampled.X.shape[1] > 1 and len(sampled) > 2:
        filled = with_indicators(_fill_missing(subject, sampled, source), list(subject.codes))
        flat = plane(filled, group if divided else None, subject.seed)
        words = (
            _directions(group) if divided else ("principal direction 1", "principal direction 2")
        )
        axes += [(word, flat[:, j]) for j, word in enumerate(words)]
    elif not n_latents or sampled.X.shape[1] > 0:
        axes += [(subject.names[0], _column(sampled.X, 0))]
    by_latents = n_latents >= 2 and not (own and divided)
    if by_latents:
        return axes, (0, 1)
    return axes, (n_latents, n_latents + 1) if len(axes) >= n_latents + 2 else (0, 1)


def with_indicators(X: Any, codes: list[int]) -> Any:
    """Rows with a column of zeros and ones for each code in place of a column of codes."""
    if not codes or hasattr(X, "tocsr"):
        return X
    rest = np.setdiff1d(np.arange(X.shape[1]), codes)
    parts = [X[:, rest]]
    for j in codes:
        values = np.unique(X[:, j])[:_CODES]
        parts.append((X[:, [j]] == values).astype(float))
    return np.hstack(parts)


def _directions(group: Array) -> tuple[str, str]:
    """Two groups are apart in one direction; the other is that in which their rows vary most."""
    if len(np.unique(group)) < 3:
        return "separating direction", "variation within groups"
    return "separating direction 1", "separating direction 2"


def _fill_missing(subject: Subject, sampled: Sampled, source: Any) -> Any:
    """Rows without holes: as the model fills them, else by the means of the columns."""
    X = sampled.X
    if hasattr(X, "tocsr"):
        return _whole(X)
    X = np.asarray(X, float)
    if not np.isnan(X).any():
        return X
    fill = filled_of(subject.model)
    if fill is not None:
        return fill(source)
    assert subject.look is not None
    return np.where(np.isnan(X), np.nan_to_num(subject.look.columns.mean), X)


def _whole(X: Any) -> Any:
    X = X.copy()
    X.data = np.nan_to_num(X.data)
    return X


def _choose_columns(subject: Subject) -> list[int]:
    """Columns to colour by: those that set groups apart, else those that vary and come first."""
    assert subject.look is not None
    found = profiles_of(subject)
    if found is not None and len(found.means) > 1:
        score = found.information
    else:
        spread = np.nan_to_num(subject.look.columns.deviation)
        score = (spread > 0).astype(float)
        if hasattr(subject.model, "topics_"):
            score = np.nan_to_num(subject.look.columns.mean)
    return [int(j) for j in np.argsort(-score, kind="stable")[:_COLUMNS]]


def _column(X: Any, j: int) -> Array:
    column = X[:, [j]]
    return np.asarray(column.toarray() if hasattr(column, "toarray") else column, float).ravel()
