"""``mixfold select`` does for a file what MixtureSearch does for an array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer

import mixfold
from mixfold.cli.values import parse_grid, parse_numbers, split_values

from .conftest import COLUMNS, Example, Outcome, read_table

Run = Callable[..., Outcome]


@pytest.fixture
def few(example: Example) -> tuple[object, ...]:
    kind = ("--set", "covariance_type=full", "--set", "init_params=random_from_data")
    return (example.npy, "-k", "1:3", *kind, "--seed", 0)


def words_of(outcome: Outcome) -> str:
    return " ".join(outcome.out.split())


def test_it_prints_the_table_and_the_winner_and_writes_the_best(
    run: Run, example: Example, tmp_path: Path
) -> None:
    out, picture, table = (tmp_path / n for n in ("best.mixfold", "curve.png", "all.csv"))
    outcome = run(
        "select", example.npy, "--components", "1:3", "--set", "covariance_type=full,diag",
        "--seed", 0, "--out", out, "--plot", picture, "--table", table,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    search = mixfold.MixtureSearch(
        {"gaussian-mixture": mixfold.GaussianMixture()},
        {"covariance_type": ["full", "diag"]},
        n_components=(1, 2, 3),
        random_state=0,
    ).fit(example.X)
    best = search.best_params_
    assert best == {"n_components": 2, "covariance_type": "diag"}
    words = words_of(outcome)
    assert "best by bic: gaussian-mixture, diag, with 2 components" in words
    assert f"bic {search.best_score_:.6g}" in words
    for value in search.results_["bic"]:
        assert f"{value:.6g}" in words
    for path in (out, picture, table):
        assert f"wrote {path.name}" in words.replace(f"{tmp_path}/", "")
    model = mixfold.load(out)
    assert (model.n_components, model.covariance_type) == (2, "diag")
    np.testing.assert_allclose(model.means_, search.best_estimator_.means_, rtol=1e-9)
    assert picture.read_bytes().startswith(b"\x89PNG")
    written = read_table(table)
    np.testing.assert_allclose(written["bic"], search.results_["bic"], rtol=1e-12)
    assert list(written["param_covariance_type"]) == ["full"] * 3 + ["diag"] * 3


def test_it_explains_itself(run: Run) -> None:
    outcome = run("select", "--help")
    assert outcome.code == 0
    assert "mixfold select" in outcome.out and "[bold]" not in outcome.out
    assert "select" in run("--help").out


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy"])
def test_held_out_rows_of_every_format(
    run: Run, example: Example, tmp_path: Path, kind: str
) -> None:
    table = tmp_path / "all.parquet"
    choice = [] if kind == "npy" else ["--columns", ",".join(COLUMNS)]
    outcome = run(
        "select", getattr(example, kind), *choice, "-k", "1,2", "-c", "held-out", "--folds", 3,
        "--seed", 1, "--table", table, "--out", tmp_path / "m", "--set", "init_params=k-means++",
        "--set", "covariance_type=full",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    quick = mixfold.GaussianMixture(init_params="k-means++")
    expected = mixfold.MixtureSearch(
        quick, n_components=(1, 2), criterion="held-out", cv=3, random_state=1
    ).fit(example.X)
    np.testing.assert_allclose(
        read_table(table)["held_out"], expected.results_["held_out"], rtol=1e-6
    )
    assert "best by held-out: gaussian-mixture with 2 components" in words_of(outcome)
    assert "±" in outcome.out
    names = getattr(mixfold.load(tmp_path / "m"), "feature_names_in_", None)
    assert names is None if kind == "npy" else list(names) == list(COLUMNS)


def test_weights_count_rows_also_when_rows_are_held_out(
    run: Run, example: Example, tmp_path: Path
) -> None:
    table = tmp_path / "all.csv"
    words = ["-k", 2, "--weights", "count", "--folds", 2, "--seed", 1, "--table", table]
    outcome = run("select", example.parquet, *words)
    assert outcome.code == 0, outcome.err
    expected = mixfold.MixtureSearch(n_components=2, cv=2, random_state=1)  # the same kinds
    expected.fit(example.X, sample_weight=example.weight)
    for name in ("bic", "held_out", "held_out_se"):
        np.testing.assert_allclose(read_table(table)[name], expected.results_[name], rtol=1e-6)


def test_kinds_of_model_and_numbers_of_factors(run: Run, few: tuple[object, ...]) -> None:
    models = ["-m", "gaussian-mixture", "-m", "mixture-of-ppca", "-d", "1:2"]
    words = words_of(run("select", *few, *models))
    for text in ("gaussian-mixture", "n_factors=1", "n_factors=2", "next:"):
        assert text in words


def test_counts_are_searched_by_their_family(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson([[3, 20]] * 50 + [[20, 3]] * 30)
    np.save(tmp_path / "counts.npy", counts)
    words = ["-m", "mixture", "--family", "poisson", "-k", "1:3", "--seed", 0]
    outcome = run("select", tmp_path / "counts.npy", *words, "--out", tmp_path / "m")
    assert outcome.code == 0, outcome.err
    model = mixfold.load(tmp_path / "m")
    assert (model.family, model.n_components) == ("poisson", 2)


def test_settings_with_one_value_are_fixed(
    run: Run, few: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "m"
    assert run("select", *few, "--set", "tol=1e-3", "-j", 2, "-o", out).code == 0
    model = mixfold.load(out)
    assert (model.tol, model.init_params, model.verbose) == (1e-3, "random_from_data", 0)


def test_quiet_and_progress(run: Run, few: tuple[object, ...]) -> None:
    assert run("select", *few, "-q") == Outcome(0, "", "")
    assert "fit 3 of 3: gaussian-mixture(n_components=3" in run("select", *few).err


def test_failures_are_told_below_the_table(run: Run, example: Example) -> None:
    kind = ("-m", "gaussian-mixture")
    words = words_of(run("select", example.npy, *kind, "-k", "1,500", "--seed", 0))
    assert "1 failed; the first: ValueError: Expected n_samples >= n_components" in words
    outcome = run("select", example.npy, "-k", "500", "-q")
    assert outcome.code == 1
    assert outcome.err.startswith("error: None of the 4 settings")


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_fit_at_the_floor_is_explained(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(80, 2)), np.tile([[9.0, 9.0]], (4, 1))])
    np.save(tmp_path / "rows.npy", X)
    words = ["select", tmp_path / "rows.npy", "-m", "gaussian-mixture", "-k", "1,2", "--seed", 0]
    outcome = run(*words)
    assert "at floor: a variance would have become zero" in words_of(outcome)
    assert "with 1 component," in words_of(outcome)
    allowed = run(*words, "--allow-degenerate")
    assert "with 2 components," in words_of(allowed)
    assert "warning: the best setting" in allowed.err


def test_tests_are_reported(run: Run, few: tuple[object, ...]) -> None:
    assert "test of 2 components against fewer: p = 0.25" in words_of(
        run("select", *few, "--test", 3)
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-m", "kmeans"], "a kmeans has no likelihood of the columns to compare"),
        (["-m", "gausian"], "there is no model 'gausian'"),
        (["-k", "0:3"], "numbers from 1 on"),
        (["-k", "3:1"], "numbers from 1 on"),
        (["-k", "1:5:0"], "numbers from 1 on"),
        (["-k", "a"], "numbers from 1 on"),
        (["-d", "2"], "none of the models has such a parameter; it is for: "),
        (["-m", "mixture-of-ppca", "-d", "1", "--set", "n_factors=2"], "keep one"),
        (["--family", "poisson"], "it is for: mixture."),
        (["--set", "covarance_type=full"], "Did you mean 'covariance_type'?"),
        (["--set", "covariance_type=full,"], "a value between commas"),
        (["--set", "n_components=2"], "'n_components' is given with --components"),
        (["-c", "dic"], "dic"),
        (["--plot", "curve.jpg"], "must end in .png or .pdf or .svg"),
        (["--table", "t.xlsx"], "must end in .parquet or .csv"),
        (["--out", "nowhere/m"], "does not exist"),
    ],
)
def test_mistakes_are_usage_errors(
    run: Run, example: Example, words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    outcome = run("select", example.npy, *words)
    assert outcome.code == 2
    squeezed = "".join(outcome.err.replace("│", " ").split())
    assert "".join(expected.split()) in squeezed


def test_the_data_are_not_overwritten(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.zeros((5, 2)))
    outcome = run("select", path, "--out", path)
    assert outcome.code == 2 and "overwrite" in outcome.err


def test_several_values_of_a_parameter() -> None:
    assert split_values("'a,b', (1, 2),none") == ["a,b", (1, 2), None]
    assert parse_grid(["tol=1e-3,1e-4", "warm_start=true"], ["tol", "warm_start"]) == {
        "tol": [1e-3, 1e-4],
        "warm_start": [True],
    }
    assert parse_numbers("1:9:4, 2", "-k", 1) == [1, 2, 5, 9]
    with pytest.raises(typer.BadParameter, match="set twice"):
        parse_grid(["tol=1", "tol=2"], ["tol"])


@pytest.mark.parametrize("more", [[], ["--criterion", "held-out", "--folds", 2]])
def test_a_page_has_the_comparison(
    run: Run, example: Example, tmp_path: Path, more: list[object]
) -> None:
    page = tmp_path / "page.html"
    outcome = run("select", example.csv, "-k", "1:3", "--seed", 0, "--report", page, *more)
    assert outcome.code == 0, outcome.err
    assert f"wrote {page}" in outcome.out.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert "12 settings compared by" in text and "90 rows" in text and example.csv.name in text
    assert all(name in text for name in COLUMNS)


def test_a_page_is_html(run: Run, example: Example) -> None:
    outcome = run("select", example.csv, "--report", "page.txt")
    assert outcome.code == 2 and "--report" in outcome.err and ".html" in outcome.err
