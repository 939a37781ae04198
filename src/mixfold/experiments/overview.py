"""All tables, one after the other, and a page that says how each of them came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mixfold.experiments.experiment import Progress
from mixfold.experiments.frame import Report, reproduce
from mixfold.experiments.markdown import grid, reasons, section
from mixfold.experiments.registry import Entry
from mixfold.experiments.table import Table, Verdict

# (name of the table, its progress), asked before each table
Watch = Callable[[str], Progress]
STEM = "reproduced"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one table: a report, or why there is none.

    ``failed`` tells a table that broke from one whose data are not there.
    """

    name: str
    summary: str
    report: Report | None = None
    reason: str = ""
    failed: bool = False


def reproduce_all(
    entries: Mapping[str, Entry], folder: Path | None, *, quick: bool, seed: int, watch: Watch
) -> Iterator[Outcome]:
    """Run every table; one without data is passed over, one that breaks does not stop the rest."""
    for name, entry in entries.items():
        try:
            report = reproduce(entry.load(), folder, quick=quick, seed=seed, progress=watch(name))
        except FileNotFoundError as error:
            yield Outcome(name, entry.summary, reason=str(error))
        except Exception as error:
            yield Outcome(
                name, entry.summary, reason=f"{type(error).__name__}: {error}", failed=True
            )
        else:
            yield Outcome(name, entry.summary, report)


def verdicts(table: Table) -> Counter[Verdict]:
    """Cells of all columns by verdict."""
    return sum((table.verdicts(column) for column in table.columns), Counter())


def overview(outcomes: Sequence[Outcome]) -> str:
    """The page, as Markdown: a line for each table, then what differs and what does not hold."""
    made = [outcome.report for outcome in outcomes if outcome.report is not None]
    parts = [
        "# Published tables, run again",
        _opening(made, len(outcomes)),
        grid(["table", "of", "cells reproduced", "better", "differ", "claims that hold", "time"],
             [_line(outcome) for outcome in outcomes]),
        "A cell is judged if the source prints a number for it and it is known how near ours can "
        "be expected; the rule is on the page of the table. Claims are sentences, of the source or "
        "of ours, about the table as a whole.",
        *section("What differs", [line for report in made for line in _differences(report)]),
        *section("Claims that do not hold", [line for report in made for line in _broken(report)]),
        *section("Not run", [_absent(outcome) for outcome in outcomes if outcome.report is None]),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _opening(made: Sequence[Report], total: int) -> str:
    if not made:
        return f"None of {total} tables could be run; the reasons are below."
    quick = " in its quick variant" if made[0].quick else ""
    seconds = sum(report.seconds for report in made)
    return (
        f"{len(made)} of {total} tables, each{quick}, {made[0].date}, seed {made[0].seed}, "
        f"{_time(seconds)} in all. Made with {made[0].made_with}."
    )


def _line(outcome: Outcome) -> list[str]:
    if outcome.report is None:
        return [f"`{outcome.name}`", outcome.summary, "failed" if outcome.failed else "not run",
                "", "", "", ""]  # fmt: skip
    report, counts = outcome.report, verdicts(outcome.report.table)
    judged = sum(counts[v] for v in (Verdict.reproduced, Verdict.better, Verdict.differs))
    checks = report.table.checks
    return [
        f"[`{outcome.name}`]({report.stem}.md)",
        outcome.summary,
        f"{counts[Verdict.reproduced]} of {judged}" if judged else "-",
        str(counts[Verdict.better] or ""),
        str(counts[Verdict.differs] or ""),
        f"{sum(check.holds for check in checks)} of {len(checks)}" if checks else "-",
        _time(report.seconds),
    ]


def _differences(report: Report) -> Iterator[str]:
    for reason in reasons(report):
        yield f"`{report.experiment.name}`, {reason}"


def _broken(report: Report) -> Iterator[str]:
    for check in report.table.checks:
        if not check.holds:
            yield f"`{report.experiment.name}`: {check.claim} ({check.detail})"


def _absent(outcome: Outcome) -> str:
    return f"`{outcome.name}`: {outcome.reason.splitlines()[0] if outcome.reason else ''}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
