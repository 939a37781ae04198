"""Reports of one table as files: Markdown, CSV and a picture, each complete or absent.

The command line calls ``write_report``.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from papers.frame.picture import draw_report
from papers.frame.run import Report
from papers.frame.table import Cell, Column, Table, Verdict
from papers.frame.writing import write_whole

# ------------------------------------------------ Markdown of one table

# of a cell for which the table has no sentence of its own; of one in a run of few rows
UNKNOWN = "the cause is not known."
SHORT = "the quick variant has fewer rows, restarts or repeats; the whole run is to judge by."


def format_report(report: Report) -> str:
    """The whole report: what was run, the table, its checks, and with what it was made."""
    experiment, table = report.experiment, report.table
    parts = [
        f"# {experiment.title}",
        f"`{report.stem}`: {report.origin}." + (" **Quick variant.**" if report.quick else ""),
        f"{experiment.text.reference}.",
        experiment.protocol,
        format_grid(["", *(column.heading for column in table.columns)], list(_list_rows(table))),
        "Ours is the mean over repeats and, after ±, their standard deviation; the published value "
        "follows in brackets, with its own spread if the source prints one, then the verdict, by "
        "the rule below.",
        format_grid(
            ["measure", "reproduced if", "cells", "what it is"], list(_list_measures(table))
        ),
        *format_section("What differs", list(list_reasons(report))),
        *format_section(
            "Checks", [f"{_format_holds(c.holds)}: {c.claim} ({c.detail})" for c in table.checks]
        ),
        *format_section("Notes", table.notes),
        *format_section(
            "Data", [f"`{f.name}`: {f.content}. From {f.origin}." for f in experiment.data]
        ),
        *format_section("Made with", list(_list_made_with(report))),
        f"![ours against published]({report.stem}.png)",
    ]
    return "\n\n".join(parts) + "\n"


def _list_rows(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        cells = [(column, table.cell(row, column.name)) for column in table.columns]
        yield [row, *(format_cell(column, cell) for column, cell in cells)]


def count_verdicts(table: Table) -> Counter[Verdict]:
    """Cells of all columns by verdict."""
    return sum((table.verdicts(column) for column in table.columns), Counter())


def format_cell(column: Column, cell: Cell | None) -> str:
    """Ours with its spread, the published value in brackets, the verdict if there is one."""
    if cell is None:
        return ""
    text = _format_number(cell.ours, column.form)
    if len(cell.values) > 1:
        text += f" ± {_format_number(cell.spread, '.1g')}"
    if cell.published is not None:
        theirs = _format_number(cell.published, column.form)
        if cell.published_spread is not None:
            theirs += f" ± {_format_number(cell.published_spread, column.form)}"
        text += f" ({theirs})"
    verdict = column.verdict(cell)
    return text if verdict is Verdict.open else f"{text} {verdict}"


def _format_number(value: float, form: str) -> str:
    return "0" if value == 0 else format(value, form)


def _list_measures(table: Table) -> Iterator[list[str]]:
    for column in table.columns:
        yield [column.name, column.rule(), table.judged(column) or "-", column.meaning]


def list_reasons(report: Report) -> Iterator[str]:
    """Sentences on the cells that differ, each once, with the cells it is about."""
    about: dict[str, list[str]] = {}
    for cell in report.table.differences:
        why = cell.why or (SHORT if report.quick else UNKNOWN)
        place = f"{cell.row} / {cell.column} {cell.ours:.4g} ({cell.published:.4g})"
        about.setdefault(why, []).append(place)
    for why, places in about.items():
        yield f"{'; '.join(places)}: {why}"


def _list_made_with(report: Report) -> Iterator[str]:
    yield f"`{report.command}`"
    yield f"seed {report.seed}; {report.seconds:.1f} s; {report.date}"
    yield report.made_with
    for name, value in report.table.settings:
        yield f"{name}: {value}"


def _format_holds(holds: bool) -> str:
    return "holds" if holds else "**does not hold**"


def format_section(title: str, items: Sequence[str]) -> list[str]:
    """A heading and a list, or nothing at all."""
    return [f"## {title}", "\n".join(f"- {item}" for item in items)] if items else []


def format_grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns line up."""
    cells = [[text.replace("|", "\\|") for text in row] for row in [head, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "| " + " | ".join("-" * max(3, w) for w in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


# ------------------------------------------------ CSV of one table
# A line for each cell, with full precision, for programs.

FIELDS = (
    "experiment", "row", "column", "unit", "ours", "spread", "repeats", "published",
    "published_spread", "difference", "rule", "verdict", "why", "seed", "quick", "seconds", "date",
    "versions",
)  # fmt: skip


def format_csv(report: Report) -> str:
    """The cells; an entry that does not exist (a spread of one repeat, say) is empty."""
    text = StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_list_lines(report))
    return text.getvalue()


def _list_lines(report: Report) -> Iterator[dict[str, Any]]:
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


# ------------------------------------------------ files


def write_report(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write a report to ``folder``, replacing an earlier one; return the paths.

    All three are made before the first is written, so that a failure leaves none behind.
    """
    image = BytesIO()
    draw_report(report).savefig(image, format="png", dpi=110)
    contents = {
        "md": format_report(report).encode(),
        "csv": format_csv(report).encode(),
        "png": image.getvalue(),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(write_whole(folder / f"{report.stem}.{suffix}", content))
    return tuple(paths)
