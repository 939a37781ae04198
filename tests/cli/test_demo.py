"""The demonstration runs, is the same every time, and draws pictures of what it prints."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from mixfold import GaussianMixture
from mixfold.cli.demo import tumours
from mixfold.cli.demo.choose import choose
from mixfold.estimators.base import DegenerateWarning

from .conftest import Outcome

Run = Callable[..., Outcome]


def test_it_runs_and_says_where_the_pictures_are(run: Run, tmp_path: Path) -> None:
    outcome = run("demo", "--folder", tmp_path)
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    for name in ("mixfold-demo-tumours.png", "mixfold-demo-digits.png"):
        content = (tmp_path / name).read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) < 200_000
        assert str(tmp_path / name) in outcome.out.replace("\n", "")


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    outputs = []
    for _ in range(2):
        text = StringIO()
        path = tumours.run(Console(file=text, width=100), tmp_path)
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


def test_the_lowest_criterion_is_chosen(rng: np.random.Generator) -> None:
    X = np.vstack([rng.normal(size=(80, 2)), rng.normal(size=(50, 2)) + 9.0])
    choice = choose(X, ("full", "diag"), (1, 2, 3))
    lowest = min(value for curve in choice.bic.values() for value in curve.values())
    assert choice.model.n_components == 2
    assert choice.model.bic(X) == pytest.approx(lowest)
    assert set(choice.bic) == {"full", "diag"} and {1, 2} <= set(choice.bic["full"])


def test_a_component_that_collapsed_is_not_chosen(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 2))
    X[:30] = X[0]
    with pytest.warns(DegenerateWarning):
        collapsed = GaussianMixture(2, random_state=0).fit(X)
    choice = choose(X, ("full",), (1, 2))
    # Repeated rows make two components look far better than they are.
    assert collapsed.bic() < choice.model.bic()
    assert list(choice.bic["full"]) == [1]
