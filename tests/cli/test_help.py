"""What a newcomer reads first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import pytest

from mixfold.cli.registry import MODELS, find_model

from .conftest import Outcome

Run = Callable[..., Outcome]
COMMANDS = (
    "select",
    "fit", "predict", "score", "impute", "transform", "reconstruct", "sample", "inspect", "demo",
    "reproduce", "topics", "models",
)  # fmt: skip


def test_the_program_lists_its_commands(run: Run) -> None:
    outcome = run("--help")
    assert outcome.code == 0
    for name in COMMANDS:
        assert name in outcome.out
    assert "Exit codes" in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run: Run, name: str) -> None:
    outcome = run(name, "--help")
    assert outcome.code == 0
    assert f"mixfold {name}" in outcome.out
    # Markup that the terminal would show raw.
    assert "[bold]" not in outcome.out and "[/bold]" not in outcome.out


def test_no_words_at_all_shows_the_help(run: Run) -> None:
    outcome = run()
    assert outcome.code == 2
    assert "Usage" in outcome.out + outcome.err


def test_the_help_of_fit_fits_on_a_screen() -> None:
    words = [sys.executable, "-m", "mixfold", "fit", "--help"]
    narrow = {**os.environ, "COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    output = subprocess.run(words, capture_output=True, text=True, check=True, env=narrow).stdout
    assert len(output.splitlines()) <= 40


def test_models_are_listed_by_subject(run: Run) -> None:
    assert re.search(r"mixfold[\s│]+models", run("fit", "--help").out)
    lines = run("models").out.splitlines()
    for name, entry in MODELS.items():
        (line,) = [number for number, text in enumerate(lines) if text.split()[:1] == [name]]
        assert lines[line].endswith(entry.summary) and len(lines[line]) <= 80
        heading = next(text for text in reversed(lines[:line]) if not text.startswith(" "))
        assert heading.lower() == entry.group


def test_every_listed_model_exists_and_has_its_size() -> None:
    for name in MODELS:
        entry = find_model(name)
        assert entry.size in entry.all_parameters()
        assert not entry.factors or entry.factors in entry.parameters()
        assert "random_state" in entry.parameters()


def test_version(run: Run) -> None:
    try:
        expected = f"mixfold {version('mixfold')}\n"
    except PackageNotFoundError:
        expected = "mixfold unknown: run from a source tree that is not installed\n"
    assert run("--version").out == expected


def test_the_module_is_the_program() -> None:
    words = [sys.executable, "-m", "mixfold", "--help"]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "Usage: mixfold" in output
