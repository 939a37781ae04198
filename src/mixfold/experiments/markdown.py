"""A report as Markdown, readable as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mixfold.experiments.frame import Report
from mixfold.experiments.table import Cell, Column, Table, Verdict

# of a difference that nobody has looked into; of a run that could not but differ
UNKNOWN = "the cause is not known."
SHORT = "the quick variant has fewer rows, restarts or repeats; the full run is to judge by."


def markdown(report: Report) -> str:
    """The whole report: what was run, the table, its checks, and with what it was made."""
    experiment, table = report.experiment, report.table
    parts = [
        f"# {experiment.title}",
        f"`{report.stem}`: {report.origin}." + (" **Quick variant.**" if report.quick else ""),
        experiment.protocol,
        grid(["", *(column.heading for column in table.columns)], list(_rows(table))),
        "Ours is the mean over repeats and, after ±, their standard deviation; the published value "
        "follows in brackets, with its own spread if the source prints one, then the verdict, by "
        "the rule below.",
        grid(["measure", "reproduced if", "cells", "what it is"], list(_measures(table))),
        *section("What differs", list(reasons(report))),
        *section("Checks", [f"{_holds(c.holds)}: {c.claim} ({c.detail})" for c in table.checks]),
        *section("Notes", table.notes),
        *section("Data", [f"`{f.name}`: {f.content}. From {f.origin}." for f in experiment.data]),
        *section("Made with", list(_made_with(report))),
        f"![ours against published]({report.stem}.png)",
    ]
    return "\n\n".join(parts) + "\n"


def _rows(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        cells = [(column, table.cell(row, column.name)) for column in table.columns]
        yield [row, *(cell_text(column, cell) for column, cell in cells)]


def cell_text(column: Column, cell: Cell | None) -> str:
    """Ours with its spread, the published value in brackets, the verdict if there is one."""
    if cell is None:
        return ""
    text = _number(cell.ours, column.form)
    if len(cell.values) > 1:
        text += f" ± {_number(cell.spread, '.1g')}"
    if cell.published is not None:
        theirs = _number(cell.published, column.form)
        if cell.published_spread is not None:
            theirs += f" ± {_number(cell.published_spread, column.form)}"
        text += f" ({theirs})"
    verdict = column.verdict(cell)
    return text if verdict is Verdict.open else f"{text} {verdict}"


def _number(value: float, form: str) -> str:
    return "0" if value == 0 else format(value, form)


def _measures(table: Table) -> Iterator[list[str]]:
    for column in table.columns:
        yield [column.name, column.rule(), table.judged(column) or "-", column.meaning]


def reasons(report: Report) -> Iterator[str]:
    """Sentences on the cells that differ, each once, with the cells it is about."""
    about: dict[str, list[str]] = {}
    for cell in report.table.differences:
        why = SHORT if report.quick else cell.why or UNKNOWN
        place = f"{cell.row} / {cell.column} {cell.ours:.4g} ({cell.published:.4g})"
        about.setdefault(why, []).append(place)
    for why, places in about.items():
        yield f"{'; '.join(places)}: {why}"


def _made_with(report: Report) -> Iterator[str]:
    yield f"`{report.command}`"
    yield f"seed {report.seed}; {report.seconds:.1f} s; {report.date}"
    yield report.made_with
    for name, value in report.table.settings:
        yield f"{name}: {value}"


def _holds(holds: bool) -> str:
    return "holds" if holds else "**does not hold**"


def section(title: str, items: Sequence[str]) -> list[str]:
    """A heading and a list, or nothing at all."""
    return [f"## {title}", "\n".join(f"- {item}" for item in items)] if items else []


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns line up."""
    cells = [[text.replace("|", "\\|") for text in row] for row in [head, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "| " + " | ".join("-" * max(3, w) for w in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])
