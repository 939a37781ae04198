"""The demonstration runs, is the same every time, and draws pictures of what it prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mixfold.cli.demo import tumours
from mixfold.cli.demo.choose import choose

from .conftest import Outcome

Run = Callable[..., Outcome]


def test_it_runs_twice_alike(run: Run, tmp_path: Path) -> None:
    first = run("demo", "--folder", tmp_path)
    assert first.code == 0, first.err
    names = ("mixfold-demo-tumours.png", "mixfold-demo-digits.png")
    pictures = {name: (tmp_path / name).read_bytes() for name in names}
    for name, content in pictures.items():
        assert str(tmp_path / name) in first.out.replace("\n", "")
        assert content.startswith(b"\x89PNG") and len(content) < 200_000
    again = run("demo", "--folder", tmp_path)
    tables = [outcome.out.partition("Done in")[0] for outcome in (first, again)]
    assert tables[0] == tables[1]
    assert pictures == {name: (tmp_path / name).read_bytes() for name in names}


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


def test_the_lowest_criterion_is_chosen(rng: np.random.Generator) -> None:
    X = np.vstack([rng.normal(size=(80, 2)), rng.normal(size=(50, 2)) + 9.0])
    choice = choose(X, ("full", "diag"), (1, 2, 3))
    lowest = min(value for curve in choice.bic.values() for value in curve.values())
    assert choice.model.n_components == 2
    assert choice.model.bic(X) == pytest.approx(lowest)
    assert set(choice.bic) == {"full", "diag"} and set(choice.bic["full"]) == {1, 2, 3}
