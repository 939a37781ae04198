"""Each command does for a file what the estimator does for an array."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixfold
from mixfold.engine.sources import open_source

from .conftest import COLUMNS, Example, Outcome, read_table

Run = Callable[..., Outcome]


def agree(labels: np.ndarray, group: np.ndarray) -> bool:
    """Equal up to the names of two groups."""
    return bool((labels == group).all() or (labels == 1 - group).all())


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy"])
def test_fit_reads_every_format(run: Run, example: Example, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "m.mixfold"
    choice = [] if kind == "npy" else ["--columns", ",".join(COLUMNS)]
    outcome = run("fit", getattr(example, kind), *choice, "-k", 2, "--seed", 0, "--out", out)
    assert outcome.code == 0, outcome.err
    model = mixfold.load(out)
    assert agree(model.predict(example.source), example.group)
    reference = mixfold.GaussianMixture(2, random_state=0).fit(example.X)
    np.testing.assert_allclose(model.means_, reference.means_, rtol=1e-6)


def test_fit_prints_a_summary(run: Run, example: Example, tmp_path: Path) -> None:
    out = tmp_path / "m.mixfold"
    outcome = run("fit", example.npy, "-k", 2, "--seed", 0, "--out", out)
    model = mixfold.load(out)
    for text in ("gaussian-mixture", "90 rows, 3 columns", "converged", "yes", str(out)):
        assert text in outcome.out
    assert f"{model.bic(example.source):.6g}" in outcome.out
    for weight in model.weights_:
        assert f"{weight:.3f}" in outcome.out


def test_quiet_prints_nothing(run: Run, example: Example, tmp_path: Path) -> None:
    outcome = run("fit", example.npy, "-k", 2, "-q", "--out", tmp_path / "m.mixfold")
    assert outcome == Outcome(0, "", "")


def test_settings_reach_the_model(run: Run, example: Example, tmp_path: Path) -> None:
    out = tmp_path / "m.mixfold"
    words = ["--set", "covariance_type=diag", "--set", "tol=1e-5", "--seed", 3]
    assert run("fit", example.npy, "-k", 2, *words, "--out", out).code == 0
    model = mixfold.load(out)
    assert (model.covariance_type, model.tol, model.n_components) == ("diag", 1e-5, 2)
    assert model.random_state == 3
    assert model.covariances_.shape == (2, 3)


def test_weights_count_rows_and_are_not_fitted(run: Run, example: Example, tmp_path: Path) -> None:
    out = tmp_path / "m.mixfold"
    words = ["--weights", "count", "-k", 2, "--seed", 0, "--out", out]
    assert run("fit", example.parquet, *words).code == 0
    model = mixfold.load(out)
    assert list(model.feature_names_in_) == list(COLUMNS)
    share = example.weight[example.group == 1].sum() / example.weight.sum()
    assert sorted(model.weights_)[0] == pytest.approx(share, rel=1e-6)


def test_kmeans(run: Run, example: Example, tmp_path: Path) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "labels.csv"
    words = ["--model", "kmeans", "--components", 2, "--seed", 0, "--out", model]
    outcome = run("fit", example.npy, *words)
    assert outcome.code == 0, outcome.err
    assert "inertia" in outcome.out
    assert run("predict", model, example.npy, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["component"]
    assert agree(table["component"], example.group)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "npy"])
def test_predict_equals_the_model(
    run: Run, example: Example, model_file: Path, tmp_path: Path, kind: str, suffix: str
) -> None:
    out = tmp_path / f"labels{suffix}"
    outcome = run("predict", model_file, getattr(example, kind), "--proba", "--out", out)
    assert outcome.code == 0, outcome.err
    assert f"wrote {out} (90 rows)" in outcome.out
    table = read_table(out)
    chances = mixfold.load(model_file).predict_proba(example.source)
    assert list(table) == ["component", "probability", "probability_0", "probability_1"]
    np.testing.assert_array_equal(table["component"], chances.argmax(axis=1))
    np.testing.assert_allclose(table["probability"], chances.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(table["probability_1"], chances[:, 1], rtol=1e-9, atol=1e-300)


def test_score_prints_the_mean_and_writes_the_rows(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "density.parquet"
    outcome = run("score", model_file, example.csv, "--out", out)
    densities = mixfold.load(model_file).score_samples(example.source)
    np.testing.assert_allclose(read_table(out)["log_density"], densities, rtol=1e-9)
    assert "rows 90" in outcome.out
    assert f"log-density per row {densities.mean():.6g}" in outcome.out
    assert list(read_table(out)) == ["log_density", "oddness"]
    odd = mixfold.load(model_file).oddness(example.source)
    np.testing.assert_allclose(read_table(out)["oddness"], odd, atol=1e-9)


def test_score_of_cells(run: Run, example: Example, model_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "cells.parquet"
    assert run("score", model_file, example.csv, "--cells", "--out", out).code == 0
    table, model = read_table(out), mixfold.load(model_file)
    cells = model.oddness(example.source, by="cell", n_draws=500)
    names = [f"oddness_{name}" for name in model.feature_names_in_]
    assert list(table) == ["log_density", "oddness", *names]
    found = np.column_stack([np.asarray(table[name], float) for name in names])
    np.testing.assert_allclose(found, cells, atol=1e-9)


def test_score_needs_no_output_file(run: Run, example: Example, model_file: Path) -> None:
    before = sorted(model_file.parent.iterdir())
    assert "log-density per row" in run("score", model_file, example.npy).out
    assert sorted(model_file.parent.iterdir()) == before


def test_impute_fills_and_keeps(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "complete.parquet"
    assert run("impute", model_file, example.parquet, "--out", out).code == 0
    table = read_table(out)
    assert tuple(table) == COLUMNS
    filled = np.column_stack(list(table.values()))
    known = ~np.isnan(example.X)
    np.testing.assert_array_equal(filled[known], example.X[known])
    np.testing.assert_allclose(filled, mixfold.load(model_file).impute(example.source), rtol=1e-9)


def test_drawn_entries_follow_the_seed(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    def draw(name: str, seed: int) -> Any:
        out = tmp_path / name
        words = ["--method", "draw", "--seed", seed, "--out", out]
        assert run("impute", model_file, example.parquet, *words).code == 0
        return np.column_stack(list(read_table(out).values()))

    first, again, other = draw("a.parquet", 1), draw("b.parquet", 1), draw("c.parquet", 2)
    missing = np.isnan(example.X)
    np.testing.assert_array_equal(first, again)
    assert (first[missing] != other[missing]).all()
    np.testing.assert_array_equal(first[~missing], example.X[~missing])


def test_sample_follows_the_seed_and_the_model(run: Run, model_file: Path, tmp_path: Path) -> None:
    def draw(name: str, seed: int) -> dict[str, np.ndarray]:
        out = tmp_path / name
        assert run("sample", model_file, "--rows", 300, "--seed", seed, "--out", out).code == 0
        return read_table(out)

    first, again, other = draw("a.csv", 1), draw("b.csv", 1), draw("c.csv", 2)
    assert (*COLUMNS, "component") == tuple(first)
    assert len(first["height"]) == 300
    np.testing.assert_array_equal(first["depth"], again["depth"])
    assert not np.isin(first["depth"], other["depth"]).any()
    X = np.column_stack([first[name] for name in COLUMNS])
    assert (mixfold.load(model_file).predict(open_source(X)) == first["component"]).all()


def test_large_samples_are_drawn_in_portions_that_differ(
    run: Run, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixfold.cli.sample._ROWS_AT_ONCE", 40)
    out = tmp_path / "new.parquet"
    assert run("sample", model_file, "-n", 100, "--seed", 0, "--out", out).code == 0
    assert len(np.unique(read_table(out)["height"])) == 100


def test_a_file_is_read_in_pieces(
    run: Run, example: Example, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    score_samples = mixfold.GaussianMixture.score_samples

    def watch(self: Any, X: Any) -> Any:
        sizes.append(X.n_samples)
        return score_samples(self, X)

    monkeypatch.setattr(mixfold.GaussianMixture, "score_samples", watch)
    monkeypatch.setattr("mixfold.cli.data._LEAST_ROWS", 1)
    monkeypatch.setattr("mixfold.cli.data._PIECE", 3 * 32)
    out = tmp_path / "density.csv"
    outcome = run("score", model_file, example.parquet, "--out", out)
    pieces = [size for size in sizes if size > 3]  # loading asks the model about three rows
    assert sum(pieces) == 90 and max(pieces) <= 32
    monkeypatch.undo()
    densities = mixfold.load(model_file).score_samples(example.source)
    np.testing.assert_allclose(read_table(out)["log_density"], densities, rtol=1e-9)
    assert f"{densities.mean():.6g}" in outcome.out


def test_columns_in_another_order_are_found_by_name(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(example.parquet)
    swapped, out = tmp_path / "swapped.parquet", tmp_path / "density.csv"
    extra = pa.array(["text"] * table.num_rows)
    table = table.select(["depth", "count", "height", "width"]).append_column("note", extra)
    parquet.write_table(table, swapped)
    assert run("score", model_file, swapped, "--out", out).code == 0
    densities = mixfold.load(model_file).score_samples(example.source)
    np.testing.assert_allclose(read_table(out)["log_density"], densities, rtol=1e-9)


def test_inspect_shows_what_a_file_holds(run: Run, model_file: Path) -> None:
    outcome = run("inspect", model_file)
    assert outcome.code == 0, outcome.err
    for text in ("GaussianMixture", *COLUMNS):
        assert text in outcome.out
    content = json.loads(run("inspect", model_file, "--json").out)
    assert "GaussianMixture" in json.dumps(content)
