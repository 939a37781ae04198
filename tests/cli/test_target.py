"""Models with a target on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixfold

from .conftest import Outcome, read_table

Run = Callable[..., Outcome]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(80, 2))
    frame = pd.DataFrame(z @ rng.normal(size=(2, 4)) + 0.2 * rng.normal(size=(80, 4)))
    frame.columns = list("abcd")
    frame["kind"] = np.where(z[:, 0] > 0, "tall", "small")
    frame.loc[::3, "kind"] = None
    frame["size"] = 3.0 * z[:, 1]
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path


def test_classes_are_learned_from_a_column_and_predicted(
    run: Run, people: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "p.csv"
    features = ["--columns", "a,b,c,d"]
    words = ["fit", people, "-m", "supervised-ppca", "-k", 2, *features]
    outcome = run(*words, "--target", "kind", "--out", model)
    assert outcome.code == 0, outcome.err
    assert "80 rows, 4 columns" in outcome.out
    frame = pd.read_csv(people)
    wanted = mixfold.SupervisedPPCA(2).fit(frame[list("abcd")], frame["kind"])
    assert run("predict", model, people, "--proba", "--out", out).code == 0
    table = read_table(out)
    assert list(table["prediction"]) == wanted.predict(frame).tolist()
    chances = np.column_stack([table["probability_small"], table["probability_tall"]])
    np.testing.assert_allclose(chances, wanted.predict_proba(frame), rtol=1e-5)


def test_numbers_come_with_their_deviation(run: Run, people: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "p.csv"
    words = ["fit", people, "-m", "supervised-mixture-of-ppca", "-k", 1, "-d", 2, "--seed", 0]
    assert run(*words, "--columns", "a,b,c,d", "--target", "size", "--out", model).code == 0
    assert run("predict", model, people, "--out", out).code == 0
    table, frame = read_table(out), pd.read_csv(people)
    assert np.corrcoef(table["prediction"], frame["size"])[0, 1] > 0.95
    assert (np.asarray(table["std"], dtype=float) > 0).all()
    refused = run("predict", model, people, "--proba", "--out", out)
    assert refused.code != 0
    assert "standard deviation" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "supervised-ppca"], "needs the name of the column"),
        (["-m", "ppca", "--target", "kind"], "predicts no column"),
        (["-m", "supervised-ppca", "--target", "a", "--columns", "a,b"], "also listed"),
        (["-m", "supervised-ppca", "--target", "kin"], "no column 'kin'"),
    ],
)
def test_mistakes_are_told(
    run: Run, people: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    outcome = run("fit", people, *words, "--out", tmp_path / "m.mixfold")
    assert outcome.code != 0
    said = " ".join(outcome.err.replace("│", " ").split())
    assert message in said
