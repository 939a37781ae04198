"""A report as CSV: a line for each cell, with full precision, for programs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Any

from mixfold.experiments.frame import Report

FIELDS = (
    "experiment", "row", "column", "unit", "ours", "spread", "repeats", "published",
    "published_spread", "difference", "rule", "verdict", "why", "seed", "quick", "seconds", "date",
    "versions",
)  # fmt: skip


def csv_text(report: Report) -> str:
    """The cells; an entry that does not exist (a spread of one repeat, say) is empty."""
    text = StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_lines(report))
    return text.getvalue()


def _lines(report: Report) -> Iterator[dict[str, Any]]:
    columns = {column.name: column for column in report.table.columns}
    common = {
        "experiment": report.experiment.name,
        "seed": report.seed,
        "quick": report.quick,
        "seconds": f"{report.seconds:.3f}",
        "date": report.date,
        "versions": report.made_with,
    }
    for cell in report.table.cells:
        column, known = columns[cell.column], cell.published is not None
        yield common | {
            "row": cell.row,
            "column": cell.column,
            "unit": column.unit,
            "ours": cell.ours,
            "spread": cell.spread if len(cell.values) > 1 else "",
            "repeats": len(cell.values),
            "published": cell.published if known else "",
            "published_spread": "" if cell.published_spread is None else cell.published_spread,
            "difference": cell.ours - cell.published if cell.published is not None else "",
            "rule": column.rule(),
            "verdict": column.verdict(cell).value,
            "why": cell.why,
        }
