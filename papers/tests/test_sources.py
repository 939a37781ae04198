"""The page of the sources: what it names exists, and no line is without an answer."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

import mixfold
import mixfold.distributions
import mixfold.metrics
import mixfold.plots
from papers.frame import verdicts
from papers.frame.bibliography import SOURCES
from papers.frame.registry import EXPERIMENTS

TEXT = verdicts.SOURCES_PAGE.read_text(encoding="utf-8")
HEAD = ["section", "describes", "class and parameters", "command: its picture", "tests", "verdict"]
LINES = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith("| ---")
]
ROWS = [cells for cells in LINES if cells != HEAD]
QUOTED = re.compile(r"`([^`]+)`")


def _name_row(cells: list[str]) -> str:
    return f"{cells[0]}-{cells[1]}"[:60]


def test_every_source_has_a_table() -> None:
    for source in SOURCES.values():
        assert f"## {source.cited}, " in TEXT
    assert LINES.count(HEAD) == len(SOURCES)


@pytest.mark.parametrize("cells", ROWS, ids=_name_row)
def test_a_line_has_an_answer(cells: list[str]) -> None:
    assert len(cells) == len(HEAD)
    verdict = cells[-1]
    assert verdict and "missing" not in verdict
    if "`" not in cells[3]:
        reason = verdict.removeprefix("left out: ")
        assert (reason != verdict and len(reason) > 20) or verdict.startswith("in the tests")
        assert verdict.startswith("left out") or "`" in cells[4], "tests that it is in"


@pytest.mark.parametrize("cells", ROWS, ids=_name_row)
def test_what_a_line_names_exists(cells: list[str]) -> None:
    for quoted in QUOTED.findall(cells[2]):
        _check_class(quoted)
    for name in QUOTED.findall(cells[3]):
        assert name in EXPERIMENTS
    for file in QUOTED.findall(cells[4]):
        assert (verdicts.ROOT / file).is_file(), file


def _check_class(quoted: str) -> None:
    """A class or function of the package, and parameters that it takes with these values."""
    call = ast.parse(quoted, mode="eval").body
    dotted = call.func if isinstance(call, ast.Call) else call
    found: Any = mixfold
    for part in ast.unparse(dotted).removeprefix("mixfold.").split("."):
        found = getattr(found, part)
    if isinstance(call, ast.Call):
        given = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        assert set(given) <= set(inspect.signature(found).parameters), quoted
        made = found(**given)
        if hasattr(made, "_check_parameters"):
            made._check_parameters()


def test_every_table_is_named() -> None:
    named = {name for cells in ROWS for name in QUOTED.findall(cells[3])}
    assert named == set(EXPERIMENTS)


def test_the_verdicts_are_the_kept_ones() -> None:
    assert verdicts.fill_sources(TEXT, verdicts.load_records()) == TEXT, "python -m papers --page"
