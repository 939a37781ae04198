"""Section: sizes of groups, certainty of assignments, overlaps of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.mixtures.weight_intervals import Intervals, weight_intervals
from mixfold.models.mixtures.rows import without_empty_rows
from mixfold.report.capabilities import Groups, has_target
from mixfold.report.formatting import NOTHING, count, join_words, percent, plural, share
from mixfold.report.markup import Html, details, join, tag
from mixfold.report.rows.groups import SURE, GroupSums
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import bar, heat_table, table

_MOST = 30
_MOST_PAIRS = 16
_FEW_ROWS = 5
# parts of the rows that are not surely of a group, below which assignments are called so
_CLEAR, _FAIRLY_CLEAR = 0.05, 0.2


def components(subject: Subject) -> Section | None:
    """Weights, sizes and separation of groups."""
    groups = subject.groups
    if groups is None or len(groups.names) < 2 or groups.word == "topic":
        return None  # a document about two topics is not an unsure one: see the topics
    seen = None if subject.look is None else subject.look.groups
    order = _by_size(groups, seen)
    limits = weight_limits(subject)
    parts = [
        _table(subject, groups, seen, order, limits),
        _about_limits(subject, groups, limits),
        _overlaps(groups, seen, order, subject.unit),
    ]
    title = f"{groups.several.capitalize()} and their sizes"
    notes = [] if seen is None else _notes(groups, seen, subject.unit)
    if limits is not None:
        notes += _notes_of_limits(subject, groups, limits)
    return Section(
        "components", title, _lead(groups, seen, subject.unit), join(parts), tuple(notes)
    )


def _by_size(groups: Groups, seen: GroupSums | None) -> Array:
    size = groups.weights if groups.weights is not None else getattr(seen, "mass", None)
    if size is None:
        return groups.shown
    return groups.shown[np.argsort(-np.asarray(size)[groups.shown], kind="stable")]


def _lead(groups: Groups, seen: GroupSums | None, unit: str) -> str:
    n, all_ = len(groups.shown), len(groups.names)
    used = f" (of at most {all_})" if n < all_ else ""
    start = f"{plural(n, groups.word, groups.several)} in use{used}."
    if seen is None or not groups.soft:
        return start
    total = seen.count.sum()
    mean, unsure = seen.certainty.sum() / total, seen.unsure.sum() / total
    how = "clear" if unsure < _CLEAR else "fairly clear" if unsure < _FAIRLY_CLEAR else "blurred"
    return (
        f"{start} Assignments are {how}: the most probable {groups.word} of a {unit} has "
        f"probability {share(mean)} on average; for {share(unsure)} of the {unit}s it is below "
        f"{percent(SURE)}."
    )


def _table(
    subject: Subject,
    groups: Groups,
    seen: GroupSums | None,
    order: Array,
    limits: Intervals | None,
) -> Html:
    shown = order[:_MOST]
    head: list[str] = [groups.word]
    cells: list[list[Any]] = [[groups.names[k] for k in shown]]
    if groups.weights is not None:
        head.append("prior" if groups.word == "class" else "weight")
        cells.append([bar(groups.weights[k], share(groups.weights[k])) for k in shown])
        if limits is not None:
            head.append("95% interval")
            cells.append([_interval(limits, k) for k in shown])
    if seen is not None:
        assert subject.look is not None
        units = f"{subject.unit}s"
        given = "predicted " if groups.word == "class" else ""
        head += [f"weight of its {given}{units}" if subject.look.is_weighted else given + units]
        cells += [[count(seen.count[k]) for k in shown]]
        if groups.soft:
            head += ["mean probability", f"{units} below {percent(SURE)}"]
            sure = _ratio(seen.certainty, seen.count)
            cells += [[share(sure[k]) for k in shown]]
            cells += [[share(_ratio(seen.unsure, seen.count)[k]) for k in shown]]
    rows = [list(row) for row in zip(*cells, strict=True)]
    more = f", the largest {_MOST} of {len(order)}" if len(order) > _MOST else ""
    return table(head, rows, f"{groups.several.capitalize()} by size{more}")


def _about_limits(subject: Subject, groups: Groups, limits: Intervals | None) -> Html | None:
    """What the intervals are, or why some are not there."""
    if limits is None:
        return None
    known, words = np.isfinite(limits.low), []
    if known.any():
        prior = ", without the prior" if hasattr(subject.model, "alpha_") else ""
        words.append(
            f"95% interval: confidence interval of the weight by the likelihood of the rows{prior}."
            " It takes into account that the components were estimated from the same rows, and is "
            "made wider where they overlap."
        )
    lacking = groups.shown[~known[groups.shown]]
    if limits.reason and len(lacking):
        which = "No 95% interval"
        if known.any():
            which += f" for {_named(groups, lacking)}"
        words.append(f"{which}: {limits.reason}.")
    return tag("p", " ".join(words), class_="hint")


def _named(groups: Groups, which: Sequence[int] | Array) -> str:
    """``component 2``, ``components 0 and 2``."""
    names = [groups.names[k] for k in which]
    return f"{groups.several if len(names) > 1 else groups.word} {join_words(names)}"


def _notes_of_limits(subject: Subject, groups: Groups, limits: Intervals) -> list[Note]:
    if limits.local:
        start = (
            "The fit, which has a prior, is far from a maximum of the likelihood"
            if hasattr(subject.model, "alpha_")
            else "The fit is a local maximum of the likelihood"
        )
        text = (
            f"{start}: {limits.reason}. The best fit "
            f"may have other {groups.several}; the sizes of these have no interval."
        )
        several = "n_init" in subject.model.get_params(deep=False)
        how = "more starts (n_init=10)" if several else "another random_state"
        return [Note(text, f"Fit again with {how}, or with fewer components")]
    if not limits.unidentified:
        return []
    named, several = _named(groups, limits.unidentified), len(limits.unidentified) > 1
    text = (
        f"By BIC the rows are described as well without {'any one of ' if several else ''}{named}; "
        f"{'their sizes have' if several else 'its size has'} no interval."
    )
    remedy = (
        "Compare other numbers of components, and components with fewer parameters "
        "(MixtureSearch, mixfold select)"
    )
    return [Note(text, remedy)]


def _ratio(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a / b)


def weight_limits(subject: Subject) -> Intervals | None:
    """95 % intervals of the weights by the rows at hand; None where weights are not estimated."""
    groups, look = subject.groups, subject.look
    if groups is None or look is None or groups.weights is None or has_target(subject.model):
        return None
    fitted = training_weight(subject.model)
    if fitted is None and hasattr(subject.model, "counts_"):
        fitted = float(np.sum(subject.model.counts_))
    if fitted is None:  # a stream, of which nothing is kept
        return None
    block = without_empty_rows(look.sampled.block())  # which a fit does not count
    complete = len(look.sampled) == look.n_rows
    same = complete and abs(float(block.weights().sum()) - fitted) < 1e-6 * fitted
    return weight_intervals(subject.model, block, None if same else fitted)


def _interval(limits: Intervals, k: int) -> str:
    if not np.isfinite(limits.low[k]):
        return NOTHING
    return f"{share(float(limits.low[k]))} to {share(float(limits.high[k]))}"


def training_weight(model: Any) -> float | None:
    """Weight of the rows that were fitted, if the model has kept it."""
    kept = getattr(model, "_total", None)
    return None if kept is None else float(kept[1])


def _overlaps(groups: Groups, seen: GroupSums | None, order: Array, unit: str) -> Html | None:
    if seen is None or not groups.soft or not 2 <= len(order) <= _MOST_PAIRS:
        return None
    part = seen.overlap[np.ix_(order, order)]
    names = [groups.names[k] for k in order]
    texts = [[share(v) for v in row] for row in part]
    caption = (
        f"Mean probability of each {groups.word} (column) over the {unit}s of one {groups.word} "
        "(line)"
    )
    picture = heat_table(groups.word, names, names, part, texts, caption, most=1.0)
    words = f"100% on the diagonal: the {groups.word} does not overlap with any other."
    return details(f"Overlap of the {groups.several}", picture, tag("p", words, class_="hint"))


def _notes(groups: Groups, seen: GroupSums, unit: str) -> list[Note]:
    notes = []
    few = [groups.names[k] for k in groups.shown if seen.mass[k] < _FEW_ROWS]
    if few:
        notes.append(
            Note(
                f"{(groups.several if len(few) > 1 else groups.word).capitalize()} "
                f"{join_words(few, 8)} {'have' if len(few) > 1 else 'has'} fewer than {_FEW_ROWS} "
                f"{unit}s{' each' * (len(few) > 1)}.",
                f"Look at these {unit}s: they may be outliers rather than a group; try fewer "
                "components",
            )
        )
    pair = _closest(groups, seen)
    if pair is not None:
        j, k, part = pair
        notes.append(
            Note(
                f"{groups.several.capitalize()} {groups.names[j]} and {groups.names[k]} overlap: "
                f"a {unit} of {groups.names[j]} has probability {share(part)} of {groups.names[k]} "
                "on average.",
                f"One {groups.word} may be enough for both: compare with a fit with one "
                f"{groups.word} fewer",
            )
        )
    return notes


def _closest(groups: Groups, seen: GroupSums) -> tuple[int, int, float] | None:
    """The pair of groups that is confused most, if that is much."""
    if not groups.soft or len(groups.shown) < 2:
        return None
    part = seen.overlap[np.ix_(groups.shown, groups.shown)].copy()
    np.fill_diagonal(part, 0.0)
    part = np.nan_to_num(part)
    j, k = np.unravel_index(int(part.argmax()), part.shape)
    found = float(part[j, k])
    return (int(groups.shown[j]), int(groups.shown[k]), found) if found > 0.2 else None
