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
    rows = [
        [f"output {j}", share(float(explained[j])), number(error[j])]
        for j in range(min(len(explained), _SHOWN))
    ]
    caption = "How well each output is predicted"
    body = table(["", "R²: variance explained", "typical error"], rows, caption)
    lead = (
        "Predictions against the outputs that were given; new rows will do worse than those fitted."
    )
    return Section("predictions", "Predicted numbers", lead, body)
