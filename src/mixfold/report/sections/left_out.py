"""Section: what the page does not show, why, and how to get it."""

from __future__ import annotations

from mixfold.report.capabilities import has_target
from mixfold.report.formatting import class_names, count, join_words
from mixfold.report.markup import Html, tag
from mixfold.report.section import Section
from mixfold.report.subject import Subject

_ROWS = (
    "No data were given, so this page is about the model alone. Left out: the map of the "
    "rows, how surely rows belong to groups, the oddest rows, reconstructions, missing entries. "
    "Give the rows to see them:"
)


def left_out(subject: Subject) -> Section | None:
    """Told rather than passed over."""
    if subject.look is None:
        code = "estimator.report(X)\nmixfold report MODEL DATA --out report.html"
        body = tag("pre", tag("code", code), tabindex=0)
        return Section("left-out", "What is left out", _ROWS, body)
    items = [*_list_refusals(subject), *_sample(subject)]
    if has_target(subject.model) and subject.look.targets is None:
        items.append(
            tag("li", "How well the target is predicted: give y (--target on the command line).")
        )
    if subject.look.classes is not None and not subject.look.classes.weight:
        known = join_words(class_names(subject.model.classes_))
        items.append(tag("li", f"No label that was given is a class of the model ({known})."))
    if not items:
        return None
    return Section("left-out", "What is left out", "", tag("ul", *items))


def _list_refusals(subject: Subject) -> list[Html]:
    assert subject.look is not None
    return [
        tag("li", f"The model could not be asked for {what}: {reason}")
        for what, reason in subject.look.refused.items()
    ]


def _sample(subject: Subject) -> list[Html]:
    assert subject.look is not None
    shown, total = min(len(subject.look.sampled), subject.max_points), subject.look.n_rows
    if shown >= total:
        return []
    words = (
        f"The map shows a sample of {count(shown)} of {count(total)} {subject.unit}s; histograms, "
        "intervals and what is tried on hidden entries rest on a sample, too. Sizes, means, the "
        f"oddest {subject.unit}s and scores are of all of them."
    )
    return [tag("li", words)]
