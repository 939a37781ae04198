"""Section: what the page does not show, why, and how to get it."""

from __future__ import annotations

from mixfold.report.capabilities import has_target
from mixfold.report.formatting import class_names, count, join_words
from mixfold.report.markup import Html, tag
from mixfold.report.section import Section
from mixfold.report.subject import Subject

_ROWS = (
    "No rows were given, so this page is about the model alone. Left out: the map of the rows, "
    "probabilities of groups, the oddest rows, reconstructions, missing entries. To see them, give "
    "the rows:"
)


def left_out(subject: Subject) -> Section | None:
    """Told rather than passed over."""
    if subject.look is None:
        code = "estimator.report(X)\nmixfold report MODEL DATA --out report.html"
        body = tag("pre", tag("code", code), tabindex=0)
        return Section("left-out", "What is left out", _ROWS, body)
    items = [*_list_refusals(subject), *_sample(subject)]
    if has_target(subject.model) and subject.look.targets is None:
        items.append(tag("li", "Quality of predictions: needs y (--target on the command line)."))
    if subject.look.classes is not None and not subject.look.classes.weight:
        known = join_words(class_names(subject.model.classes_))
        items.append(tag("li", f"Quality of predictions: no given label is a class of the model "
                               f"({known})."))  # fmt: skip
    if not items:
        return None
    return Section("left-out", "What is left out", "", tag("ul", *items))


def _list_refusals(subject: Subject) -> list[Html]:
    assert subject.look is not None
    return [
        tag("li", f"The model could not give {what}: {reason}")
        for what, reason in subject.look.refused.items()
    ]


def _sample(subject: Subject) -> list[Html]:
    assert subject.look is not None
    shown, total = min(len(subject.look.sampled), subject.max_points), subject.look.n_rows
    if shown >= total:
        return []
    words = (
        f"The map shows a sample of {count(shown)} of {count(total)} {subject.unit}s. Histograms, "
        "intervals and the trial with hidden entries also use a sample. Sizes, means, the oddest "
        f"{subject.unit}s and scores use all {subject.unit}s."
    )
    return [tag("li", words)]
