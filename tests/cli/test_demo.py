"""The demonstration runs, is the same every time, and draws pictures of what it prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from mixfold.cli.demo import tumours, wines

from .conftest import Outcome

Run = Callable[..., Outcome]


def test_it_runs_and_says_where_the_pictures_are(run: Run, tmp_path: Path) -> None:
    outcome = run("demo", "--folder", tmp_path)
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    page = tmp_path / "mixfold-demo-report.html"
    text = page.read_text(encoding="utf-8")
    assert "concave points" in text and "Labels and groups" in text and "malignant" in text
    assert str(page) in outcome.out.replace("\n", "")
    customers = (tmp_path / "mixfold-demo-customers.html").read_text(encoding="utf-8")
    assert "The groups in words" in customers and "income  positive number" in outcome.out
    assert "\n  mixfold select table.csv --out best.mixfold --report report.html\n" in outcome.out
    for study in ("tumours", "wines", "digits"):
        name = f"mixfold-demo-{study}.png"
        content = (tmp_path / name).read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) < 200_000
        assert str(tmp_path / name) in outcome.out.replace("\n", "")


@pytest.mark.slow
def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    outputs = []
    for _ in range(2):
        text = StringIO()
        path = tumours.run(Console(file=text, width=100), tmp_path)[0]
        outputs.append((text.getvalue(), path.read_bytes()))
    assert outputs[0] == outputs[1]


def test_a_missing_folder_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    assert run("demo", "--folder", tmp_path / "nowhere").code == 2


def test_hidden_entries_leave_every_row_something() -> None:
    complete, malignant = tumours._load()
    X = tumours._hide(complete)
    missing = np.isnan(X)
    assert 0.13 < missing.mean() < 0.17
    assert not missing.all(axis=1).any()
    np.testing.assert_array_equal(X[~missing], complete[~missing])
    # 212 malignant tumours in the published table.
    assert malignant.sum() == 212


def test_rows_without_a_label_help_to_tell_wines() -> None:
    X, kinds = wines._load()
    shares = np.array([wines._shares(X, kinds, choice) for choice in range(10)])
    ours, alone = shares.mean(axis=0)
    assert ours > alone + 0.01 and ours > 0.9
    known = wines._label_some_bottles(kinds, 0)
    assert sum(label is not None for label in known) == 9
    told = wines._least_sure(wines._fit(X, known), X, kinds, known)
    surer, other = (int(share) for share in re.findall(r"(\d+)%", told))
    assert surer > other
