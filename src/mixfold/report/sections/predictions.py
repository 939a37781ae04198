"""Section: predicted numbers against true ones."""

from __future__ import annotations

from mixfold.report.formatting import number, share
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import table

_SHOWN = 40


def predictions(subject: Subject) -> Section | None:
    """R^2 and error of each output, if the true ones were given."""
    look = subject.look
    if look is None or look.numbers is None:
        return None
    explained, error = look.numbers.explained, look.numbers.root_mean_square
    spread = look.numbers.deviation
    rows = [
        [_name(j, len(explained)), share(float(explained[j])), number(error[j]), number(spread[j])]
        for j in range(min(len(explained), _SHOWN))
    ]
    more = f", the first {_SHOWN} of {len(explained)}" if len(explained) > _SHOWN else ""
    caption = f"How well the target is predicted{more}"
    head = ["", "R²", "root mean square error", "sd of the true values"]
    body = table(head, rows, caption)
    lead = (
        "Predictions against the true values. If the model was fitted to these rows, expect larger "
        "errors for new rows."
    )
    return Section("predictions", "Predicted numbers", lead, body)


def _name(j: int, outputs: int) -> str:
    return "target" if outputs == 1 else f"target {j}"
