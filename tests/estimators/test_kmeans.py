"""KMeans for its users: a drop-in for scikit-learn's, on real tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from unittest import SkipTest

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import cluster
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import mixfold
from mixfold import KMeans
from mixfold.contracts import Array


def blobs(rng: np.random.Generator, n: int, D: int = 4, K: int = 5) -> tuple[Array, Array]:
    labels = rng.integers(K, size=n)
    return 6 * rng.normal(size=(K, D))[labels] + rng.normal(size=(n, D)), labels


def same_fit(a: KMeans, b: KMeans, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, rtol=rtol)
    assert a.inertia_ == pytest.approx(b.inertia_, rel=rtol)


# ------------------------------------------------ against scikit-learn


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks() -> None:
    failed, skipped, count = {}, {}, 0
    for estimator, check in estimator_checks_generator(KMeans(3, random_state=0), mark=None):
        count += 1
        try:
            check(estimator)
        except SkipTest as reason:
            skipped[check.func.__name__] = reason
        except Exception as error:
            failed[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 50 and not skipped and not failed, (skipped, failed)


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
    groups = KMeans(3, init="k-means||", random_state=0).fit(X)
    assert sorted(np.bincount(groups.labels_)) == [3, 3, 19_994]


# ------------------------------------------------ streams


def test_a_stream_is_learned(rng: np.random.Generator) -> None:
    X, truth = blobs(rng, 20_000)
    groups = KMeans(5, random_state=0)
    for part in np.split(X, 40):
        groups.partial_fit(part)
        assert len(groups.labels_) == len(part)
    whole = KMeans(5, random_state=0).fit(X)
    assert groups.n_iter_ == 40
    assert adjusted_rand_score(truth, groups.predict(X)) > 0.99
    assert -groups.score(X) < 1.01 * whole.inertia_
    last = ((X[-500:, None] - groups.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(groups.labels_, np.argmin(last, axis=1))


def test_a_stream_follows_what_moves(rng: np.random.Generator) -> None:
    groups = KMeans(2, random_state=0)
    for step in range(60):
        low, high = rng.normal(size=(50, 1)), rng.normal(size=(50, 1)) + 20 + step / 4
        groups.partial_fit(np.concatenate([low, high]))
    centres = np.sort(groups.cluster_centers_[:, 0])
    assert abs(centres[0]) < 0.5 and 30 < centres[1] < 35.5


def test_batches_may_be_small_weighted_or_weightless(rng: np.random.Generator) -> None:
    X, _ = blobs(rng, 200)
    groups = KMeans(5, random_state=0).partial_fit(X)
    before = groups.cluster_centers_.copy()
    groups.partial_fit(X[:1], sample_weight=[2.0])
    assert not np.array_equal(before, groups.cluster_centers_)
    again = groups.fit(X).n_iter_
    assert again == KMeans(5, random_state=0).fit(X).n_iter_  # fit starts afresh


# ------------------------------------------------ stopping, events, files


def test_degenerate_tables_are_told() -> None:
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_cl"):
        groups = KMeans(4, random_state=0).fit(X)
    assert groups.inertia_ == 0 and {event.kind for event in groups.events_} == {"empty"}


def test_reseeded_clusters_are_recorded_and_not_warned_of() -> None:
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]])
    groups = KMeans(3, init=[[0.0], [9.0], [1e6]]).fit(X)
    assert [(event.kind, event.component) for event in groups.events_] == [("reseed", 2)]
    assert len(np.unique(groups.labels_)) == 3


def test_max_iter_and_time_budget_are_told(rng: np.random.Generator) -> None:
    X = rng.normal(size=(3000, 5))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        short = KMeans(20, init="random", random_state=0, max_iter=2).fit(X)
    assert (short.n_iter_, short.stop_reason_, short.converged_) == (2, "max_iter", False)
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        KMeans(50, init="random", n_init=10_000, random_state=0, time_budget=0.2).fit(X)
    assert time.monotonic() - began < 20


def test_n_init_keeps_the_best(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 6))
    few = KMeans(12, init="random", random_state=0, tol=0).fit(X)
    many = KMeans(12, init="random", random_state=0, tol=0, n_init="auto").fit(X)
    assert many.inertia_ < few.inertia_
    same_fit(many, KMeans(12, init="random", random_state=0, tol=0, n_init=10).fit(X))


def test_checkpoint_resumes(rng: np.random.Generator, tmp_path: Path) -> None:
    X, path = rng.normal(size=(2000, 4)), tmp_path / "fit.checkpoint"
    model = KMeans(15, init=X[:15], tol=0, checkpoint=path, time_budget=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        model.fit(X)
    assert path.exists()
    with pytest.raises(ValueError, match="belongs to another fit: init"):
        clone(model).set_params(init=X[1:16], time_budget=None).fit(X)
    resumed = clone(model).set_params(time_budget=None).fit(X)
    assert not path.exists()
    whole = KMeans(15, init=X[:15], tol=0).fit(X)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert resumed.inertias_ == whole.inertias_


@pytest.mark.parametrize("init", ["k-means++", "array"])
def test_save_and_load(rng: np.random.Generator, tmp_path: Path, init: str) -> None:
    X, _ = blobs(rng, 500)
    X[::7, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    groups = KMeans(5, init=X[1:6] if init == "array" else init, random_state=0).fit(frame)
    groups.save(tmp_path / "groups.mixfold")
    loaded = mixfold.load(tmp_path / "groups.mixfold")
    np.testing.assert_array_equal(loaded.cluster_centers_, groups.cluster_centers_)
    np.testing.assert_array_equal(loaded.predict(frame), groups.labels_)
    np.testing.assert_array_equal(loaded.transform(frame), groups.transform(frame))
    for name in ("inertia_", "n_iter_", "events_", "stop_reason_", "inertias_"):
        assert getattr(loaded, name) == getattr(groups, name)
    assert list(loaded.feature_names_in_) == list("abcd")
    assert repr(loaded.get_params()) == repr(groups.get_params())


def test_pandas_output_and_names() -> None:
    X = load_iris(as_frame=True).data
    table = KMeans(3, random_state=0).set_output(transform="pandas").fit_transform(X)
    assert list(table.columns) == ["kmeans0", "kmeans1", "kmeans2"] and len(table) == len(X)


# ------------------------------------------------ mistakes

X = np.arange(20.0).reshape(10, 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter of KMeans must be an int >= 1. Got 0"),
        ({"n_clusters": 11}, "n_samples=10 should be >= n_clusters=11. Lower n_clusters"),
        ({"init": "kmeans"}, "'init' .* must be one of 'k-means\\+\\+', .* or an array of shape"),
        ({"init": [1.0, 2.0]}, "'init' parameter .* an array of shape"),
        ({"init": X[:3]}, r"centers \(3, 2\) does not match the number of clusters, 2. Give"),
        ({"init": X[:2, :1]}, r"centers \(2, 1\) does not match the number of features .* 2. Give"),
        ({"init": [[0, 0], [np.nan, 1]]}, "'init' should be finite"),
        ({"n_init": 0}, "'n_init' parameter .* or one of 'auto'. Got 0"),
        ({"tol": -1}, "'tol' parameter .* a number >= 0"),
        ({"max_iter": 0}, "'max_iter' parameter .* an int >= 1"),
        ({"time_budget": 0}, "'time_budget'"),
        ({"executor": "cluster"}, "executor must be 'threads', 'dask'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KMeans(**{"n_clusters": 2, **parameters}).fit(X)


@pytest.mark.parametrize(
    ("table", "weight", "message"),
    [
        (np.empty((0, 2)), None, "0 sample"),
        (np.where(X == 3, np.inf, X), None, "infinity"),
        (np.column_stack([X, np.full(10, np.nan)]), None, "without any observed entry: 2"),
        (np.full((5, 2), "a"), None, "could not convert string|must hold numbers"),
        (X, np.zeros(10), "weigh"),
        (X, -np.ones(10), "negative|weight"),
        (X, np.ones(9), "9"),
    ],
)
def test_wrong_tables(table: Any, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KMeans(2).fit(table, sample_weight=weight)


def test_wrong_use() -> None:
    with pytest.raises(NotFittedError):
        KMeans(2).predict(X)
    groups = KMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="3 features, but KMeans is expecting 2"):
        groups.transform(np.ones((4, 3)))
    with pytest.raises(ValueError, match="3 features, but KMeans is expecting 2"):
        KMeans(2, random_state=0).partial_fit(X).partial_fit(np.ones((4, 3)))
