"""Section: what the columns of a table were taken for, and what was set aside."""

from __future__ import annotations

from mixfold.report.formatting import join_words, number, plural, share, short
from mixfold.report.markup import join, tag
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import table
from mixfold.schema import Column

_MOST = 200


def columns(subject: Subject) -> Section | None:
    """A line for each column of the table."""
    schema = subject.schema
    if schema is None:
        return None
    used = {column.name: j for j, column in enumerate(schema.used)}
    rows = []
    for column in schema.columns[:_MOST]:
        j = used.get(column.name)
        rows.append([
            short(column.name), column.describe() if j is not None else "set aside: "
            + column.describe(), _holds(column), _missing(subject, j), column.reason,
        ])  # fmt: skip
    hidden = len(schema.columns) - len(rows)
    caption = "Columns of the table" + (f", the first {_MOST}" if hidden > 0 else "")
    aside = [short(column.name, 30) for column in schema.set_aside]
    lead = f"{plural(len(used), 'column')} of {len(schema.columns)} were modelled."
    if aside:
        lead += f" Set aside, and not lost: {join_words(aside, 8)}."
    remarks = [f"{column.name}: {remark}" for column in schema for remark in column.remarks]
    notes = [tag("li", text) for text in (*schema.notes, *remarks)[:_MOST]]
    head = ["column", "taken for", "holds", "missing", "because"]
    body = table(head, rows, caption, text=(0, 1, 2, 4))
    return Section(
        "columns", "Columns of the table", lead, join([body, tag("ul", *notes) if notes else None])
    )


def _holds(column: Column) -> str:
    """Its levels, or from where to where it goes."""
    if column.levels:
        return join_words([short(level, 24) for level in column.levels], 6)
    if column.low is None or column.high is None:
        return ""
    if column.kind == "date":
        from mixfold.schema.dates import from_days

        return f"{from_days(column.low, True):%Y-%m-%d} to {from_days(column.high, True):%Y-%m-%d}"
    style = column.numbers
    ends = [number(column.low), number(column.high)]
    if style is not None:
        ends = [f"{style.prefix}{end}{style.suffix}" for end in ends]
    return " to ".join(ends)


def _missing(subject: Subject, j: int | None) -> str:
    look = subject.look
    if look is None or j is None or not look.n_rows:
        return ""
    return share(float(look.columns.missing[j]) / look.n_rows)
