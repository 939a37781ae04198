"""Section at the top of the page: model, data, notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixfold.report.capabilities import axis_word, has_target
from mixfold.report.formatting import class_names, count, join_words, plural, share, short
from mixfold.report.markup import Html, tag
from mixfold.report.section import Note
from mixfold.report.sections.components import training_weight
from mixfold.report.sections.convergence import describe_end
from mixfold.report.sections.settings import parameters
from mixfold.report.subject import Subject
from mixfold.report.tables import facts

# characters of a setting that there is room for
_LONG = 60


def glance(subject: Subject, notes: Sequence[Note]) -> Html:
    """The head of the page."""
    return tag(
        "header",
        tag("p", "mixfold report", class_="kicker"),
        tag("h1", title(subject)),
        tag("p", summary(subject, notes), class_="summary"),
        _notes(notes),
        facts(_facts(subject)),
    )


def title(subject: Subject) -> str:
    """The kind of model and how many parts it has."""
    found = _parts(subject)
    return f"{subject.kind}: {found}" if found else subject.kind


def _parts(subject: Subject) -> str:
    groups = subject.groups
    if groups is not None and (len(groups.names) > 1 or not hasattr(subject.model, "components_")):
        return plural(len(groups.shown), groups.word, groups.several)
    model = subject.model
    size = getattr(model, "n_components_", getattr(model, "n_components", None))
    return "" if not isinstance(size, int) else plural(size, *axis_word(model))


def summary(subject: Subject, notes: Sequence[Note]) -> str:
    """A sentence or two that a reader in a hurry may stop after."""
    model = subject.model
    columns = plural(int(model.n_features_in_), *_column_words(subject))
    rows = _rows(subject)
    start = f"{_parts(subject) or 'A model'} for {f'{rows} and ' if rows else ''}{columns}"
    parts = [start, describe_end(model)]
    if subject.look is not None and subject.look.columns.missing.any():
        lacks = subject.look.columns.missing.sum()
        part = lacks / (subject.look.n_rows * max(int(model.n_features_in_), 1))
        parts.append(f"{share(float(part))} of the entries are missing")
    if (
        subject.look is not None
        and subject.look.classes is not None
        and subject.look.classes.weight
    ):
        sums = subject.look.classes
        rows = "" if sums.unknown else f"{count(subject.look.n_rows)} "
        parts.append(
            f"{share(sums.accuracy)} of the {rows}rows of this report are classified correctly"
        )
    serious = sum(note.serious for note in notes)
    parts.append(plural(serious, "warning") if serious else "no warnings")
    return "; ".join(part for part in parts if part) + "."


def _column_words(subject: Subject) -> tuple[str, str]:
    return ("different word", "different words") if subject.has_topics else ("column", "columns")


def _rows(subject: Subject) -> str:
    total = training_weight(subject.model)
    look = subject.look
    if total is not None and look is not None and look.is_weighted:
        same = abs(look.columns.weight - total) < 1e-6 * total
        rows = plural(look.n_rows, "row") if same else "rows"
        return f"{rows} of weight {count(total)}"
    if total is not None:
        whole = abs(total - round(total)) < 1e-6
        return plural(round(total), "row") if whole else f"rows of weight {count(total)}"
    if hasattr(subject.model, "class_weight_"):
        return plural(float(subject.model.class_weight_.sum()), "row")
    if hasattr(subject.model, "n_documents_"):
        return plural(int(subject.model.n_documents_), "document")
    return "" if subject.look is None else plural(subject.look.n_rows, subject.unit)


def _notes(notes: Sequence[Note]) -> Html | None:
    if not notes:
        return None
    items = [
        tag(
            "li",
            tag("strong", "Warning: " if note.serious else "Note: "),
            note.text,
            f" {note.remedy}." if note.remedy else None,
            class_="serious" if note.serious else "aside",
        )
        for note in sorted(notes, key=lambda n: not n.serious)
    ]
    return tag("ul", *items, class_="notes", aria_label="Warnings and notes")


def _facts(subject: Subject) -> list[tuple[str, Html | str]]:
    model = subject.model
    found: list[tuple[str, Html | str]] = []
    if subject.asked is not model:
        found.append(("chosen by", type(subject.asked).__name__))
    found.append((_column_words(subject)[1], count(int(model.n_features_in_))))
    if subject.look is not None:
        found.append((f"{subject.unit}s in this report", count(subject.look.n_rows)))
        if subject.look.is_weighted:
            found.append(("total weight", count(subject.look.columns.weight)))
    if has_target(model):
        found.append(_target(model))
    changed = [(n, v) for n, v in parameters(model)[0] if n != "random_state"]
    if changed:
        found.append(("settings", ", ".join(_setting(n, v) for n, v in changed)))
    seed = model.get_params(deep=False).get("random_state")
    found.append(("seed", "none" if seed is None else str(seed)))
    found += list(subject.origin.items())
    found.append(("report made", subject.made.strftime("%Y-%m-%d %H:%M")))
    return found


def _target(model: Any) -> tuple[str, str]:
    """What the model predicts."""
    classes = getattr(model, "classes_", None)
    if classes is None or np.ndim(classes) != 1 or not len(classes):
        return "predicts", "numbers"
    names = [short(name, 24) for name in class_names(classes)]
    return "predicts", f"{plural(len(names), 'class', 'classes')}: {join_words(names)}"


def _setting(name: str, value: str) -> str:
    """A value that is too long for the head stands in the table of settings."""
    return f"{name}={value}" if len(value) <= _LONG else f"{name} (see Settings)"


def contents(titles: Sequence[tuple[str, str]]) -> Html:
    """Links to the sections."""
    links = [tag("li", tag("a", name, href=f"#{key}")) for key, name in titles]
    return tag("nav", tag("ul", *links), aria_label="Contents")
