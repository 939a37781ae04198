"""The comparison of two trees gives intervals that hold, and refuses what is no tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "tools").exists():
    pytest.skip("needs tools/: run the tests in a clone", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))

import compare_speed  # noqa: E402


def test_interval_holds_the_true_median_with_95_percent(rng: np.random.Generator) -> None:
    draws = rng.gamma(2.0, size=(4000, 15))
    truth = 1.6783469900166605
    held = [low <= truth <= high for _, low, high in map(compare_speed.interval, draws)]
    assert 0.95 - 0.02 < np.mean(held) < 0.99


def test_a_folder_that_is_no_source_tree_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "compare_speed.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no src/mixfold" in done.stderr


@pytest.mark.slow
def test_a_tree_is_as_fast_as_itself(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "compare_speed.py"), str(ROOT)]
    command += ["--pairs", "3", "--only", "PPCA, small"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "| PPCA, small |" in done.stdout, done.stderr
