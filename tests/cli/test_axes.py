"""Models by a kernel on the command line: fitted, applied, shown, and what they cannot do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mixfold
from mixfold.cli.axes import axes_weights, kernel_facts

from .conftest import Outcome, read_table
from .test_mistakes import check, squeezed
from .test_parts import line, printed

Run = Callable[..., Outcome]
COLUMNS = ["east", "north", "height"]
RBF = ("--set", "kernel=rbf", "--set", "gamma=0.5")
NOISES = ("--set", "input_noise=1e-3", "--set", "output_noise=1e-3")


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rings, one within the other; some do not say which. A column of text, one with holes."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 7, 120), rng.choice([1.0, 3.0], 120)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(120)])
    frame = pd.DataFrame(X + 0.1 * rng.normal(size=X.shape), columns=COLUMNS)
    frame["ring"] = np.where(radius > 2, "outer", "inner")
    frame["truth"], frame["size"] = frame["ring"], radius + 0.1 * rng.normal(size=120)
    frame.loc[::3, "ring"] = None
    frame["hole"] = frame["east"].where(np.arange(120) % 9 > 0)
    path = tmp_path_factory.mktemp("rings") / "rings.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def fitted(run: Run, rings: Path, tmp_path: Path) -> Callable[..., tuple[Path, Outcome]]:
    """A model of the three columns, and what its fit said."""

    def fit(name: str, *words: object) -> tuple[Path, Outcome]:
        path = tmp_path / f"{name}.mixfold"
        settings = ["-m", name, "--columns", ",".join(COLUMNS), "--seed", 0, "--out", path]
        outcome = run("fit", rings, *settings, *words)
        assert outcome.code == 0, outcome.err
        return path, outcome

    return fit


def rows_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)[COLUMNS]


def columns_of(table: dict[str, np.ndarray]) -> np.ndarray:
    return np.column_stack(list(table.values()))


# ------------------------------------------------ kernel PCA


def test_kernel_pca_is_that_of_the_library(
    run: Run, rings: Path, fitted: Any, tmp_path: Path
) -> None:
    path, outcome = fitted("kernel-pca", "-k", 3, "--set", "gamma=0.5")
    model = mixfold.KernelPCA(3, gamma=0.5, random_state=0).fit(rows_of(rings))
    out = tmp_path / "t.parquet"
    assert run("transform", path, rings, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["factor_1", "factor_2", "factor_3"]
    np.testing.assert_allclose(columns_of(table), model.transform(rows_of(rings)), atol=1e-9)
    scored = run("score", path, rings, "--out", out)
    density = model.score_samples(rows_of(rings))
    np.testing.assert_allclose(read_table(out)["log_density"], density, rtol=1e-9)
    assert f"log-density per row {density.mean():.6g}" in scored.out
    assert run("reconstruct", path, rings, "--out", out).code == 0
    again = columns_of(read_table(out))
    assert list(read_table(out)) == COLUMNS
    expected = model.inverse_transform(model.transform(rows_of(rings)))
    np.testing.assert_allclose(again, expected, atol=1e-7)
    assert f"{model.explained_variance_ratio_.sum():.1%}" in outcome.out


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["--set", "gamma=0.5"], ["rbf, gamma 0.5", "120 rows", "dense"]),
        (["--set", "landmarks=40"], ["rbf, gamma 0.3333", "40 landmarks", "primal"]),
        (["--set", "kernel=poly"], ["poly, degree 3, gamma 0.3333, coef0 1", "120 rows", "dense"]),
        (["--set", "kernel=linear"], ["linear", "no rows", "primal"]),
    ],
)
def test_the_kernel_and_its_axes_are_shown(
    run: Run, fitted: Any, words: list[str], facts: list[str]
) -> None:
    path, outcome = fitted("kernel-pca", "-k", 2, *words)
    shown, model = run("inspect", path), mixfold.load(path)
    assert shown.code == 0, shown.err
    for text in (outcome.out, shown.out):
        assert all(fact in text for fact in facts)
        value, share = model.eigenvalues_[0], model.explained_variance_ratio_[0]
        assert line(text, "axis 1")[1:3] == [f"{value:.4g}", f"{share:.1%}"]
        # axes are of columns only where the features are these
        head = next(row for row in text.splitlines() if "eigenvalue" in row)
        assert all((name in head) == ("linear" in facts) for name in COLUMNS)


def test_many_axes_are_cut_and_none_is_no_failure() -> None:
    rng = np.random.default_rng(0)
    text = printed(mixfold.KernelPCA(15, gamma=0.5).fit(rng.normal(size=(60, 3))))
    assert "axis 12" in text and "axis 13" not in text and "3 more axes" in text
    with pytest.warns(mixfold.DegenerateWarning, match="do not differ"):
        alike = mixfold.KernelPCA(2).fit(np.ones((5, 2)))
    assert "eigenvalue" in printed(alike) and "axis 1" not in printed(alike)


def test_columns_make_room_for_what_axes_explain() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 9))
    text = printed(mixfold.MORP(1).fit(X, X[:, 0]))
    assert "x3" in text and "x4" not in text and "5 more columns" in text
    text = printed(mixfold.KernelPCA(1, kernel="linear").fit(X))
    assert "x4" in text and "x5" not in text and "4 more columns" in text


def test_weights_of_columns_are_those_of_the_scores() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) * [3, 2, 1], rng.normal(size=60)
    models = [
        mixfold.KernelPCA(2, kernel="linear").fit(X),
        mixfold.KernelPCA(2, kernel="linear", solver="dense").fit(X),
        mixfold.MORP(2).fit(X, y),
        mixfold.KernelCCA(1).fit(X, y),
    ]
    for model in models:
        expected = (X - X.mean(axis=0)) @ axes_weights(model)
        np.testing.assert_allclose(model.transform(X), expected, atol=1e-9)
        assert f"{axes_weights(model)[0, 0]:.4g}" in printed(model)


def test_a_kernel_matrix_may_be_a_file(run: Run, rings: Path, tmp_path: Path) -> None:
    X = rows_of(rings).to_numpy()
    file, path, out = (tmp_path / name for name in ("g.npy", "m.mixfold", "t.csv"))
    np.save(file, X @ X.T)
    for words, kept in (([], "120 rows"), (["--set", "landmarks=30"], "30 landmarks")):
        settings = ["-m", "kernel-pca", "--set", "kernel=precomputed", *words, "--out", path]
        outcome = run("fit", file, *settings)
        assert outcome.code == 0, outcome.err
        assert f"no rows: new ones come as products with {kept}" in " ".join(outcome.out.split())
        assert run("transform", path, file, "--out", out).code == 0
        expected = np.abs(mixfold.KernelPCA(2, kernel="linear").fit_transform(X))
        np.testing.assert_allclose(np.abs(columns_of(read_table(out))), expected, atol=1e-6)
    check(run("score", path, file), 2, "KernelPCA has no log-density")


# ------------------------------------------------ with a target


@pytest.mark.parametrize("words", [RBF, ("--set", "kernel=rbf", "--set", "landmarks=60")])
def test_morp_projects_and_predicts(
    run: Run, rings: Path, fitted: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path, outcome = fitted("morp", "-k", 2, "--target", "ring", *words)
    model, frame, out = mixfold.load(path), pd.read_csv(rings), tmp_path / "t.csv"
    assert outcome.out.count("beta") == 1 and "of target" in outcome.out
    share = f"{model.explained_output_ratio_[0]:.1%}"
    assert line(run("inspect", path).out, "axis 1")[3] == share
    assert run("predict", path, rings, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["prediction"]
    assert np.mean(table["prediction"] == frame["truth"]) > 0.95
    assert run("transform", path, rings, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["factor_1", "factor_2"], "a prediction is no component"
    np.testing.assert_allclose(columns_of(table), model.transform(frame), rtol=1e-6, atol=1e-9)
    check(run("predict", path, rings, "--proba", "--out", out), 2, "without probabilities")


def test_several_targets_are_predicted_side_by_side(run: Run, rings: Path, tmp_path: Path) -> None:
    frame, path, out = pd.read_csv(rings), tmp_path / "m.mixfold", tmp_path / "p.csv"
    sizes = frame[["size", "size"]].to_numpy() * [1.0, -2.0]
    targets = {"kind": frame["ring"].to_numpy(), "sizes": sizes}
    model = mixfold.MORP(2, kernel="rbf", gamma=0.5).fit(frame[COLUMNS], targets)
    model.save(path)
    assert run("predict", path, rings, "--out", out).code == 0
    table, expected = read_table(out), model.predict(frame[COLUMNS])
    assert list(table) == ["prediction_kind", "prediction_sizes_0", "prediction_sizes_1"]
    np.testing.assert_allclose(table["prediction_sizes_1"], expected["sizes"][:, 1], rtol=1e-9)


def test_kernel_cca_projects_and_predicts_nothing(
    run: Run, rings: Path, fitted: Any, tmp_path: Path
) -> None:
    path, outcome = fitted("kernel-cca", "-k", 1, "--target", "size", *RBF)
    model, out = mixfold.load(path), tmp_path / "t.csv"
    assert line(outcome.out, "pair 1")[1] == f"{model.correlations_[0]:.4g}"
    assert model.correlations_[0] > 0.9
    assert run("transform", path, rings, "--out", out).code == 0
    scores = read_table(out)["factor_1"]
    np.testing.assert_allclose(scores, model.transform(rows_of(rings))[:, 0], rtol=1e-9)
    refused = run("predict", path, rings, "--out", out)
    check(refused, 2, "a KernelCCA has no predict", "supervised-ppca", "morp")
    assert "gaussian-mixture" not in refused.err, "which predicts groups, no target"


def test_supervised_ppca_takes_a_kernel(run: Run, rings: Path, fitted: Any, tmp_path: Path) -> None:
    path, outcome = fitted("supervised-ppca", "-k", 3, "--target", "ring", *RBF, *NOISES)
    model, frame, out = mixfold.load(path), pd.read_csv(rings), tmp_path / "t.csv"
    said = " ".join(outcome.out.split())
    assert "rbf, gamma 0.5" in said and "120 rows" in said
    assert "among models of one kernel" in said
    shown = run("inspect", path).out
    assert line(shown, "factor 1")[1:] == [f"{model.explained_variance_ratio_[0]:.1%}"]
    assert run("predict", path, rings, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["prediction", "probability"]
    assert np.mean(table["prediction"] == frame["truth"]) > 0.95
    assert run("transform", path, rings, "--out", out).code == 0
    np.testing.assert_allclose(
        columns_of(read_table(out)), model.transform(frame), rtol=1e-6, atol=1e-9
    )
    assert run("score", path, rings).code == 0
    for command in ("impute", "reconstruct"):
        refused = run(command, path, rings, "--out", out)
        check(refused, 2, f"no {command}", "Use kernel=None", "supervised-mixture-of-ppca")
        assert "supervised-ppca" not in squeezed(refused.err), "what it is already"
    check(run("sample", path, "--out", out), 2, "no sample", "Use kernel=None")


def test_without_a_kernel_nothing_is_said_of_one(fitted: Any) -> None:
    path, outcome = fitted("supervised-ppca", "-k", 1, "--target", "ring")
    assert "keeps" not in outcome.out and line(outcome.out, "mean")
    assert kernel_facts(mixfold.load(path)) == {}


# ------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kernel-pca", []),
        ("kernel-pca", ["--set", "landmarks=20"]),
        ("morp", ["--target", "ring"]),
        ("kernel-cca", ["--target", "ring"]),
        ("supervised-ppca", ["--target", "ring", *RBF]),
    ],
)
def test_missing_entries_are_told_with_a_remedy(
    run: Run, rings: Path, tmp_path: Path, name: str, words: list[str]
) -> None:
    out = tmp_path / "m.mixfold"
    outcome = run("fit", rings, "-m", name, "--columns", "hole,north", *words, "--out", out)
    check(outcome, 1, "error:", "NaN", "complete rows", "impute")
    assert not out.exists()


def test_missing_entries_of_new_rows_are_told(
    run: Run, rings: Path, fitted: Any, tmp_path: Path
) -> None:
    path, out = fitted("kernel-pca")[0], tmp_path / "t.csv"
    outcome = run("transform", path, rings, "--columns", "hole,north,height", "--out", out)
    check(outcome, 1, "complete rows", "impute")
    assert not out.exists()


def test_mistakes_are_told(run: Run, rings: Path, fitted: Any, tmp_path: Path) -> None:
    path, out = fitted("kernel-pca")[0], tmp_path / "t.csv"
    words = ["fit", rings, "-m", "kernel-pca", "--out", tmp_path / "m"]
    check(run(*words), 1, "column 'ring'", "must hold numbers")
    check(run(*words, "--columns", "east", "--set", "kernel=gauss"), 1, "'rbf'", "Got 'gauss'")
    check(run(*words, "--target", "ring"), 2, "kernel-pca predicts no column", "morp, kernel-cca")
    check(run("fit", rings, "-m", "morp", "--out", out), 2, "morp needs the name of the column")
    check(run("predict", path, rings, "--out", out), 2, "a KernelPCA has no predict")
    check(run("sample", path, "--out", out), 2, "a KernelPCA has no sample")
    hard = run("reconstruct", path, rings, "--method", "hard", "--out", out)
    check(hard, 2, "--method", "in one way")
    check(run("select", rings, "-m", "kernel-pca"), 2, "no likelihood of the columns")
    assert not out.exists()
