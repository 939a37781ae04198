"""Section: the settings that a search compared, as a curve and a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.search.results import CRITERIA, WITH_ERRORS, describe_evidence, note
from mixfold.report.charts.lines import Curve, line_chart
from mixfold.report.formatting import NOTHING, count, number, plural
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
    "log-loss": "held-out log loss per row",
    "squared-error": "held-out squared error",
    "gap": "gap statistic",
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
        f"is better). Best: {_setting(results, best)}.{_next(asked, results, best)}"
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
    told = "Ring: the best setting." + (
        " Crosses: fits with a variance at its floor, which cannot be the best."
        if apart.any() and not apart[best]
        else ""
    )
    return join([picture, tag("p", told, class_="hint")])


def _setting(results: Any, i: int) -> str:
    size = plural(int(results["n_components"][i]), "component")
    return f"{results['label'][i]} with {size}"


def _next(asked: Any, results: Any, best: int) -> str:
    """The second best, and by how much it is worse."""
    order = np.argsort(np.nan_to_num(results["delta"], nan=np.inf), kind="stable")
    others = [int(i) for i in order if i != best and np.isfinite(results["delta"][i])]
    if not others:
        return ""
    gap = float(results["delta"][others[0]])
    worth = f" ({describe_evidence(gap)} evidence)" if asked.criterion == "bic" else ""
    return f" Next: {_setting(results, others[0])}, worse by {number(gap)}{worth}."


def _table(results: Any, values: Array, best: int, name: str) -> Html:
    order = np.argsort(np.nan_to_num(results["delta"], nan=np.inf), kind="stable")[:_SHOWN]
    tested = bool(np.isfinite(results["p_value"]).any())
    criterion = next(key for key, words in _NAMES.items() if words == name)
    errors, with_errors = f"{CRITERIA[criterion][0]}_se", criterion in WITH_ERRORS
    rows = []
    for i in order:
        error = f" \u00b1 {number(results[errors][i], 2)}" if with_errors else ""
        p = results["p_value"][i]
        rows.append([
            f"{results['label'][i]}{' (best)' if i == best else ''}",
            count(results["n_components"][i]),
            f"{number(values[i], 7)}{error}",
            number(results["delta"][i], 4),
            number(results["n_parameters"][i], 6),
            *([number(p) if np.isfinite(p) else NOTHING] if tested else []),
            note(results, i),
        ])  # fmt: skip
    error = " \u00b1 standard error" if with_errors else ""
    head = ["model", "components", f"{name}{error}", "difference from the best", "parameters"]
    head += ["p-value against the next smaller number"] if tested else []
    more = f", the best {_SHOWN} of {len(values)}" if len(values) > _SHOWN else ""
    caption = f"Settings, best first{more}"
    found = table([*head, "note"], rows, caption, text=(0, len(head)))
    if not tested:
        return found
    words = (
        "p-value: bootstrap likelihood-ratio test of so many components against the next smaller "
        "number tried."
    )
    return join([found, tag("p", words, class_="hint")])


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
                "Try larger numbers",
            )
        )
    column, sign = CRITERIA[asked.criterion]
    better = sign * (np.asarray(results[column], float) - float(results[column][best])) < 0
    floored = int((better & np.asarray(results["degenerate"], dtype=bool)).sum())
    if floored and asked.criterion != "gap":
        notes.append(
            Note(
                f"{plural(floored, 'setting')} with a better {_NAMES[asked.criterion]} could not "
                "be the best: a variance is at its floor.",
                "Look for columns with many equal entries, such as zeros, and model these apart",
            )
        )
    failed = sum(bool(error) for error in results["error"])
    if failed:
        notes.append(Note(f"{plural(failed, 'setting')} could not be fitted.",
                          "The table of settings says why"))  # fmt: skip
    return notes
