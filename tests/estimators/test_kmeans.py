"""KMeans for its users: a drop-in for scikit-learn's, on real tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import cluster
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from mixfold import DegenerateWarning, KMeans
from mixfold.contracts import Array


def blobs(rng: np.random.Generator, n: int, D: int = 4, K: int = 5) -> tuple[Array, Array]:
    labels = rng.integers(K, size=n)
    return 6 * rng.normal(size=(K, D))[labels] + rng.normal(size=(n, D)), labels


def same_fit(a: KMeans, b: KMeans, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, rtol=rtol)
    assert a.inertia_ == pytest.approx(b.inertia_, rel=rtol)


# ------------------------------------------------ against scikit-learn


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_matrix, sparse.csc_array, np.asfortranarray]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_same_as_scikit_learn_from_the_same_start(
    rng: np.random.Generator, kind: Any, weighted: bool
) -> None:
    X = load_digits().data
    weight = rng.integers(0, 4, len(X)).astype(float) if weighted else None
    ours = KMeans(10, init=X[:10], tol=0).fit(kind(X), sample_weight=weight)
    theirs = cluster.KMeans(10, init=X[:10], n_init=1, tol=0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-12)
    np.testing.assert_allclose(ours.transform(kind(X)), theirs.transform(X), rtol=1e-9)
    assert ours.labels_.dtype == theirs.labels_.dtype


def test_default_tolerance_ends_no_worse_than_scikit_learns() -> None:
    X = load_digits().data
    strict = [KMeans(20, init=X[s : s + 20], tol=0).fit(X).inertia_ for s in range(0, 200, 40)]
    ours = [KMeans(20, init=X[s : s + 20]).fit(X).inertia_ for s in range(0, 200, 40)]
    theirs = [
        cluster.KMeans(20, init=X[s : s + 20], n_init=1).fit(X).inertia_ for s in range(0, 200, 40)
    ]
    assert np.mean(np.divide(ours, strict)) <= np.mean(np.divide(theirs, strict)) + 1e-5
    assert max(np.divide(ours, strict)) < 1.002


def test_start_is_as_good_as_scikit_learns() -> None:
    X = load_digits().data
    ours = [KMeans(10, random_state=s).fit(X).inertia_ for s in range(8)]
    theirs = [cluster.KMeans(10, random_state=s, n_init=1).fit(X).inertia_ for s in range(8)]
    assert np.mean(ours) <= np.mean(theirs)


# ------------------------------------------------ invariances


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_threads_change_no_bit(rng: np.random.Generator, init: str, missing: float) -> None:
    X, _ = blobs(rng, 12_000)
    X[rng.random(X.shape) < missing] = np.nan
    one = KMeans(5, init=init, random_state=1, n_jobs=1).fit(X)
    two = KMeans(5, init=init, random_state=1, n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


@pytest.mark.parametrize("init", ["k-means++", "k-means||"])
def test_blocks_do_not_matter(rng: np.random.Generator, init: str) -> None:
    X, _ = blobs(rng, 11_000)
    whole = KMeans(5, init=init, random_state=0).fit(X)
    for rows in (377, 5000):
        parts = KMeans(5, init=init, random_state=0).fit(da.from_array(X, chunks=(rows, -1)))
        same_fit(parts, whole, 1e-8)
        np.testing.assert_array_equal(parts.labels_, whole.labels_)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_weight_two_is_repetition_and_zero_absence(rng: np.random.Generator, init: str) -> None:
    X, _ = blobs(rng, 300)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(0, 4, 300)
    repeated = np.repeat(X, weight, axis=0)[rng.permutation(weight.sum())]
    weighted = KMeans(4, init=init, random_state=5).fit(X, sample_weight=weight)
    same_fit(weighted, KMeans(4, init=init, random_state=5).fit(repeated))
    assert weighted.score(X, sample_weight=weight) == pytest.approx(-weighted.inertia_)
    assert len(weighted.labels_) == 300


def test_offset_changes_nothing(rng: np.random.Generator) -> None:
    X, truth = blobs(rng, 2000)
    near = KMeans(5, random_state=0).fit(X)
    far = KMeans(5, random_state=0).fit(X + 1e8)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)
    assert adjusted_rand_score(truth, far.labels_) > 0.99


def test_float32(rng: np.random.Generator) -> None:
    X, _ = blobs(rng, 3000)
    double = KMeans(5, random_state=0).fit(X)
    single = KMeans(5, random_state=0).fit(X.astype(np.float32))
    assert single.cluster_centers_.dtype == np.float32
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    same_fit(single, double, 1e-5)
    np.testing.assert_array_equal(single.predict(X.astype(np.float32)), single.labels_)


def test_sparse_is_dense(rng: np.random.Generator) -> None:
    X = np.where(rng.random((1500, 8)) < 0.6, 0.0, blobs(rng, 1500, 8)[0])
    start = X[:6].copy()
    dense = KMeans(6, init=start).fit(X)
    for missing in (False, True):
        if missing:
            X[(rng.random(X.shape) < 0.1) & (X != 0)] = np.nan
            dense = KMeans(6, init=start).fit(X)
        thin = KMeans(6, init=start).fit(sparse.csr_array(X))
        same_fit(thin, dense)
        np.testing.assert_array_equal(thin.labels_, dense.labels_)
        np.testing.assert_allclose(thin.transform(X), dense.transform(X), rtol=1e-9)
        np.testing.assert_array_equal(dense.predict(sparse.csr_array(X)), dense.labels_)


# ------------------------------------------------ missing entries


def test_missing_entries_are_left_out(rng: np.random.Generator) -> None:
    X, truth = blobs(rng, 1500)
    holes = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    groups = KMeans(5, random_state=0).fit(holes)
    assert adjusted_rand_score(truth, groups.labels_) > 0.9
    squared = np.nansum((holes[:, None] - groups.cluster_centers_) ** 2, axis=2)
    np.testing.assert_array_equal(groups.labels_, np.argmin(squared, axis=1))
    np.testing.assert_allclose(groups.transform(holes), np.sqrt(squared), rtol=1e-9)
    assert groups.inertia_ == pytest.approx(squared.min(axis=1).sum(), rel=1e-10)
    for k, centre in enumerate(groups.cluster_centers_):
        np.testing.assert_allclose(centre, np.nanmean(holes[groups.labels_ == k], axis=0))
    assert (np.diff(groups.inertias_) <= 0).all()


@pytest.mark.slow
def test_real_table_with_missing_entries(shared_data: Any) -> None:
    with np.load(shared_data("nhanes_2017_2018_adults.npz"), allow_pickle=False) as file:
        tables = [file[name] for name in file.files if file[name].ndim == 2]
    X = next(table for table in tables if table.dtype.kind == "f")
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    two = KMeans(2, random_state=0).fit(X)
    six = KMeans(6, random_state=0).fit(X)
    assert np.isnan(X).any() and six.converged_
    assert six.inertia_ < 0.95 * two.inertia_ < np.nansum(X**2)
    assert (np.bincount(six.labels_, minlength=6) > 0).all()


# ------------------------------------------------ sources


def test_files_and_tables(rng: np.random.Generator, tmp_path: Path) -> None:
    X, _ = blobs(rng, 6000)
    weight = rng.integers(0, 3, 6000).astype(float)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(w=weight)
    frame.to_parquet(tmp_path / "t.parquet")
    np.save(tmp_path / "t.npy", X)
    expected = KMeans(5, random_state=0).fit(X, sample_weight=weight)
    for table in (frame, tmp_path / "t.parquet"):
        groups = KMeans(5, random_state=0).fit(table, sample_weight="w")
        same_fit(groups, expected)
        np.testing.assert_array_equal(groups.labels_, expected.labels_)
        assert list(groups.feature_names_in_) == list("abcd")
    mapped = KMeans(5, random_state=0).fit(tmp_path / "t.npy", sample_weight=weight)
    same_fit(mapped, expected)
    np.testing.assert_array_equal(mapped.predict(X), expected.labels_)


def test_oversampling_finds_small_clusters(rng: np.random.Generator) -> None:
    X = rng.normal(size=(20_000, 2))
    X[:3] += [300.0, 0.0]
    X[3:6] += [0.0, 300.0]
    with pytest.warns(DegenerateWarning, match="holds few rows .weight 3 of 20000. far away"):
        groups = KMeans(3, init="k-means||", random_state=0).fit(X)
    assert sorted(np.bincount(groups.labels_)) == [3, 3, 19_994]
