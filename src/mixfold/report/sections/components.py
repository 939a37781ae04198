"""How large the groups are, how sure of that we are, and how far apart they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import Groups
from mixfold.report.markup import Html, folded, join
from mixfold.report.rows.groups import SURE, GroupSums
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import bar, heat_table, table
from mixfold.report.words import count, plural, share

_MOST = 30
_MOST_PAIRS = 16
_FEW_ROWS = 5


def components(subject: Subject) -> Section | None:
    """Weights, sizes and separation of groups."""
    groups = subject.groups
    if groups is None or len(groups.names) < 2:
        return None
    seen = None if subject.look is None else subject.look.groups
    order = _by_size(groups, seen)
    parts = [_table(subject, groups, seen, order), _overlaps(groups, seen, order)]
    title = f"{groups.several.capitalize()} and their sizes"
    notes = [] if seen is None else _notes(groups, seen)
    return Section("components", title, _lead(groups, seen), join(parts), tuple(notes))


def _by_size(groups: Groups, seen: GroupSums | None) -> Array:
    size = groups.weights if groups.weights is not None else getattr(seen, "mass", None)
    if size is None:
        return groups.shown
    return groups.shown[np.argsort(-np.asarray(size)[groups.shown], kind="stable")]


def _lead(groups: Groups, seen: GroupSums | None) -> str:
    n, all_ = len(groups.shown), len(groups.names)
    used = f", of {all_} that were allowed" if n < all_ else ""
    start = f"{plural(n, groups.word, groups.several)} in use{used}."
    if seen is None or not groups.soft:
        return start
    total = seen.count.sum()
    mean, unsure = seen.certainty.sum() / total, seen.unsure.sum() / total
    how = "clear" if mean > 0.95 else "fairly clear" if mean > 0.85 else "blurred"
    return (
        f"{start} Assignments are {how}: the most probable {groups.word} of a row has probability "
        f"{share(mean)} on average, and {share(unsure)} of the rows have less than {share(SURE)}."
    )


def _table(subject: Subject, groups: Groups, seen: GroupSums | None, order: Array) -> Html:
    shown = order[:_MOST]
    head: list[str] = [groups.word]
    cells: list[list[Any]] = [[groups.names[k] for k in shown]]
    if groups.weights is not None:
        head.append("weight")
        cells.append([bar(groups.weights[k], share(groups.weights[k])) for k in shown])
        errors = _errors(subject, groups, seen)
        if errors is not None:
            head.append("± standard error")
            cells.append([share(errors[k]) for k in shown])
    if seen is not None:
        assert subject.look is not None
        head += ["weight of its rows" if subject.look.is_weighted else "rows"]
        cells += [[count(seen.count[k]) for k in shown]]
        if groups.soft:
            head += ["how sure", f"rows below {share(SURE)}"]
            sure = _ratio(seen.certainty, seen.count)
            cells += [[share(sure[k]) for k in shown]]
            cells += [[share(_ratio(seen.unsure, seen.count)[k]) for k in shown]]
    rows = [list(row) for row in zip(*cells, strict=True)]
    more = f", the largest {_MOST} of {len(order)}" if len(order) > _MOST else ""
    return table(head, rows, f"{groups.several.capitalize()} by size{more}")


def _ratio(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a / b)


def _errors(subject: Subject, groups: Groups, seen: GroupSums | None) -> Array | None:
    """Standard errors of the weights: of the posterior, of the rows seen, or of clear groups."""
    weights = groups.weights
    if weights is None or groups.word not in ("component", "cluster"):
        return None
    counts = getattr(subject.model, "counts_", None)
    if counts is not None and np.shape(counts) == weights.shape:
        total = float(np.sum(counts)) + float(getattr(subject.model, "alpha_", 1.0) or 1.0)
        return np.sqrt(weights * (1 - weights) / (total + 1))
    fitted = training_weight(subject.model)
    if seen is not None and groups.soft:
        # the rows seen tell what a row says of the weights; how many said it, the fit knows
        size = float(seen.mass.sum())
        return seen.weight_errors(weights) * (1.0 if not fitted else float(np.sqrt(size / fitted)))
    return None if fitted is None else np.sqrt(weights * (1 - weights) / fitted)


def training_weight(model: Any) -> float | None:
    """Weight of the rows that were fitted, if the model has kept it."""
    kept = getattr(model, "_total", None)
    return None if kept is None else float(kept[1])


def _overlaps(groups: Groups, seen: GroupSums | None, order: Array) -> Html | None:
    if seen is None or not groups.soft or not 2 <= len(order) <= _MOST_PAIRS:
        return None
    part = seen.overlap[np.ix_(order, order)]
    names = [groups.names[k] for k in order]
    texts = [[share(v) for v in row] for row in part]
    caption = f"Of the rows of one {groups.word} (line), the probability of each {groups.word}"
    picture = heat_table(groups.word, names, names, part, texts, caption, most=1.0)
    words = "All of a line on the diagonal: groups that nobody confuses."
    return folded("Which ones overlap", picture, words)


def _notes(groups: Groups, seen: GroupSums) -> list[Note]:
    notes = []
    few = [groups.names[k] for k in groups.shown if seen.mass[k] < _FEW_ROWS]
    if few:
        notes.append(
            Note(
                f"{plural(len(few), groups.word, groups.several)} of fewer than {_FEW_ROWS} rows "
                f"({', '.join(few[:8])}).",
                "Look at these rows: they may be outliers and no group; try fewer components",
            )
        )
    pair = _closest(groups, seen)
    if pair is not None:
        j, k, part = pair
        notes.append(
            Note(
                f"{groups.several.capitalize()} {groups.names[j]} and {groups.names[k]} overlap: "
                f"{share(part)} of the rows of one may as well be of the other.",
                "One component fewer may describe them as well",
            )
        )
    return notes


def _closest(groups: Groups, seen: GroupSums) -> tuple[int, int, float] | None:
    """The pair of groups that is confused most, if that is much."""
    if not groups.soft or groups.word == "topic" or len(groups.shown) < 2:
        return None
    part = seen.overlap[np.ix_(groups.shown, groups.shown)].copy()
    np.fill_diagonal(part, 0.0)
    part = np.nan_to_num(part)
    j, k = np.unravel_index(int(part.argmax()), part.shape)
    found = float(part[j, k])
    return (int(groups.shown[j]), int(groups.shown[k]), found) if found > 0.2 else None
