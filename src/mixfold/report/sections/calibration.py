"""Section: confusion table and calibration of predicted classes."""

from __future__ import annotations

import numpy as np

from mixfold.report.charts.reliability import reliability_chart
from mixfold.report.formatting import class_names, count, number, share
from mixfold.report.markup import Html, join, tag
from mixfold.report.rows.classes import BINS, ClassSums
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import facts, heat_table, table

_CLASSES = 30
_MUCH = 0.1


def calibration(subject: Subject) -> Section | None:
    """Accuracy, confusion and reliability; only if the true classes were given."""
    look = subject.look
    if look is None or look.classes is None or look.targets is None or not look.classes.weight:
        return None
    sums, names = look.classes, class_names(look.targets.classes)
    soft = hasattr(subject.model, "predict_proba")
    lead = (
        f"{share(sums.accuracy)} of {_rows(sums, look.is_weighted)} are classified correctly. "
        "If the model was fitted to these rows, expect less for new rows."
    )
    parts = [facts(_numbers(sums, soft)), _confusion(sums, names, look.is_weighted)]
    if soft:
        parts.append(_reliability(sums, look.is_weighted))
    notes = (*_useless(sums), *(_notes(sums) if soft else ()))
    return Section("classes", "Predicted classes", lead, join(parts), notes)


def _rows(sums: ClassSums, weighted: bool) -> str:
    return (
        f"the rows by weight ({count(sums.weight)})" if weighted else f"{count(sums.weight)} rows"
    )


def _numbers(sums: ClassSums, soft: bool) -> list[tuple[str, str]]:
    found = [("accuracy", share(sums.accuracy))]
    if soft:
        found += [
            ("log loss", number(sums.log_loss / sums.weight, 4)),
            ("Brier score", number(sums.brier / sums.weight, 4)),
            ("calibration error", share(sums.calibration_error)),
        ]
    if sums.unknown:
        found.append(("rows of unknown class (left out)", count(sums.unknown)))
    return found


def _confusion(sums: ClassSums, names: list[str], weighted: bool) -> Html:
    shown = names[:_CLASSES]
    counts = sums.confusion[:_CLASSES, :_CLASSES]
    part = counts / np.maximum(sums.confusion[:_CLASSES].sum(axis=1, keepdims=True), 1e-300)
    texts = [[count(v) for v in row] for row in counts]
    more = f", the first {_CLASSES} of {len(names)} classes" if len(names) > _CLASSES else ""
    rows = "Weight of the rows" if weighted else "Rows"
    caption = f"{rows} of each true class (line) by predicted class (column){more}"
    return heat_table("true class", shown, shown, part, texts, caption, most=1.0)


def _reliability(sums: ClassSums, weighted: bool) -> Html:
    weight, confidence, correct = sums.bins
    word = "weight" if weighted else "rows"
    with np.errstate(invalid="ignore", divide="ignore"):
        picture = reliability_chart(confidence / weight, correct / weight, weight, word)
    rows = [
        [
            f"{i / BINS:.0%} to {(i + 1) / BINS:.0%}",
            count(weight[i]),
            share(confidence[i] / weight[i]),
            share(correct[i] / weight[i]),
        ]
        for i in range(BINS)
        if weight[i] > 0
    ]
    head = ["probability", word, "mean probability", "classified correctly"]
    hint = (
        "On the dashed diagonal, predicted classes are correct as often as their probability says. "
        "Below it, the probabilities are too high. The number at a point counts its rows."
    )
    return join(
        [
            tag("h3", "Calibration of the probabilities"),
            picture,
            tag("p", hint, class_="hint"),
            table(head, rows, "Rows by the probability of the predicted class"),
        ]
    )


def _useless(sums: ClassSums) -> tuple[Note, ...]:
    common = float(sums.confusion.sum(axis=1).max() / sums.weight)
    if sums.accuracy > common or len(sums.confusion) < 2:
        return ()
    words = f"Always predicting the most common class would be correct as often ({share(common)})."
    return (Note(words, "The model is of no use for these classes; fit another one"),)


def _notes(sums: ClassSums) -> tuple[Note, ...]:
    gap = float((sums.bins[1] - sums.bins[2]).sum() / sums.weight)
    if sums.calibration_error < _MUCH:
        return ()
    how = "high" if gap > 0 else "low"
    words = (
        f"Probabilities of predicted classes are off by {share(sums.calibration_error)} on average"
    )
    return (
        Note(f"{words}, mostly too {how}.", "Recalibrate them with scikit-learn's "
             "CalibratedClassifierCV on rows that the fit has not seen"),
    )  # fmt: skip
