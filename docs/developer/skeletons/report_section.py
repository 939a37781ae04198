"""A skeleton for a section of the report: how much more than Poisson counts the columns vary.

A section is one function from a ``Subject`` (the fitted model and what was seen of the rows) to a
``Section``, or to None where it has nothing to say. Copy the file to
``src/mixfold/report/sections/`` and add the function to ``SECTIONS`` in ``report/registry.py``, at
its place on the page.
"""

from __future__ import annotations

import numpy as np

from mixfold.report.formatting import number, short
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table

# A page is read by people: show what fits, the most telling first, and say what was left out.
_COLUMNS = 12


def dispersions(subject: Subject) -> Section | None:
    """Dispersions of counts, of the columns that have the largest."""
    # 1. Ask what the model can say, by its attributes and never by its class.
    found = getattr(subject.model, "dispersions_", None)
    groups = subject.groups
    if found is None or groups is None:
        return None
    # 2. Choose what is shown.
    values = np.asarray(found, float)[groups.shown]
    order = np.argsort(-values.max(axis=0), kind="stable")[:_COLUMNS]
    # 3. Words of a reader: a lead of a sentence or two, numbers as ``words`` writes them. All text
    #    is escaped on the way into the page; markup comes from ``markup.tag`` alone.
    hidden = values.shape[1] - len(order)
    lead = "The variance of a count is its mean plus the dispersion times the squared mean."
    more = f" {hidden} columns of smaller dispersion are left out." if hidden else ""
    body = heat_table(
        "column",
        [short(subject.names[j]) for j in order],
        groups.heads(groups.shown),
        values[:, order].T,
        [[number(v) for v in row] for row in values[:, order].T],
        "Dispersion of each column",
        most=float(values.max()),
    )
    # 4. What a reader should see first of all is a note, with a remedy.
    notes = []
    if values.max() < 0.01:
        notes.append(
            Note(
                "No column varies more than Poisson counts do.", "Fit the family 'poisson'.", False
            )
        )
    return Section("dispersions", "Dispersion of counts", lead + more, body, tuple(notes))
