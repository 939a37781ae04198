"""How tables came out, kept in ``papers/verdicts.json``, and the page that is made from it.

A record is of one table and one variant, quick or whole. ``python -m papers --record`` keeps it as
soon as the table is done, so a run of all tables that was broken off goes on where it stopped: a
table is passed over if its record is of the same code, seed and variant. ``--page`` writes
``docs/reproduced.md`` from the records.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import papers
from papers.frame.registry import Entry
from papers.frame.report import SHORT, count_verdicts, format_grid, format_section
from papers.frame.run import Report
from papers.frame.table import Verdict
from papers.frame.writing import write_whole

ROOT = Path(papers.__file__).resolve().parents[1]
RECORDS, PAGE = ROOT / "papers" / "verdicts.json", ROOT / "docs" / "reproduced.md"
# of each source, section by section; the last cell of a line is written from the records
SOURCES_PAGE = ROOT / "docs" / "sources.md"
# what a table is computed with; commands and pictures do not change its numbers
_CODE = ("src/mixfold", "papers/shared", "papers/frame/table.py", "papers/frame/checks.py")
_NAMES = re.compile(r"`([\w-]+)`")
_NOT_CODE = ("src/mixfold/cli", "src/mixfold/plots")


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell that differs, and what is known of it."""

    cell: str
    ours: float
    published: float
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence about the table as a whole, and whether it holds."""

    claim: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Record:
    """How one table came out in one variant.

    Attributes
    ----------
    table : str
        Name in the list.
    quick : bool
    seed : int
    reproduced, better : int
        Cells with that verdict.
    differs : tuple of Difference
    claims : tuple of Claim
    seconds : float
    date, commit, code : str
        ``commit`` ends in "+" if the tree had changes; ``code`` is a digest of the files that the
        numbers depend on.
    versions : dict
        Of packages, by name.
    """

    table: str
    quick: bool
    seed: int
    reproduced: int
    better: int
    differs: tuple[Difference, ...]
    claims: tuple[Claim, ...]
    seconds: float
    date: str
    commit: str
    code: str
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """Cells that have a verdict."""
        return self.reproduced + self.better + len(self.differs)

    @property
    def holding(self) -> int:
        """Claims that hold."""
        return sum(claim.holds for claim in self.claims)

    def summarise(self) -> str:
        """The verdict on a line.

        Examples
        --------
        >>> one = Claim("it grows", True, "always")
        >>> Record("small", True, 0, 3, 1, (), (one,), 2.0, "", "", "").summarise()
        '3 of 4 cells reproduced, 1 better; 1 of 1 claims hold (quick)'
        """
        parts = []
        if self.judged:
            counts = [f"{self.reproduced} of {self.judged} cells reproduced"]
            counts += [f"{self.better} better"] if self.better else []
            counts += [f"{len(self.differs)} differ"] if self.differs else []
            parts.append(", ".join(counts))
        if self.claims:
            parts.append(f"{self.holding} of {len(self.claims)} claims hold")
        return f"{'; '.join(parts) or 'nothing to judge'} ({self.variant})"

    @property
    def variant(self) -> str:
        return "quick" if self.quick else "whole"


def make_record(report: Report, entry: Entry) -> Record:
    """The record of a table that was just run."""
    table, counts = report.table, count_verdicts(report.table)
    differs = tuple(
        Difference(
            f"{cell.row} / {cell.column}",
            _round(cell.ours),
            cell.published if cell.published is not None else float("nan"),
            cell.why or (SHORT if report.quick else ""),
        )
        for cell in table.differences
    )
    claims = tuple(Claim(c.claim, bool(c.holds), c.detail) for c in table.checks)
    return Record(
        report.experiment.name, report.quick, report.seed, counts[Verdict.reproduced],
        counts[Verdict.better], differs, claims, round(report.seconds, 1), report.date,
        describe_commit(entry), digest_code(entry), dict(report.versions),
    )  # fmt: skip


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def list_code(entry: Entry) -> list[Path]:
    """The files and folders that the numbers of a table depend on."""
    return [ROOT / place for place in (*_CODE, f"papers/{entry.module}.py")]


def digest_code(entry: Entry) -> str:
    """A digest of the files that the numbers of a table depend on."""
    left_out = [ROOT / place for place in _NOT_CODE]
    digest = hashlib.sha256()
    for path in list_code(entry):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if not any(file.is_relative_to(folder) for folder in left_out):
                digest.update(file.relative_to(ROOT).as_posix().encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def describe_commit(entry: Entry) -> str:
    """The commit of the tree, with "+" if that code was changed since; empty without git."""
    try:
        commit = _ask_git("rev-parse", "--short=10", "HEAD")
        changed = _ask_git("status", "--porcelain", "--", *map(str, list_code(entry)))
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + ("+" if changed else "")


def _ask_git(*words: str) -> str:
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


# ------------------------------------------------ the file


def load_records(path: Path = RECORDS) -> tuple[Record, ...]:
    """The records of a file; none if it is not there.

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    if not path.exists():
        return ()
    try:
        return tuple(_read_record(entry) for entry in json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{str(path)!r} must hold the records that 'python -m papers --record' writes; it "
            f"cannot be read ({error}). Take it from the repository again."
        ) from error


def _read_record(entry: Mapping[str, Any]) -> Record:
    parts = dict(entry)
    parts["differs"] = tuple(Difference(**one) for one in parts["differs"])
    parts["claims"] = tuple(Claim(**one) for one in parts["claims"])
    return Record(**parts)


def keep_record(record: Record, path: Path = RECORDS) -> None:
    """Put a record into the file, in place of an earlier one of the same table and variant."""
    kept = {(r.table, r.quick): r for r in load_records(path)}
    kept[record.table, record.quick] = record
    ordered = sorted(kept.values(), key=lambda r: (r.table, r.quick))
    text = json.dumps([asdict(r) for r in ordered], indent=1, ensure_ascii=False)
    write_whole(path, f"{text}\n".encode())


def is_done(records: Sequence[Record], name: str, entry: Entry, quick: bool, seed: int) -> bool:
    """Whether a table has a record of this code, variant and seed."""
    code = digest_code(entry)
    return any((r.table, r.quick, r.seed, r.code) == (name, quick, seed, code) for r in records)


def choose_records(records: Sequence[Record]) -> dict[str, Record]:
    """One record for each table: that of the whole run if there is one."""
    return {r.table: r for r in sorted(records, key=lambda r: not r.quick)}


# ------------------------------------------------ the page

HEADINGS = (
    "table", "of", "run", "cells reproduced", "better", "differ", "claims that hold", "time",
    "commit",
)  # fmt: skip
OPENING = """# Published tables, run again

Every table and figure that has a program in [`papers/`](../papers/README.md), of the
[five texts that the library sets out from](bibliography.md#sources-of-the-library);
[the sources, section by section](sources.md) says which is where.
`python -m papers NAME --data DIR` prints a table and draws its picture, with `--quick` in seconds.
This page is made by
`python -m papers --page` from the verdicts in `papers/verdicts.json`. They are kept by
`python -m papers --all --data DIR --record --resume`, table by table; broken off, it goes on where
it stopped."""
RULES = """A cell is judged if the text prints a number for it; the rule is on the page that the
command writes for the table. Claims are sentences, of the text or of ours, about the table as a
whole. Times are those of a machine of two cores, beside other work."""


def format_page(entries: Mapping[str, Entry], records: Sequence[Record]) -> str:
    """The page, as Markdown: a line for each table, then what differs and what does not hold."""
    chosen = choose_records(records)
    shown = [chosen[name] for name in entries if name in chosen]
    absent = [f"`{name}`: {e.summary}" for name, e in entries.items() if name not in chosen]
    parts = [
        OPENING,
        _format_sums(shown, len(entries)),
        format_grid(HEADINGS, [_format_line(r, entries[r.table]) for r in shown]),
        RULES,
        *format_section("What differs", [line for r in shown for line in _list_differences(r)]),
        *format_section(
            "Claims that do not hold", [line for r in shown for line in _list_broken(r)]
        ),
        *format_section("Not run", absent),
    ]
    return "\n\n".join(parts) + "\n"


def fill_sources(text: str, records: Sequence[Record]) -> str:
    """The page of the sources with the verdicts of the commands that each of its lines names."""
    chosen = choose_records(records)
    return "".join(_fill_line(line, chosen) for line in text.splitlines(keepends=True))


def _fill_line(line: str, chosen: Mapping[str, Record]) -> str:
    cells = line.rstrip("\n").split(" | ")
    if not line.startswith("|") or len(cells) != 6:
        return line
    found = [chosen[name] for name in _NAMES.findall(cells[3]) if name in chosen]
    if not found:
        return line
    told = [r.summarise() if len(found) == 1 else f"{r.table}: {r.summarise()}" for r in found]
    return " | ".join([*cells[:5], "; ".join(told)]) + " |\n"


def _format_sums(shown: Sequence[Record], total: int) -> str:
    if not shown:
        return f"None of {total} tables has a verdict."
    whole = [r for r in shown if not r.quick]
    judged, same = sum(r.judged for r in shown), sum(r.reproduced for r in shown)
    better, differ = sum(r.better for r in shown), sum(len(r.differs) for r in shown)
    made = sorted({_format_versions(r) for r in shown})
    return (
        f"{len(shown)} of {total} tables, {len(whole)} of them by their whole run and the others "
        f"by their quick variant: {judged} cells judged, {same} reproduced, {better} better, "
        f"{differ} differ; {sum(r.holding for r in shown)} of {sum(len(r.claims) for r in shown)} "
        f"claims hold. Made with {'; '.join(made)}."
    )


def _format_versions(record: Record) -> str:
    return ", ".join(f"{name} {number}" for name, number in record.versions.items())


def _format_line(record: Record, entry: Entry) -> list[str]:
    return [
        f"`{record.table}`",
        entry.summary,
        record.variant,
        f"{record.reproduced} of {record.judged}" if record.judged else "-",
        str(record.better or ""),
        str(len(record.differs) or ""),
        f"{record.holding} of {len(record.claims)}" if record.claims else "-",
        format_time(record.seconds),
        f"`{record.commit}`" if record.commit else "",
    ]


def _list_differences(record: Record) -> Iterator[str]:
    about: dict[str, list[str]] = {}
    for one in record.differs:
        place = f"{one.cell} {one.ours:.4g} ({one.published:.4g})"
        about.setdefault(one.why, []).append(place)
    for why, places in about.items():
        yield f"`{record.table}`, {record.variant}: {why} Of {'; '.join(places)}."


def _list_broken(record: Record) -> Iterator[str]:
    for one in record.claims:
        if not one.holds:
            yield f"`{record.table}`, {record.variant}: {one.claim} ({one.detail})"


def format_time(seconds: float) -> str:
    """Seconds or minutes, for people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
