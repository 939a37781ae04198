"""Factor models on the command line: fitted, applied a piece at a time, and shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixfold
from mixfold.cli.registry import MODELS

from .conftest import COLUMNS, Example, Outcome, read_table
from .test_mistakes import check

Run = Callable[..., Outcome]
SINGLE = ("ppca", "factor-analysis")
MIXTURES = ("mixture-of-ppca", "mixture-of-factor-analyzers")


@pytest.fixture
def fitted(run: Run, example: Example, tmp_path: Path) -> Callable[[str], Path]:
    """Fit a model of one factor to the three columns; mixtures have two components."""

    def fit(name: str) -> Path:
        path = tmp_path / f"{name}.mixfold"
        size = ["-k", 1] if name in SINGLE else ["-k", 2, "--factors", 1]
        words = ["--model", name, *size, "--columns", ",".join(COLUMNS), "--seed", 0]
        outcome = run("fit", example.parquet, *words, "--out", path)
        assert outcome.code == 0, outcome.err
        return path

    return fit


def stacked(table: dict[str, np.ndarray], start: str) -> np.ndarray:
    return np.column_stack([values for name, values in table.items() if name.startswith(start)])


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("kind", ["parquet", "csv", "npy"])
def test_transform_equals_the_model(
    run: Run, example: Example, fitted: Any, tmp_path: Path, name: str, kind: str
) -> None:
    model, out = fitted(name), tmp_path / "latents.parquet"
    outcome = run("transform", model, getattr(example, kind), "--out", out)
    assert outcome.code == 0, outcome.err
    assert f"wrote {out} (90 rows)" in outcome.out
    table = read_table(out)
    assert list(table) == ["factor_1"]
    expected = mixfold.load(model).transform(example.source)
    np.testing.assert_allclose(table["factor_1"], expected[:, 0], rtol=1e-9, atol=1e-12)
    assert np.std(table["factor_1"]) > 0.5


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_also_give_the_component(
    run: Run, example: Example, fitted: Any, tmp_path: Path, name: str
) -> None:
    path, out = fitted(name), tmp_path / "latents.csv"
    assert run("transform", path, example.csv, "--out", out).code == 0
    table, model = read_table(out), mixfold.load(path)
    assert list(table) == ["component", "factor_1"]
    np.testing.assert_array_equal(table["component"], model.predict(example.source))
    expected = model.transform(example.source)
    np.testing.assert_allclose(table["factor_1"], expected[:, 0], rtol=1e-9, atol=1e-12)

    assert run("transform", path, example.csv, "--per-component", "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["component", "component_0_factor_1", "component_1_factor_1"]
    each = model.transform(example.source, per_component=True)
    np.testing.assert_allclose(stacked(table, "component_"), each[:, :, 0], rtol=1e-9, atol=1e-12)
    assert np.abs(each[:, 0] - each[:, 1]).max() > 0.1


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "posterior") for name in (*SINGLE, *MIXTURES)),
        *((name, "least-squares") for name in ("ppca", "mixture-of-ppca")),
        ("mixture-of-factor-analyzers", "hard"),
        ("factor-analysis", "weighted"),
    ],
)
def test_reconstruct_equals_the_model(
    run: Run, example: Example, fitted: Any, tmp_path: Path, name: str, method: str
) -> None:
    path, out = fitted(name), tmp_path / "smooth.parquet"
    outcome = run("reconstruct", path, example.parquet, "--method", method, "--out", out)
    assert outcome.code == 0, outcome.err
    table = read_table(out)
    assert tuple(table) == COLUMNS
    rows = np.column_stack(list(table.values()))
    expected = mixfold.load(path).reconstruct(example.source, method=method)
    np.testing.assert_allclose(rows, expected, rtol=1e-9)
    # complete, and not the table itself
    assert np.isfinite(rows).all() and np.nanmax(np.abs(rows - example.X)) > 0.01


def test_pieces_give_the_same_as_the_whole(
    run: Run, example: Example, fitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = fitted("ppca"), tmp_path / "t.parquet"
    sizes: list[int] = []
    transform = mixfold.PPCA.transform

    def watch(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(X.n_samples)
        return transform(self, X, *args, **kwargs)

    monkeypatch.setattr(mixfold.PPCA, "transform", watch)
    monkeypatch.setattr("mixfold.cli.data._LEAST_ROWS", 1)
    monkeypatch.setattr("mixfold.cli.data._PIECE", 3 * 32)
    assert run("transform", path, example.parquet, "--out", out).code == 0
    pieces = [size for size in sizes if size > 3]  # loading asks the model about three rows
    assert sum(pieces) == 90 and max(pieces) <= 32
    monkeypatch.undo()
    expected = mixfold.load(path).transform(example.source)[:, 0]
    np.testing.assert_allclose(read_table(out)["factor_1"], expected, rtol=1e-9, atol=1e-12)


def test_a_model_without_factors_is_refused(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    kmeans, out = tmp_path / "k.mixfold", tmp_path / "t.csv"
    assert run("fit", example.npy, "--model", "kmeans", "-k", 2, "--out", kmeans).code == 0
    for command in ("transform", "reconstruct"):
        for path, name in ((model_file, "GaussianMixture"), (kmeans, "KMeans")):
            outcome = run(command, path, example.npy, "--out", out)
            check(outcome, 2, name, command, ", ".join(SINGLE), ", ".join(MIXTURES))
    assert not out.exists()


def test_what_makes_no_sense_for_one_component_is_refused(
    run: Run, example: Example, fitted: Any, tmp_path: Path
) -> None:
    path, out = fitted("ppca"), tmp_path / "t.csv"
    words = [path, example.npy, "--out", out]
    check(run("transform", *words, "--per-component"), 2, "--per-component", "PPCA")
    check(run("reconstruct", *words, "--method", "hard"), 1, "posterior, least-squares", "'hard'")
    check(run("reconstruct", *words, "--method", "soft"), 2, "--method", "least-squares")
    able = "gaussian-mixture, bayesian-gaussian-mixture"
    check(run("predict", *words), 2, "PPCA", "predict", able)
    assert not out.exists()


def test_factors_belong_to_mixtures(run: Run, example: Example, tmp_path: Path) -> None:
    words = ["--out", tmp_path / "m", "--factors", 1]
    for name in ("gaussian-mixture", "ppca"):
        outcome = run("fit", example.npy, "--model", name, *words)
        check(outcome, 2, "--factors", name, ", ".join(MIXTURES))
    outcome = run("fit", example.npy, "-m", MIXTURES[0], *words, "--set", "n_factors=2")
    check(outcome, 2, "n_factors", "--factors", "keep one")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*SINGLE, *MIXTURES])
def test_sizes_reach_the_model_and_the_other_commands_work(
    run: Run, example: Example, fitted: Any, tmp_path: Path, name: str
) -> None:
    path, out = fitted(name), tmp_path / "out.parquet"
    model = mixfold.load(path)
    if name in SINGLE:
        assert model.n_components == 1 and model.loadings_.shape == (3, 1)
    else:
        assert (model.n_components, model.n_factors) == (2, 1)
        assert model.loadings_.shape == (2, 3, 1)
    outcome = run("score", path, example.parquet, "--out", out)
    assert outcome.code == 0, outcome.err
    densities = model.score_samples(example.source)
    np.testing.assert_allclose(read_table(out)["log_density"], densities, rtol=1e-9)
    assert run("impute", path, example.parquet, "--out", out).code == 0
    filled = np.column_stack(list(read_table(out).values()))
    known = ~np.isnan(example.X)
    np.testing.assert_array_equal(filled[known], example.X[known])
    assert np.isfinite(filled).all()
    assert run("sample", path, "--rows", 40, "--seed", 1, "--out", out).code == 0
    drawn = read_table(out)
    assert tuple(drawn) == (*COLUMNS, *(["component"] if name in MIXTURES else []))
    assert len(np.unique(drawn["height"])) == 40


@pytest.mark.parametrize("name", [*SINGLE, *MIXTURES])
def test_the_summary_and_inspect_show_the_parts(
    run: Run, example: Example, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "m.mixfold"
    size = ["-k", 1] if name in SINGLE else ["-k", 2, "-d", 1]
    words = ["--model", name, *size, "--seed", 0, "--out", path]
    fit = run("fit", example.npy, *words)
    shown = run("inspect", path)
    assert (fit.code, shown.code) == (0, 0), fit.err + shown.err
    model = mixfold.load(path)
    if name in SINGLE:
        assert "variance explained" in fit.out
        expected = ["mean", "noise", "factor 1", f"{model.loadings_[0, 0]:.4g}"]
    else:
        expected = ["component", "explained", "0.333", "0.667", f"{model.means_[0, 0]:.4g}"]
    for text in expected:
        assert text in fit.out and text in shown.out
    assert MODELS[name].estimator in shown.out


def test_the_output_may_not_be_the_input(tmp_path):
    import numpy as np
    import pytest

    from mixfold import PPCA
    from mixfold.cli import main

    rng = np.random.default_rng(0)
    table, model = tmp_path / "t.csv", tmp_path / "m.mixfold"
    np.savetxt(table, rng.normal(size=(30, 3)), delimiter=",", header="a,b,c", comments="")
    before = table.read_text()
    PPCA(1).fit(table).save(model)
    for command in ("reconstruct", "transform", "impute"):
        with pytest.raises(SystemExit) as end:
            main([command, str(model), str(table), "--out", str(table)])
        assert end.value.code == 2
    assert table.read_text() == before
