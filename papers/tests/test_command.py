"""``python -m papers``: lists tables, runs one, shows ours beside published, says what it lacks."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from papers.__main__ import main
from papers.frame import verdicts
from papers.frame.experiment import DataFile, Experiment, Progress
from papers.frame.registry import EXPERIMENTS
from papers.frame.table import Cell, Check, Column, Table, Tolerance


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a run."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the program in this process; its words may be paths and numbers."""

    def call(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["papers", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        code = end.value.code
        return Outcome(0 if code is None else int(code), output.out, output.err)

    return call


def squeezed(text: str) -> str:
    """Without the frame, spaces and line breaks, which may fall in the middle of a path."""
    return "".join(text.replace("│", " ").split())


def check(outcome: Outcome, code: int, *expected: str) -> None:
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err
    for text in expected:
        assert squeezed(text) in squeezed(outcome.err)


def main_entries() -> dict[str, Any]:
    """The list that the command has."""
    from papers import __main__

    return __main__.EXPERIMENTS  # type: ignore[return-value]


@dataclass
class Small:
    """An entry of the list whose table takes no time and remembers how it was run."""

    summary: str = "a table [of two cells]"
    module: str = "vb_toy"
    calls: list[tuple[Path, bool, int]] = field(default_factory=list)
    data: tuple[DataFile, ...] = (DataFile("faces.npz", "arrays X and y", "a database"),)

    def load(self) -> Experiment:
        names = [name for name, entry in main_entries().items() if entry is self]
        return Experiment(
            names[0], "A small table", "Tabaghi 2016", "table 9.9", "Protocol.", self.data,
            self._run,
        )  # fmt: skip

    def _run(self, folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
        self.calls.append((folder, quick, seed))
        progress(0, 1, "the only step")
        columns = (Column("SER [x]", "a ratio", "dB", Tolerance(0.5), ".2f"),)
        cells = (
            Cell("d = [6]", "SER [x]", (17.0, 17.2), 17.36),
            Cell("d = 12", "SER [x]", (20.0, 20.0), 18.95),
        )
        checks = (Check("it grows", True, "always"), Check("it falls", False, "never"))
        return Table(columns, cells, checks, notes=("A note.",))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Small:
    monkeypatch.delenv("MIXFOLD_DATA", raising=False)
    entry = Small()
    monkeypatch.setitem(EXPERIMENTS, "small", entry)  # type: ignore[misc]
    return entry


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where --record keeps verdicts and page, in place of the repository's own files."""
    places = tmp_path / "kept.json", tmp_path / "kept.md"
    monkeypatch.setattr(verdicts, "RECORDS", places[0])
    monkeypatch.setattr(verdicts, "PAGE", places[1])
    monkeypatch.setattr(verdicts, "SOURCES_PAGE", tmp_path / "sources.md")
    (tmp_path / "sources.md").write_text(
        "# Sources\n\n| a | b | c | `small`: dots | e |  |\n", encoding="utf-8"
    )
    monkeypatch.setattr(verdicts.load_records, "__defaults__", (places[0],))
    return places


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "faces.npz").write_bytes(b"")
    return folder


def test_the_list_names_every_table_with_its_verdict(
    run: Run, small: Small, data: Path, kept: tuple[Path, Path], tmp_path: Path
) -> None:
    outcome = run("--list")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == list(EXPERIMENTS)
    for line, entry in zip(lines[::2], EXPERIMENTS.values(), strict=True):
        assert line.endswith(entry.summary)
    assert {line.strip() for line in lines[1::2]} == {"no verdict yet"}
    assert small.calls == []
    assert run("small", "--data", data, "--out", tmp_path, "--record", "-q").code == 0
    last = run("--list").out.splitlines()[-1].strip()
    assert last == "1 of 2 cells reproduced, 1 differ; 1 of 2 claims hold (whole)"


def test_a_table_is_run_shown_and_written(
    run: Run, small: Small, data: Path, tmp_path: Path
) -> None:
    words = ["--data", data, "--out", tmp_path, "--seed", 5]
    outcome = run("small", *words)
    assert outcome.code == 0, outcome.err
    assert small.calls == [(data, False, 5)]
    for text in (
        "A small table", "Tabaghi (2016), table 9.9", "SER [x] [dB]", "d = [6]",
        "17.10 ± 0.1 (17.36) reproduced", "20.00 ± 0 (18.95) differs",
        "SER [x]: 1 of 2 reproduced, 1 differs (within 0.5 dB of the published)",
        "it grows: holds (always)",
        "it falls: does not hold (never)", "A note.", "seed 5", "numpy",
    ):  # fmt: skip
        assert squeezed(text) in squeezed(outcome.out)
    for kind in ("md", "csv", "png"):
        assert str(tmp_path / f"small.{kind}") in outcome.out.replace("\n", "")
    with (tmp_path / "small.csv").open(newline="", encoding="utf-8") as file:
        assert [line["verdict"] for line in csv.DictReader(file)] == ["reproduced", "differs"]


def test_quick_is_passed_on_and_written_apart(
    run: Run, small: Small, data: Path, tmp_path: Path
) -> None:
    outcome = run("small", "--data", data, "--quick", "--out", tmp_path, "-q")
    assert outcome == Outcome(0, "", "")
    assert small.calls == [(data, True, 0)]
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {
        "small-quick.md", "small-quick.csv", "small-quick.png",
    }  # fmt: skip


def test_the_folder_may_come_from_the_environment(
    run: Run, small: Small, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXFOLD_DATA", str(data))
    assert run("small", "--out", tmp_path, "-q").code == 0
    assert small.calls[0][0] == data


@pytest.mark.parametrize("folder", [None, "nowhere", "empty"])
def test_missing_data_is_a_failure_that_says_what_is_wanted(
    run: Run, small: Small, tmp_path: Path, folder: str | None
) -> None:
    (tmp_path / "empty").mkdir()
    words: list[Any] = [] if folder is None else ["--data", tmp_path / folder]
    expected = ["faces.npz", "arrays X and y", "a database", "--data DIR"]
    if folder == "empty":
        expected[-1] = f"not in the folder '{tmp_path / folder}'"
    check(run("small", *words, "--out", tmp_path), 1, "error: small", *expected)
    assert small.calls == [] and [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_wrong_words_are_usage_errors(run: Run, small: Small, tmp_path: Path) -> None:
    check(run(), 2, "--list", *EXPERIMENTS)
    check(run("smal"), 2, "'smal'", "Did you mean 'small'?", *EXPERIMENTS)
    check(run("small", "--out", tmp_path / "no"), 2, "--out", "does not exist")
    check(run("small", "--seed", "-1"), 2, "--seed")
    assert small.calls == []


# ------------------------------------------------ all tables


@dataclass
class Broken(Small):
    """An entry whose table breaks."""

    summary: str = "a table that breaks"
    data: tuple[DataFile, ...] = ()

    def _run(self, folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
        raise ZeroDivisionError("nothing by nothing")


@pytest.fixture
def tables(small: Small, monkeypatch: pytest.MonkeyPatch) -> dict[str, Small]:
    """The small table and no other."""
    found = {"small": small}
    monkeypatch.setattr("papers.__main__.EXPERIMENTS", found)
    return found


def test_all_tables_are_run_and_a_page_says_how_they_came_out(
    run: Run, tables: dict[str, Small], data: Path, tmp_path: Path
) -> None:
    outcome = run("--all", "--data", data, "--quick", "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    assert tables["small"].calls[0] == (data, True, 0)
    assert "small: 1 of 2 reproduced, 1 differs; 1 of 2 claims hold" in outcome.out
    assert (tmp_path / "small-quick.md").exists()
    page = (tmp_path / "reproduced.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if "`small`" in line)
    words = [word.strip() for word in line.strip("|").split("|")]
    assert words[1:7] == ["a table [of two cells]", "quick", "1 of 2", "", "1", "1 of 2"]
    assert "the quick variant has fewer rows" in page and "d = 12 / SER [x] 20 (18.95)" in page
    whole = run("--all", "--data", data, "--out", tmp_path, "-q")
    assert whole.code == 0
    page = (tmp_path / "reproduced.md").read_text(encoding="utf-8")
    assert "the quick variant has fewer rows" not in page
    assert "it falls (never)" in page and "it grows" not in page
    both = verdicts.load_records(tmp_path / "verdicts.json")
    assert [(r.table, r.quick) for r in both] == [("small", False), ("small", True)]


def test_a_run_that_was_broken_off_goes_on_where_it_stopped(
    run: Run, tables: dict[str, Small], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passed over: the same code, variant and seed, and nothing else."""
    words = ["--all", "--data", data, "--out", tmp_path, "--resume"]
    tables["other"] = Small(module="dp_table")
    assert run(*words, "-q").code == 0
    second = run(*words)
    assert "2 of 2 tables have a verdict of this code" in second.out
    for more in (["--seed", 1], ["--quick"]):
        assert run(*words, *more, "-q").code == 0
    assert tables["small"].calls == [(data, False, 0), (data, False, 1), (data, True, 0)]
    digest = verdicts.digest_code
    monkeypatch.setattr(
        verdicts, "digest_code", lambda e: "new" if e.module == "vb_toy" else digest(e)
    )
    assert run(*words, "--quick", "-q").code == 0
    assert len(tables["small"].calls) == 4 and len(tables["other"].calls) == 3
    assert run("--all", "--data", data, "--out", tmp_path, "-q").code == 0
    assert len(tables["other"].calls) == 4


def test_the_page_is_made_again_from_the_kept_verdicts(
    run: Run, tables: dict[str, Small], data: Path, kept: tuple[Path, Path], tmp_path: Path
) -> None:
    records, page = kept
    assert run("--all", "--data", data, "--out", tmp_path, "--record", "-q").code == 0
    made = page.read_text(encoding="utf-8")
    assert "`small`" in made and len(verdicts.load_records(records)) == 1
    page.unlink()
    assert run("--page").code == 0
    assert page.read_text(encoding="utf-8") == made
    filled = (tmp_path / "sources.md").read_text(encoding="utf-8")
    verdict = "1 of 2 cells reproduced, 1 differ; 1 of 2 claims hold (whole)"
    assert filled == f"# Sources\n\n| a | b | c | `small`: dots | e | {verdict} |\n"


def test_a_table_without_data_or_that_breaks_does_not_stop_the_others(
    run: Run, tables: dict[str, Small], tmp_path: Path
) -> None:
    tables["broken"], tables["last"] = Broken(), Small(data=())
    outcome = run("--all", "--out", tmp_path)
    assert outcome.code == 1
    assert len(tables["last"].calls) == 1 and tables["small"].calls == []
    assert "broken: failed: ZeroDivisionError: nothing by nothing" in outcome.out
    assert "small: not run: small needs a file that was not found" in outcome.out
    page = (tmp_path / "reproduced.md").read_text(encoding="utf-8")
    assert "1 of 3 tables" in page and "`broken`: a table that breaks" in page


def test_all_and_a_name_contradict_each_other(run: Run, tables: dict[str, Small]) -> None:
    outcome = run("small", "--all")
    assert outcome.code == 2 and squeezed("--all runs every table") in squeezed(outcome.err)


def test_an_error_of_ours_is_shown_in_full_with_debug(
    run: Run, small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "broken", Broken())  # type: ignore[misc]
    check(run("broken", "--out", tmp_path), 1, "ZeroDivisionError: nothing by nothing", "--debug")
    monkeypatch.setattr(sys, "argv", ["papers", "broken", "--out", str(tmp_path), "--debug"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_the_module_is_the_program() -> None:
    words = [sys.executable, "-m", "papers", "--help"]
    root = Path(__file__).resolve().parents[2]
    output = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    assert "Usage: python -m papers" in output and "--quick" in output
