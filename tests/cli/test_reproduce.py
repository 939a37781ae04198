"""``reproduce`` hands over to the tables of a clone, and says where they are if there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mixfold
from mixfold.cli import reproduce

from .conftest import Outcome
from .test_mistakes import check, squeezed

Run = Callable[..., Outcome]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """What the command of the clone is called with, in place of running it."""
    calls: list[tuple[list[str], str]] = []

    def app(words: list[str], prog_name: str) -> None:
        calls.append((words, prog_name))

    monkeypatch.setitem(sys.modules, "papers", SimpleNamespace())  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, "papers.__main__", SimpleNamespace(app=app))  # type: ignore[misc]
    return calls


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and the package where pip would put it."""
    package = tmp_path / "site-packages" / "mixfold" / "__init__.py"
    monkeypatch.setattr(mixfold, "__file__", str(package))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def make_clone(root: Path, name: str = "mixfold") -> None:
    (root / "papers").mkdir()
    (root / "papers" / "__main__.py").write_text("")
    (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')


def test_all_words_are_handed_over(run: Run, handed: list[Any]) -> None:
    words = ["small", "--quick", "--data", "d", "-o", "x", "--seed", "3", "-q"]
    assert run("reproduce", *words).code == 0
    assert run("reproduce", "--all", "--help").code == 0
    assert handed == [(words, "mixfold reproduce"), (["--all", "--help"], "mixfold reproduce")]


def test_a_clone_is_that_of_the_package_or_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert reproduce.find_clone() == ROOT
    monkeypatch.setattr(mixfold, "__file__", str(tmp_path / "lib" / "mixfold" / "__init__.py"))
    assert reproduce.find_clone() is None
    make_clone(tmp_path)
    assert reproduce.find_clone() == tmp_path
    for text in ('[project]\nname = "other"\n', "[tool.x]\n", "not toml ["):
        (tmp_path / "pyproject.toml").write_text(text)
        assert reproduce.find_clone() is None
    (tmp_path / "pyproject.toml").unlink()
    assert reproduce.find_clone() is None


def test_without_a_clone_it_says_where_the_tables_are(run: Run, installed: Path) -> None:
    for words in (["vb-toy", "--quick"], ["--list"], []):
        outcome = run("reproduce", *words)
        check(outcome, 1, "come with the source tree", "Clone the repository", "python -m papers")
        assert outcome.out == ""


def test_without_a_clone_the_help_is_short_and_true(run: Run, installed: Path) -> None:
    outcome = run("reproduce", "--help")
    assert outcome.code == 0
    for text in ("mixfold reproduce", "not with the installed package", "--quick", "--data DIR"):
        assert squeezed(text) in squeezed(outcome.out)


def test_it_runs_the_tables_from_any_folder(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mixfold", "reproduce", "--list"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "vb-toy" in done.stdout and "(Yu 2006, section 2.2.4)" in done.stdout
