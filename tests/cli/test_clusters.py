"""``mixfold cluster`` does for a file what MixtureClustering does for an array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mixfold

from .conftest import Example, Outcome, read_table

Run = Callable[..., Outcome]


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """A ring around a blob, in a file."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    X = 4 * np.c_[np.cos(angle), np.sin(angle)] + 0.3 * rng.normal(size=(300, 2))
    X[:100] = 0.5 * rng.normal(size=(100, 2))
    np.save(tmp_path / "ring.npy", X)
    return tmp_path / "ring.npy"


def test_it_tells_of_the_clusters_and_writes_all_that_is_wanted(
    run: Run, ring: Path, tmp_path: Path
) -> None:
    names = ("c.mixfold", "tree.png", "labels.csv", "page.html")
    out, tree, table, page = (tmp_path / name for name in names)
    outcome = run(
        "cluster", ring, "--max-components", 8, "--seed", 0, "--out", out, "--plot", tree,
        "--table", table, "--report", page,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    X = np.load(ring)
    model = mixfold.load(out)
    K = model.mixture_.n_components
    assert f"2 clusters made of {K} components" in outcome.out
    written = read_table(table)
    np.testing.assert_array_equal(written["cluster"], model.predict(X))
    np.testing.assert_allclose(written["probability"], model.predict_proba(X).max(axis=1))
    assert set(np.bincount(written["cluster"])) == {100, 200}
    assert tree.read_bytes().startswith(b"\x89PNG")
    shown = run("inspect", out)
    assert shown.code == 0, shown.err
    lone = int(np.flatnonzero(model.cluster_of_component_ == 1)[0])
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.out.splitlines()]
    assert ["1", "0.333", "1", str(lone)] in lines
    found = tmp_path / "found.csv"
    assert run("predict", out, ring, "--out", found).code == 0
    np.testing.assert_array_equal(read_table(found)["cluster"], written["cluster"])
    assert f"2 clusters made of {K} components" in page.read_text()
    for name in names:
        assert f"wrote {tmp_path / name}" in outcome.out.replace("\n", "")


def test_a_number_a_threshold_and_another_mixture(run: Run, example: Example) -> None:
    few = ("--max-components", 3, "--seed", 0)
    outcome = run("cluster", example.npy, "--n-clusters", 1, *few)
    assert outcome.code == 0 and "1 cluster made of" in outcome.out
    outcome = run("cluster", example.npy, "--threshold", 1, "--set", "covariance_type=diag", *few)
    assert outcome.code == 0, outcome.err
    outcome = run("cluster", example.npy, "--family", "diag", "--quiet", *few)
    assert outcome.code == 0 and outcome.out == ""


def test_mistakes(run: Run, example: Example) -> None:
    outcome = run("cluster", example.npy, "--n-clusters", 2, "--threshold", 0.1)
    assert outcome.code == 2 and "leave one of both out" in outcome.err
    outcome = run("cluster", example.npy, "--n-clusters", 5, "--max-components", 2)
    assert outcome.code == 1 and "set max_components to 5 or more" in outcome.err
    outcome = run("cluster", example.npy, "--model", "kmeans")
    assert outcome.code == 1 and "estimator must be a mixture" in outcome.err
    outcome = run("cluster", example.npy, "--model", "gaussian-mixture", "--family", "poisson")
    assert outcome.code == 2 and "has its own family" in " ".join(outcome.err.split())
