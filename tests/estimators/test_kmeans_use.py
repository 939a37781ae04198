"""KMeans in use: streams, stopping, files, mistakes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import KMeans
from mixfold.contracts import Array


def blobs(rng: np.random.Generator, n: int, D: int = 4, K: int = 5) -> tuple[Array, Array]:
    labels = rng.integers(K, size=n)
    return 6 * rng.normal(size=(K, D))[labels] + rng.normal(size=(n, D)), labels


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
    ten = KMeans(12, init="random", random_state=0, tol=0, n_init=10).fit(X)
    np.testing.assert_array_equal(many.cluster_centers_, ten.cluster_centers_)


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
        ({"n_init": 0}, "'n_init' parameter .* or 'auto'. Got 0"),
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
        (np.full((5, 2), "a"), None, "holds text|must hold numbers"),
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
