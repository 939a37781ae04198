"""Factorisations, machines and stacks of them on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mixfold
from mixfold.cli.layers import parse_layers

from .conftest import Outcome, read_table
from .test_mistakes import check

Run = Callable[..., Outcome]
FAST: dict[str, list[str]] = {
    "matrix-factorization": ["-k", "3"],
    "deep-factor-network": ["--layers", "4,3"],
    "rbm": ["-k", "6", "--set", "max_epochs=15", "--set", "batch_size=10"],
    "deep-belief-network": [
        "--layers", "6,6", "--set", "max_epochs=15", "--set", "batch_size=10",
        "--set", "fine_tune_epochs=2",
    ],
}  # fmt: skip
MAKERS = ("deep-factor-network", "rbm", "deep-belief-network")


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bits in six columns whose pattern tells the kind; every fifth kind is unknown."""
    rng = np.random.default_rng(0)
    kind = np.arange(150) % 2
    chance = np.where(kind[:, None] == np.repeat([0, 1], 3), 0.9, 0.1)
    frame = pd.DataFrame((rng.random((150, 6)) < chance).astype(float), columns=list("abcdef"))
    frame["kind"] = np.array(["left", "right"])[kind]
    frame.loc[::5, "kind"] = None
    path = tmp_path_factory.mktemp("letters") / "letters.csv"
    frame.to_csv(path, index=False)
    return path


def fit(run: Run, letters: Path, tmp_path: Path, name: str, target: bool = True) -> Path:
    path = tmp_path / f"{name}.mixfold"
    goal = ["--target", "kind"] if target else ["--columns", "a,b,c,d,e,f"]
    outcome = run("fit", letters, "-m", name, *FAST[name], *goal, "--seed", 0, "--out", path)
    assert outcome.code == 0, outcome.err
    assert "150 rows, 6 columns" in outcome.out
    return path


# ------------------------------------------------ all four models


@pytest.mark.parametrize("name", FAST)
def test_classes_are_learned_and_predicted(
    run: Run, letters: Path, tmp_path: Path, name: str
) -> None:
    path, out = fit(run, letters, tmp_path, name), tmp_path / "p.csv"
    outcome = run("predict", path, letters, "--proba", "--out", out)
    assert outcome.code == 0, outcome.err
    table, frame, model = read_table(out), pd.read_csv(letters), mixfold.load(path)
    X = frame[list("abcdef")]
    assert list(table) == ["prediction", "probability", "probability_left", "probability_right"]
    assert list(table["prediction"]) == model.predict(X).tolist()
    np.testing.assert_allclose(table["probability_left"], model.predict_proba(X)[:, 0], rtol=1e-4)
    truth = np.array(["left", "right"])[np.arange(150) % 2]
    assert np.mean(table["prediction"] == truth) > 0.9


@pytest.mark.parametrize("name", FAST)
def test_rows_are_reduced_and_rebuilt(run: Run, letters: Path, tmp_path: Path, name: str) -> None:
    path, out = fit(run, letters, tmp_path, name), tmp_path / "t.parquet"
    assert run("transform", path, letters, "--out", out).code == 0
    model, X = mixfold.load(path), pd.read_csv(letters)[list("abcdef")]
    table = read_table(out)
    assert next(iter(table)) == "factor_1"
    np.testing.assert_allclose(
        np.column_stack(list(table.values())), model.transform(X), rtol=1e-4, atol=1e-5
    )
    assert run("reconstruct", path, letters, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == list("abcdef")
    np.testing.assert_allclose(
        np.column_stack(list(table.values())), model.reconstruct(X), rtol=1e-4, atol=1e-5
    )
    check(run("reconstruct", path, letters, "--method", "hard", "--out", out), 2, "in one way")


@pytest.mark.parametrize("name", FAST)
def test_without_a_target_there_are_factors_only(
    run: Run, letters: Path, tmp_path: Path, name: str
) -> None:
    path, out = fit(run, letters, tmp_path, name, target=False), tmp_path / "t.csv"
    outcome = run("transform", path, letters, "--out", out)
    assert outcome.code == 0, outcome.err
    assert {head.split("_")[0] for head in read_table(out)} == {"factor"}
    check(run("predict", path, letters, "--out", out), 2, "has no predict")


@pytest.mark.parametrize("name", FAST)
def test_the_summary_and_inspect_show_layers_and_units(
    run: Run, letters: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "m.mixfold"
    words = ["-m", name, *FAST[name], "--target", "kind", "--seed", 0, "--out", path]
    told, shown = run("fit", letters, *words), run("inspect", path)
    assert (told.code, shown.code) == (0, 0), told.err + shown.err
    model = mixfold.load(path)
    expected = ["left, right", "near 0"]
    if FAST[name][0] == "--layers":
        sizes = (6, *parse_layers(FAST[name][1]))
        expected += [" - ".join(map(str, sizes)), "layer 1", "layer 2"]
    else:
        expected += ["unit 1", f"{model.components_[0, 0]:.4g}"]
    for text in expected:
        assert text in told.out and text in shown.out


# ------------------------------------------------ rows of a class


@pytest.mark.parametrize("name", MAKERS)
def test_rows_of_a_class_are_made(run: Run, letters: Path, tmp_path: Path, name: str) -> None:
    path, out = fit(run, letters, tmp_path, name), tmp_path / "s.csv"
    means = {}
    for label in ("left", "right"):
        words = ["--rows", 60, "--class", label, "--seed", 1, "--out", out]
        outcome = run("sample", path, *words)
        assert outcome.code == 0, outcome.err
        table = read_table(out)
        assert list(table) == [*"abcdef", "target"] and set(table["target"]) == {label}
        means[label] = np.array([np.mean(table[c]) for c in "abcdef"])
    assert (means["left"][:3] > means["right"][:3]).all()
    assert (means["left"][3:] < means["right"][3:]).all()
    check(run("sample", path, "--class", "up", "--out", out), 2, "no class 'up'", "left, right")


@pytest.mark.parametrize("name", MAKERS)
def test_without_a_class_rows_are_of_all(
    run: Run, letters: Path, tmp_path: Path, name: str
) -> None:
    path, out = fit(run, letters, tmp_path, name), tmp_path / "s.csv"
    outcome = run("sample", path, "--rows", 80, "--seed", 1, "--out", out)
    assert outcome.code == 0, outcome.err
    table = read_table(out)
    of_left = table["target"] == "left"
    assert 10 < of_left.sum() < 70
    first = table["a"] + table["b"] + table["c"]
    assert first[of_left].mean() > first[~of_left].mean() + 0.5


def test_models_that_make_no_rows_of_a_class_say_so(
    run: Run, letters: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "m.mixfold", tmp_path / "s.csv"
    assert run("fit", letters, "-m", "ppca", "-k", 1, "--columns", "a,b,c", "-o", path).code == 0
    check(run("sample", path, "--class", "left", "--out", out), 2, "no rows of a class")
    other = fit(run, letters, tmp_path, "matrix-factorization")
    check(run("sample", other, "--class", "left", "--out", out), 2, "no rows of a class")
    check(run("sample", other, "--out", out), 2, "MatrixFactorization has no sample")


# ------------------------------------------------ sizes


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["-m", "deep-factor-network", "-k", "8"], ("is a stack", "--layers 8,4")),
        (["-m", "rbm", "--layers", "8"], ("rbm is no stack", "deep-belief-network")),
        (["-m", "deep-belief-network", "--layers", "8,x"], ("whole numbers", "'8,x'")),
        (["-m", "deep-belief-network", "--layers", "0"], ("whole numbers", "'0'")),
        (
            ["-m", "deep-factor-network", "--layers", "8", "--set", "hidden=[3]"],
            ("'hidden' is also given with --layers",),
        ),
    ],
)
def test_mistakes_in_sizes(
    run: Run, letters: Path, tmp_path: Path, words: list[str], messages: Any
) -> None:
    outcome = run("fit", letters, *words, "--target", "kind", "--out", tmp_path / "m.mixfold")
    check(outcome, 2, *messages)
    assert list(tmp_path.iterdir()) == []
