"""The verdicts of the repository are complete, and the page about them is made from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from papers.frame import verdicts
from papers.frame.registry import EXPERIMENTS, Entry
from papers.frame.report import UNKNOWN
from papers.frame.run import Report
from papers.frame.table import Cell, Column, Table, Tolerance, Verdict

Make = Callable[..., Report]
KEPT = verdicts.load_records()
SAME = Entry("vb_toy", "A small table (Tabaghi 2016, table 9.9)")


# ------------------------------------------------ those of the repository


def test_the_page_is_that_of_the_kept_verdicts() -> None:
    page = verdicts.PAGE.read_text(encoding="utf-8")
    assert page == verdicts.format_page(EXPERIMENTS, KEPT), "run python -m papers --page"


def test_every_table_has_a_verdict_and_every_verdict_a_table() -> None:
    assert {record.table for record in KEPT} == set(EXPERIMENTS)


@pytest.mark.parametrize("record", KEPT, ids=[f"{r.table}-{r.variant}" for r in KEPT])
def test_a_cell_that_differs_says_why(record: verdicts.Record) -> None:
    for one in record.differs:
        assert len(one.why.split()) >= 5 and one.why != UNKNOWN, one.cell
        assert one.why.endswith((".", ")")), one.cell
    for one in record.claims:
        assert one.claim and one.detail


# ------------------------------------------------ how they are made


def test_a_record_counts_cells_and_keeps_the_reasons(report: Make) -> None:
    made = verdicts.make_record(report(seed=3), SAME)
    assert (made.table, made.quick, made.seed) == ("small", False, 3)
    assert (made.judged, made.reproduced, made.better) == (2, 1, 0)
    assert made.differs == (verdicts.Difference("d = 2 / SER", 18.2, 19.25, ""),)
    assert [claim.holds for claim in made.claims] == [True, False]
    assert made.summarise() == "1 of 2 cells reproduced, 1 differ; 1 of 2 claims hold (whole)"
    assert len(made.code) == 16 and made.versions["numpy"]
    quick = verdicts.make_record(report(quick=True), SAME)
    assert quick.differs[0].why == verdicts.SHORT


def test_records_survive_the_file_one_for_each_variant(report: Make, tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    assert verdicts.load_records(path) == ()
    whole = verdicts.make_record(report(), SAME)
    verdicts.keep_record(whole, path)
    verdicts.keep_record(verdicts.make_record(report(quick=True), SAME), path)
    again = replace(whole, seconds=7.0)
    verdicts.keep_record(again, path)
    kept = verdicts.load_records(path)
    assert kept[0] == again and kept[1].quick and len(kept) == 2
    assert verdicts.choose_records(kept) == {"small": again}
    assert verdicts.is_done(kept, "small", SAME, False, 0)
    assert not verdicts.is_done(kept, "small", SAME, False, 1)
    assert not verdicts.is_done(kept, "small", Entry("dp_table", ""), False, 0)


@pytest.mark.parametrize("text", ["{", "[{}]", '[{"table": "x"}]'])
def test_a_damaged_file_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "verdicts.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"verdicts\.json.*Take it from the repository again"):
        verdicts.load_records(path)


def test_the_digest_is_of_what_the_numbers_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("src/mixfold/cli", "src/mixfold/engine", "papers/shared", "papers/frame"):
        (tmp_path / place).mkdir(parents=True)
    for name in ("papers/vb_toy.py", "papers/other.py", "papers/frame/table.py",
                 "papers/frame/checks.py", "papers/frame/report.py", "papers/shared/sets.py",
                 "src/mixfold/cli/app.py", "src/mixfold/engine/loop.py"):  # fmt: skip
        (tmp_path / name).write_text("a = 1\n")
    monkeypatch.setattr(verdicts, "ROOT", tmp_path)
    before = verdicts.digest_code(SAME)
    for name, changes in (
        ("papers/other.py", False), ("papers/frame/report.py", False),
        ("src/mixfold/cli/app.py", False), ("papers/vb_toy.py", True),
        ("papers/frame/table.py", True), ("papers/shared/sets.py", True),
        ("src/mixfold/engine/loop.py", True),
    ):  # fmt: skip
        shutil.copy(tmp_path / name, tmp_path / "kept")
        (tmp_path / name).write_text("a = 2\n")
        assert (verdicts.digest_code(SAME) != before) is changes, name
        shutil.copy(tmp_path / "kept", tmp_path / name)
    assert verdicts.digest_code(SAME) == before


def test_the_page_shows_whole_runs_and_names_what_was_not_run(report: Make) -> None:
    whole = verdicts.make_record(report(), SAME)
    whole = replace(whole, differs=(replace(whole.differs[0], why="It is another draw."),))
    quick = verdicts.make_record(report(quick=True), SAME)
    entries = {"small": SAME, "gone": Entry("gone", "another table")}
    page = verdicts.format_page(entries, [quick, whole])
    assert "| whole | 1 of 2" in " ".join(page.split())
    assert "`small`, whole: It is another draw. Of d = 2 / SER 18.2 (19.25)." in page
    assert "- `gone`: another table" in page and verdicts.SHORT not in page
    assert "1 of 2 tables, 1 of them by their whole run" in page
    assert "None of 2 tables has a verdict" in verdicts.format_page(entries, [])


def test_the_file_is_plain_json() -> None:
    entries = json.loads(verdicts.RECORDS.read_text(encoding="utf-8"))
    assert all(isinstance(entry["table"], str) for entry in entries)


# ------------------------------------------------ cells with rules of their own


def test_a_cell_may_have_a_tolerance_of_its_own() -> None:
    own = Column("c", "a measure", own="within two of the published standard deviations")
    narrow = Cell("a", "c", (1.0,), 2.0, tolerance=Tolerance(0.5))
    wide = Cell("b", "c", (1.0,), 2.0, tolerance=Tolerance(1.0))
    assert [own.verdict(cell) for cell in (narrow, wide)] == [Verdict.differs, Verdict.reproduced]
    assert own.verdict(Cell("c", "c", (1.0,), 2.0)) is Verdict.open
    assert own.rule() == "within two of the published standard deviations"
    both = Column("c", "a measure", tolerance=Tolerance(2.0))
    assert both.verdict(narrow) is Verdict.differs
    assert Table((own,), (narrow, wide)).judged(own) == "1 of 2 reproduced, 1 differs"
