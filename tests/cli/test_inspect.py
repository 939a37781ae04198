"""``inspect``: text from a file is shown, never interpreted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mixfold import store

from .conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.mixfold"
    tree = {
        "parameters": {"tol": 0.001, "init": "[red]x[/red]"},
        "means": np.zeros((2, 3), dtype=np.float32),
    }
    store.write(path, "example", tree, {"columns": [f"column {j}" for j in range(99)]})
    return path


def test_the_tree_is_readable(run: Run, file: Path) -> None:
    outcome = run("inspect", file)
    assert outcome.code == 0, outcome.err
    assert "tol  0.001" in outcome.out
    assert "init  [red]x[/red]" in outcome.out
    assert "means  2 x 3 (float32)" in outcome.out


def test_long_values_are_cut_but_json_has_all(run: Run, file: Path) -> None:
    assert "column 0" in run("inspect", file).out
    assert "column 98" not in run("inspect", file).out
    content = json.loads(run("inspect", file, "--json").out)
    assert content["summary"]["columns"][98] == "column 98"
    assert content["arrays"]["means"] == {"dtype": "float32", "shape": [2, 3]}
