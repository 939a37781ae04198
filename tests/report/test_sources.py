"""Rows from anywhere give the same page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mixfold import GaussianMixture, KMeans, LatentDirichletAllocation, MultinomialMixture

NAMES = ["height", "width", "depth", "girth"]


def body(page) -> str:
    """All but the time."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "", page.text)


@pytest.fixture
def table(holed: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(holed, columns=NAMES)
    frame["kind"] = np.array(["a", "b", None], dtype=object)[np.arange(len(holed)) % 3]
    frame["times"] = np.arange(len(holed)) % 3
    return frame


def test_frames_and_files(page, table: pd.DataFrame, tmp_path: Path) -> None:
    model = GaussianMixture(3, random_state=0).fit(table[NAMES])
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    sides = {"sample_weight": "times"}
    expected = body(page(model, table, "kind", **sides))
    given = page(model, table[NAMES], table["kind"], sample_weight=table["times"].to_numpy())
    assert body(given) == expected
    assert "total weight" in given.words["head"]
    for name in ("t.parquet", "t.csv"):
        assert body(page(model, tmp_path / name, "kind", **sides)) == expected, name


def test_a_model_without_names_takes_a_file(page, table: pd.DataFrame, tmp_path: Path) -> None:
    model = GaussianMixture(3, random_state=0).fit(table[NAMES].to_numpy())
    table.drop(columns="times").to_parquet(tmp_path / "t.parquet")
    found = page(model, tmp_path / "t.parquet", "kind")
    assert "labels" in found.sections


def test_float32_and_memory_maps(page, holed: np.ndarray, tmp_path: Path) -> None:
    model = KMeans(3, random_state=0).fit(holed.astype(np.float32))
    np.save(tmp_path / "X.npy", holed.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert body(page(model, mapped)) == body(page(model, tmp_path / "X.npy"))


def test_rows_with_names(page, table: pd.DataFrame) -> None:
    model = GaussianMixture(3, random_state=0).fit(table[NAMES])
    named = table[NAMES].set_axis([f"patient {i} <x>" for i in range(len(table))])
    found = page(model, named)
    oddest = int(np.argmin(model.score_samples(named)))
    assert (
        f"patient {oddest} <x>" in found.words["novelty"] and "row 1" not in found.words["novelty"]
    )
    assert "\\u003cx\\u003e" in found.text
    counted = table[NAMES].reset_index(drop=True)
    assert "row" in page(model, counted).words["novelty"]


def test_labels_of_other_classes(page, holed: np.ndarray) -> None:
    from mixfold import MixtureClassifier

    y = np.arange(len(holed)) % 2
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(holed, y)
    found = page(model, holed, np.full(len(holed), "other"))
    assert "classes" not in found.sections
    assert "no given label is a class of the model (0 and 1)" in found.words["left-out"]


def test_numbers_that_were_not_fitted_colour_the_map(page, mixture, holed: np.ndarray) -> None:
    found = page(mixture, holed, np.linspace(0, 1, len(holed)))
    assert '"name":"target","values":[0.0,' in found.text


def test_wide_rows_are_sampled_less(page, rng: np.random.Generator, monkeypatch) -> None:
    monkeypatch.setattr("mixfold.report.rows.summary._SAMPLED", 1000)
    X = rng.normal(size=(400, 5))
    found = page(GaussianMixture(1).fit(X), X)
    assert "A sample of 200 of 400 rows" in found.words["map"]


def test_sparse_counts(page, rng: np.random.Generator) -> None:
    dense = rng.poisson(np.where(np.arange(30) // 15 == (np.arange(120) % 2)[:, None], 2.0, 0.1))
    counts = sparse.csr_array(dense.astype(float))
    for model in (
        MultinomialMixture(2, random_state=0),
        LatentDirichletAllocation(2, random_state=0),
    ):
        found = page(model.fit(counts), counts, np.arange(120) % 2)
        assert {"map", "labels", "novelty"} <= set(found.sections)
        if isinstance(model, MultinomialMixture):  # of documents nothing can be missing
            assert "No entry is missing" in found.words["missing"]


def test_dask(page, holed: np.ndarray, mixture: GaussianMixture) -> None:
    array = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")
    assert body(page(mixture, array.from_array(holed, chunks=(70, 4)))) == body(
        page(mixture, holed)
    )


def test_a_saved_model_has_the_same_page(page, mixture, holed: np.ndarray, tmp_path: Path) -> None:
    import mixfold

    mixture.save(tmp_path / "m.mixfold")
    assert body(page(mixfold.load(tmp_path / "m.mixfold"), holed)) == body(page(mixture, holed))
