"""Section: the objective by step, why the fit ended, events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from mixfold.report.charts.lines import Curve, line_chart
from mixfold.report.formatting import count, join_words, number, plural
from mixfold.report.markup import Html, join, tag
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import facts, table

# what each kind of event means, and what helps
_EVENTS = {
    "floor": (
        "A variance fell to its lower bound (floor)",
        "Use fewer components or fewer parameters; remove duplicated rows, and columns that are "
        "combinations of others",
    ),
    "thin": (
        "Many rows of a component have no spread in some direction (equal, or on a line)",
        "If the equal values are a code such as 0 for none, make them a column of their own",
    ),
    "reseed": (
        "A component lost its rows and was moved to others",
        "Use fewer components, or several starts (n_init)",
    ),
    "drop": ("A component lost its rows and was dropped", "Use fewer components"),
    "empty": ("A component was left without rows", "Use fewer components"),
    "flat": (
        "Documents hardly differ in their topics; the prior of their shares was held fixed",
        "Use fewer topics",
    ),
    "fall": (
        "The objective fell at a step, beyond rounding",
        "Look at the curve; standardise the columns, or use float64",
    ),
    "memory": (
        "What was found of each row got lost between passes, so that the numbers depend on where "
        "and how the fit ran",
        "Give workers more memory, or use executor='threads'",
    ),
    "pruned": ("The number of clusters was learned: empty ones were dropped", ""),
}
# reasons for which a fit ends: in words, and what helps if it was too early
_ENDS = {
    "converged": ("it converged", ""),
    "done": ("all draws were made", ""),
    "max_iter": ("max_iter was reached before it converged", "Raise max_iter, or tol"),
    "time_budget": ("the time budget was used up", "Raise time_budget"),
    "interrupted": ("it was interrupted", "Fit again, or go on with warm_start"),
    "max_epochs": ("all epochs were made", ""),
    "patience": ("rows that were held out gained no more", ""),
    "trouble": ("the weights diverged", "Lower the learning rate"),
}
_SHOWN = 12
# what the diagnostics of chains are called
_SUMMARY = {
    "sd": "deviation",
    "r_hat": "R-hat (near 1: the chains agree)",
    "ess": "effective draws",
}


def convergence(subject: Subject) -> Section | None:
    """The trace, the end and the events of a fit."""
    model = subject.model
    if not any(hasattr(model, n) for n in ("n_iter_", "converged_", "events_", "stop_reason_")):
        return None
    notes = [*_end_notes(model), *_event_notes(model)]
    parts = [_trace(model), _chains(model), facts(_facts(model)), _event_table(model)]
    body = join([part for part in parts if part])
    return Section("fit", "How the fit went", _lead(model), body, tuple(notes))


def describe_end(model: Any) -> str:
    """``converged after 41 iterations``; empty if a model does not say."""
    steps = _steps(model)
    if hasattr(model, "converged_"):
        words = "converged after" if model.converged_ else "did not converge in"
        return f"{words} {steps}" if steps else words.rpartition(" ")[0]
    return f"ended after {steps}" if steps else ""


def _lead(model: Any) -> str:
    steps = _steps(model)
    reason = getattr(model, "stop_reason_", None)
    words = _ENDS.get(str(reason), (f"{reason}", ""))[0] if reason is not None else ""
    if reason == "max_iter" and not hasattr(model, "converged_"):  # as many as were asked for
        words = "all iterations were made"
    if not words:
        words = "it converged" if getattr(model, "converged_", False) else "it did not converge"
    if not steps:
        return f"The fit ended because {words}."
    passes = getattr(model, "n_passes_", None)
    looked = "" if passes is None else f" and {plural(int(passes), 'pass', 'passes')} over the data"
    chosen = "n_init" in model.get_params(deep=False)  # the best of several starts
    more = " Passes that chose the start are not counted." if looked and chosen else ""
    return f"The fit took {steps}{looked}; {words}.{more}"


def _steps(model: Any) -> str:
    """``41 iterations``, or epochs of a model that learns in these (of all phases together)."""
    for attribute, word in (("n_iter_", "iteration"), ("n_epochs_", "epoch")):
        found = getattr(model, attribute, None)
        if isinstance(found, Mapping):
            found = sum(found.values())
        if found is not None:
            return plural(int(np.max(found)), word)
    return ""


def _facts(model: Any) -> list[tuple[str, str]]:
    found = []
    for attribute, words in (
        ("lower_bound_", f"{_objective(model)} at the end"),
        ("evidence_bound_", "bound on the log evidence"),
        ("inertia_", "inertia (sum of squared distances)"),
        ("solver_", "solver"),
    ):
        value = getattr(model, attribute, None)
        if value is not None:
            found.append((words, value if isinstance(value, str) else number(value, 6)))
    return found


def _objective(model: Any) -> str:
    """Topics without clusters of documents are fitted to words, one by one."""
    of_words = hasattr(model, "topics_") and not hasattr(model, "weights_")
    return "objective per word" if of_words else "objective per row"


def _trace(model: Any) -> Html | None:
    for attribute, words in (
        ("lower_bounds_", _objective(model)),
        ("inertias_", "inertia"),
        ("loss_curve_", "loss"),
        ("validation_scores_", "score of rows held out"),
    ):
        given = getattr(model, attribute, ())
        values = np.asarray(() if isinstance(given, Mapping) else given, float)
        if values.ndim == 1 and np.isfinite(values).sum() > 1:
            steps = np.arange(1, len(values) + 1, dtype=float)
            marks = _marks(model, len(values))
            picture = line_chart(
                [Curve(words, steps, values)], f"The {words} at each iteration", "iteration",
                words, marks=marks,
            )  # fmt: skip
            told = "If the curve is flat at its end, more iterations would change little."
            told += " Dashed lines: events, listed below." if marks else ""
            return join([picture, tag("p", told, class_="hint")])
    return None


def _marks(model: Any, n: int) -> list[tuple[float, str]]:
    found: dict[int, str] = {}
    for event in getattr(model, "events_", ()):
        if 0 <= event.iteration < n:
            found.setdefault(int(event.iteration) + 1, event.message)
    return [(float(step), words) for step, words in sorted(found.items())[:40]]


def _chains(model: Any) -> Html | None:
    """Of samplers: the traces of the chains and whether they have mixed."""
    traces = getattr(model, "traces_", None)
    if not traces:
        return None
    name = "n_clusters" if "n_clusters" in traces else next(iter(traces))
    draws = np.asarray(traces[name], float)
    step = max(1, draws.shape[1] // 400)
    x = np.arange(1, draws.shape[1] + 1, step, dtype=float)
    curves = [Curve(f"chain {i}", x, line[::step]) for i, line in enumerate(draws[:8])]
    words = name.replace("_", " ")
    picture = line_chart(curves, f"{words} at each draw", "draw", words)
    found = [(key, value) for key, value in getattr(model, "diagnostics_", {}).items()]
    if not found:
        return picture
    heads = [_SUMMARY.get(name, name) for name in found[0][1]._fields]
    rows = [[key.replace("_", " "), *(number(v) for v in values)] for key, values in found]
    return join([picture, table(["", *heads], rows, "What the chains agree on")])


def _end_notes(model: Any) -> list[Note]:
    reason = str(getattr(model, "stop_reason_", ""))
    words, remedy = _ENDS.get(reason, ("it did not converge", "Raise max_iter"))
    if getattr(model, "converged_", reason != "trouble") or not remedy:
        return []
    return [Note(f"The fit ended early: {words}; the best parameters so far are shown.", remedy)]


def _event_notes(model: Any) -> list[Note]:
    kinds = Counter(event.kind for event in getattr(model, "events_", ()))
    notes = []
    for kind, times in kinds.items():
        own = [e for e in model.events_ if e.kind == kind]
        # what speaks for itself; a floor of no component says which one it is and what helps
        if kind in ("set-aside", "outlier", "order") or (kind == "floor" and own[0].component < 0):
            said = dict.fromkeys(e.message for e in own)
            notes += [Note(f"{words[0].upper()}{words[1:]}.") for words in said]
            continue
        words, remedy = _EVENTS.get(kind, (f"Repaired: {kind}", ""))
        who = sorted({e.component for e in own if e.component >= 0})
        one = "component" if len(who) == 1 else "components"
        of = f" ({one} {join_words([str(k) for k in who])})" if who else ""
        often = "once" if times == 1 else f"{count(times)} times"
        notes.append(Note(f"{words}{of}, {often}.", remedy, serious=kind != "pruned"))
    return notes


def _event_table(model: Any) -> Html | None:
    events = list(getattr(model, "events_", ()))
    if not events:
        return None
    rows = [
        [str(e.iteration) if e.iteration >= 0 else "\u2013", e.message] for e in events[:_SHOWN]
    ]
    hidden = len(events) - len(rows)
    more = f", the first {_SHOWN} of {count(len(events))}" if hidden > 0 else ""
    return table(["iteration", "what happened"], rows, f"Events of the fit{more}", text=(0, 1))
