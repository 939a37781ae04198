"""Section: eigenvalues of kernel models, canonical correlations of two views."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.report.charts.bars import bar_chart
from mixfold.report.formatting import number, share
from mixfold.report.markup import Html, join
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import facts, table

_SHOWN = 30


def axes(subject: Subject) -> Section | None:
    """What the axes of a kernel or of a projection explain."""
    for attribute, words, lead in (
        (
            "eigenvalues_",
            "eigenvalue",
            "The larger an eigenvalue, the more of the rows its axis shows.",
        ),
        ("correlations_", "correlation", "How closely the scores of the two sides go together."),
    ):
        values = np.asarray(getattr(subject.model, attribute, ()), float)
        if values.ndim == 1 and values.size:
            body = join([facts(_kernel(subject.model)), *_pictures(subject.model, values, words)])
            return Section("axes", "Axes", lead, body)
    return None


def _pictures(model: Any, values: Any, words: str) -> list[Html]:
    shown = values[:_SHOWN]
    head, cells = ["axis", words], [[str(j + 1) for j in range(len(shown))], _numbers(shown)]
    for attribute, label in (
        ("explained_variance_ratio_", "explains"),
        ("explained_output_ratio_", "of the target"),
    ):
        ratio = getattr(model, attribute, None)
        if ratio is not None and len(ratio) == len(values):
            head.append(label)
            cells.append([share(float(v)) for v in ratio[:_SHOWN]])
    rows = [list(row) for row in zip(*cells, strict=True)]
    more = f", the first {_SHOWN} of {len(values)}" if len(values) > _SHOWN else ""
    found = [table(head, rows, f"Axes by {words}{more}")]
    label = f"The {words} of each axis"
    return [bar_chart(shown, label, "axis", words), *found] if len(shown) > 1 else found


def _numbers(values: Any) -> list[str]:
    return [number(v, 4) for v in values]


def _kernel(model: Any) -> list[tuple[str, str]]:
    """The kernel and its settings, as they were used."""
    found = [("kernel", str(model.kernel))] if hasattr(model, "kernel") else []
    for name in ("gamma_", "beta_"):
        value = getattr(model, name, None)
        if value is not None and np.ndim(value) == 0:
            found.append((name.rstrip("_"), number(value, 4)))
    return found
