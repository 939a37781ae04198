"""Models with a target on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixfold

from .conftest import Outcome, read_table
from .test_mistakes import check

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


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Two far groups of rows with three classes, and a number, in each."""
    rng = np.random.default_rng(1)
    group, z = np.arange(120) % 2, rng.normal(size=(120, 2))
    X = np.einsum("nij,nj->ni", rng.normal(size=(2, 4, 2))[group], z) + 30.0 * group[:, None]
    frame = pd.DataFrame(X + 0.1 * rng.normal(size=X.shape), columns=list("abcd"))
    frame["group"] = group
    frame["kind"] = np.array(["x", "y", "z"])[np.digitize(z[:, 0], [-0.5, 0.5])]
    frame["size"] = z[:, 1] + 0.1 * rng.normal(size=120)
    path = tmp_path / "groups.csv"
    frame.to_csv(path, index=False)
    return path


def fitted(run: Run, file: Path, name: str, target: str, *words: object) -> Path:
    path = file.parent / f"{name}-{target}.mixfold"
    sizes = [] if name == "supervised-ppca" else ["-d", 2]
    settings = ["-m", name, "-k", 2, *sizes, "--target", target, "--columns", "a,b,c,d"]
    outcome = run("fit", file, *settings, "--seed", 0, "--out", path, *words)
    assert outcome.code == 0, outcome.err
    return path


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("mixture-of-factor-models", "kind"),
        ("supervised-mixture-of-ppca", "kind"),
        ("supervised-mixture-of-ppca", "size"),
    ],
)
def test_transform_writes_the_component_not_the_target(
    run: Run, groups: Path, tmp_path: Path, name: str, target: str
) -> None:
    path, out = fitted(run, groups, name, target), tmp_path / "t.csv"
    assert run("transform", path, groups, "--out", out).code == 0
    table, frame, model = read_table(out), pd.read_csv(groups), mixfold.load(path)
    assert list(table) == ["component", "factor_1", "factor_2"]
    np.testing.assert_array_equal(table["component"], model.predict_component(frame))
    assert len({*zip(table["component"], frame["group"], strict=True)}) == 2
    assert run("transform", path, groups, "--per-component", "--out", out).code == 0
    table = read_table(out)
    assert list(table)[:2] == ["component", "component_0_factor_1"] and len(table) == 5


def test_one_component_has_no_column_and_no_choice(run: Run, groups: Path, tmp_path: Path) -> None:
    path, out = fitted(run, groups, "supervised-ppca", "kind"), tmp_path / "t.csv"
    assert run("transform", path, groups, "--out", out).code == 0
    assert list(read_table(out)) == ["factor_1", "factor_2"]
    outcome = run("transform", path, groups, "--per-component", "--out", out)
    check(outcome, 2, "--per-component", "SupervisedPPCA has a single component")


def test_factors_that_all_components_share_are_not_asked_for_by_each(
    run: Run, groups: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "m.mixfold", tmp_path / "t.csv"
    words = ["-m", "gaussian-pcp", "-k", 3, "-d", 2, "--columns", "a,b,c,d", "--seed", 0]
    assert run("fit", groups, *words, "--out", path).code == 0
    outcome = run("transform", path, groups, "--per-component", "--out", out)
    check(outcome, 2, "--per-component", "GaussianPCP has the same factors in all its components")


@pytest.mark.parametrize("words", [[], ["--set", "tradeoff=10"]])
def test_a_fit_without_a_likelihood_has_a_summary(
    run: Run, people: Path, groups: Path, words: list[str]
) -> None:
    # more than two classes, or classes that count more often than once
    file = people if words else groups
    settings = ["-m", "mixture-of-factor-models", "--target", "kind", "--columns", "a,b,c,d"]
    outcome = run("fit", file, *settings, *words, "--seed", 0, "--out", file.parent / "m.mixfold")
    assert outcome.code == 0, outcome.err
    assert "objective per row" in outcome.out and "BIC" not in outcome.out
    plain = run("fit", people, *settings, "--seed", 0, "--out", people.parent / "m.mixfold")
    assert "log-likelihood per row" in plain.out and "BIC" in plain.out


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("mixture-of-factor-models", "kind"),
        ("supervised-ppca", "kind"),
        ("supervised-mixture-of-ppca", "size"),
    ],
)
def test_a_drawn_target_is_called_so(
    run: Run, groups: Path, tmp_path: Path, name: str, target: str
) -> None:
    path, out = fitted(run, groups, name, target), tmp_path / "s.csv"
    assert run("sample", path, "--rows", 60, "--seed", 3, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == [*"abcd", "target"]
    _, drawn = mixfold.load(path).sample(60, random_state=np.random.RandomState(3))
    if target == "kind":
        assert list(table["target"]) == list(drawn) and len(set(drawn)) == 3
    else:
        np.testing.assert_allclose(table["target"].astype(float), drawn)


def test_no_column_is_lost_to_what_is_drawn_beside(run: Run, groups: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(groups).rename(columns={"a": "target", "b": "component"})
    file, path, out = tmp_path / "n.csv", tmp_path / "m.mixfold", tmp_path / "s.csv"
    frame[["target", "component", "kind"]].to_csv(file, index=False)
    words = ["-m", "supervised-ppca", "-k", 1, "--target", "kind"]
    assert run("fit", file, *words, "--out", path).code == 0
    assert run("sample", path, "--rows", 9, "--out", out).code == 0
    assert list(read_table(out)) == ["target", "component", "target_"]


@pytest.mark.parametrize("dtype", ["float", "Int64"])
def test_minus_one_and_blanks_are_unknown_however_numbers_are_written(
    run: Run, groups: Path, tmp_path: Path, dtype: str
) -> None:
    frame, file = pd.read_csv(groups), tmp_path / "n.csv"
    number = frame["kind"].map({"x": 0, "y": 1, "z": 2}).astype(float)
    number[::3], number[1::3] = np.nan, -1.0
    frame["number"] = number.astype(dtype)
    frame.to_csv(file, index=False)
    assert ("-1.0" in file.read_text().split("\n")[2]) == (dtype == "float")
    model = mixfold.load(fitted(run, file, "supervised-ppca", "number"))
    assert model.classes_.tolist() == [0, 1, 2]
    known = mixfold.SupervisedPPCA(2, random_state=0)
    known.fit(frame[list("abcd")], number.fillna(-1).astype(int))
    np.testing.assert_allclose(model.loadings_, known.loadings_, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float", "Int64"])
def test_blanks_are_no_numbers(run: Run, groups: Path, tmp_path: Path, dtype: str) -> None:
    frame, file = pd.read_csv(groups), tmp_path / "n.csv"
    number = (100 + 10 * frame["size"]).round()
    number[::3], number[1] = np.nan, -1.0
    frame["number"] = number.astype(dtype)
    frame.to_csv(file, index=False)
    words = ["--set", "task=regression"]
    model = mixfold.load(fitted(run, file, "supervised-ppca", "number", *words))
    known = mixfold.SupervisedPPCA(2, task="regression", random_state=0)
    known.fit(frame[list("abcd")], number)  # -1 is a number among numbers
    np.testing.assert_allclose(model.output_mean_, known.output_mean_, rtol=1e-6)
