"""Section: the settings that a search compared, as a curve and a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.search.results import CRITERIA, note
from mixfold.report.charts.lines import Curve, line_chart
from mixfold.report.formatting import count, number, plural
from mixfold.report.markup import Html, join, tag
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import table

_SHOWN = 25
_NAMES = {
    "bic": "BIC",
    "aic": "AIC",
    "icl": "ICL",
    "held-out": "held-out log density per row",
    "bound": "bound on the log evidence",
}


def search(subject: Subject) -> Section | None:
    """The comparison of a search over numbers of components and kinds."""
    asked = subject.asked
    if not hasattr(asked, "results_") or not hasattr(asked, "best_index_"):
        return None
    results, best = asked.results_, int(asked.best_index_)
    column, sign = CRITERIA[asked.criterion]
    name = _NAMES[asked.criterion]
    values = np.asarray(results[column], float)
    lead = (
        f"{plural(len(values), 'setting')} compared by {name} ({'higher' if sign < 0 else 'lower'} "
        f"is better). The best has {plural(int(results['n_components'][best]), 'component')}."
    )
    body = join([_curve(results, values, best, name), _table(results, values, best, name)])
    return Section("search", "How many components", lead, body, tuple(_notes(asked, results, best)))


def _curve(results: Any, values: Array, best: int, name: str) -> Html:
    sizes = np.asarray(results["n_components"], float)
    apart = np.asarray(results["degenerate"], dtype=bool)
    curves = []
    for label in dict.fromkeys(results["label"]):
        own = np.array([other == label for other in results["label"]])
        order = np.flatnonzero(own)[np.argsort(sizes[own], kind="stable")]
        curves.append(Curve(str(label), sizes[order], values[order], apart[order]))
    ring = (sizes[best], values[best])
    words = f"{name} by number of components"
    picture = line_chart(curves, words, "number of components", name, ring=ring)
    told = "The ring is the choice" + (
        "; crosses: a variance at its floor." if apart.any() else "."
    )
    return join([picture, tag("p", told, class_="hint")])


def _table(results: Any, values: Array, best: int, name: str) -> Html:
    order = np.argsort(np.nan_to_num(results["delta"], nan=np.inf), kind="stable")[:_SHOWN]
    rows = [
        [
            f"{results['label'][i]}{' (best)' if i == best else ''}",
            count(results["n_components"][i]),
            number(values[i], 7),
            number(results["delta"][i], 4),
            number(results["n_parameters"][i], 6),
            note(results, i) or "fine",
        ]
        for i in order
    ]
    head = ["model", "components", name, "behind the best", "parameters", "note"]
    more = f", the best {_SHOWN} of {len(values)}" if len(values) > _SHOWN else ""
    return table(head, rows, f"Settings, best first{more}", text=(0, 5))


def _notes(asked: Any, results: Any, best: int) -> list[Note]:
    """A choice at the edge of what was tried may not be the best there is."""
    sizes = np.asarray(results["n_components"])
    own = np.array([label == results["label"][best] for label in results["label"]])
    # what the model says itself stands in the section about its fit
    said = {event.message for event in getattr(asked.best_estimator_, "events_", ())}
    notes = [Note(f"{words}.") for words in getattr(asked, "notes_", ()) if words not in said]
    if own.sum() > 1 and sizes[best] == sizes[own].max():
        notes.append(
            Note(
                f"The best number of components, {sizes[best]}, is the largest that was tried.",
                "Try more",
            )
        )
    failed = sum(bool(error) for error in results["error"])
    if failed:
        notes.append(Note(f"{plural(failed, 'setting')} could not be fitted.", "See the table"))
    return notes
