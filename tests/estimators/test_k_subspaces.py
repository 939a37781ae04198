"""K-subspaces against a plain implementation, PCA, k-means and enumeration."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import PPCA, KMeans, KSubspaces
from mixfold.contracts import Array


def planes(rng: np.random.Generator, n: int = 80, noise: float = 0.05) -> tuple[Array, Array]:
    """Three planes of two dimensions in five, which cross in one point."""
    bases = np.linalg.qr(rng.normal(size=(3, 5, 2)))[0]
    labels = np.repeat(np.arange(3), n)
    rows = np.einsum("nd,nxd->nx", rng.normal(size=(3 * n, 2)) * 2, bases[labels])
    return rows + noise * rng.normal(size=rows.shape), labels


def cost_of(X: Array, labels: Array, d: int) -> float:
    """Inertia of given clusters, each with its best plane."""
    total = 0.0
    for k in np.unique(labels):
        rows = X[labels == k] - X[labels == k].mean(axis=0)
        total += (np.linalg.svd(rows, compute_uv=False)[d:] ** 2).sum()
    return float(total)


def test_crossing_planes_are_told_apart(rng: np.random.Generator) -> None:
    X, truth = planes(rng)
    model = KSubspaces(3, 2, n_init=3, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.85
    assert adjusted_rand_score(truth, KMeans(3, random_state=0).fit(X).labels_) < 0.2
    assert np.isclose(model.inertia_, cost_of(X, model.labels_, 2), rtol=1e-6)
    assert model.inertia_ < cost_of(X, truth, 2) * 1.001
    assert (np.diff(model.lower_bounds_) > -1e-12).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    distances = model.transform(X)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert np.isclose((distances.min(axis=1) ** 2).sum(), model.inertia_)
    assert np.isclose(((X - model.reconstruct(X)) ** 2).sum(), model.inertia_)
    assert np.isclose(-model.score(X), model.inertia_)


def test_few_rows_reach_the_best_of_all_partitions(rng: np.random.Generator) -> None:
    t = rng.normal(size=8)
    X = np.where(np.arange(8)[:, None] % 2, t[:, None] * [1.0, 1.0], t[:, None] * [1.0, -1.0])
    X = X + 0.1 * rng.normal(size=X.shape)
    every = (np.array(p) for p in itertools.product([0, 1], repeat=8))
    best = min(cost_of(X, p, 1) for p in every if 0 < p.sum() < 8)
    model = KSubspaces(2, 1, n_init=8, tol=0, random_state=0).fit(X)
    assert np.isclose(model.inertia_, best, rtol=1e-6)


def test_one_plane_is_pca_and_points_are_kmeans(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 4)) * [3, 2, 1, 0.5] + 5
    model, pca = KSubspaces(1, 2).fit(X), PCA(2).fit(X)
    np.testing.assert_allclose(np.abs((model.components_[0] * pca.components_).sum(axis=1)), 1)
    np.testing.assert_allclose(model.explained_variance_[0], pca.explained_variance_ * 59 / 60)
    rebuilt = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(model.reconstruct(X), rebuilt, atol=1e-9)
    blobs = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 30, axis=0)
    points = KSubspaces(3, 0, random_state=0).fit(blobs)
    groups = KMeans(3, random_state=0).fit(blobs)
    assert adjusted_rand_score(points.labels_, groups.labels_) == 1
    assert np.isclose(points.inertia_, groups.inertia_)


def test_weights_order_units_and_files(rng: np.random.Generator, tmp_path: Path) -> None:
    X, _ = planes(rng, 30)
    model = KSubspaces(3, 2, random_state=0).fit(X)
    weight = rng.integers(0, 3, len(X)).astype(float)
    heavy = KSubspaces(3, 2, random_state=0).fit(X, sample_weight=weight)
    copies = KSubspaces(3, 2, random_state=0).fit(np.repeat(X, weight.astype(int), axis=0))
    assert np.isclose(heavy.inertia_, copies.inertia_, rtol=1e-6)
    turned = KSubspaces(3, 2, random_state=0).fit(X[::-1])
    np.testing.assert_array_equal(turned.labels_[::-1], model.labels_)
    moved = KSubspaces(3, 2, random_state=0).fit(100 * X + 1e4)
    np.testing.assert_array_equal(moved.labels_, model.labels_)
    np.testing.assert_allclose(moved.inertia_, 1e4 * model.inertia_, rtol=1e-6)
    model.save(tmp_path / "m")
    again = mixfold.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.save(tmp_path / "x.npy", X)
    other = KSubspaces(3, 2, random_state=0).fit(tmp_path / "x.npy")
    np.testing.assert_array_equal(other.labels_, model.labels_)


def test_it_is_a_classifier_by_reconstruction(rng: np.random.Generator) -> None:
    X, truth = planes(rng, 60)
    rebuild = mixfold.MixtureClassifier(
        KSubspaces(1, 2), decision="reconstruction", random_state=0
    ).fit(X, truth)
    assert rebuild.score(X, truth) > 0.9


@pytest.mark.parametrize(
    ("settings", "rows", "words"),
    [
        ({"n_clusters": 0}, np.eye(4), "'n_clusters' parameter"),
        ({"n_components": -1}, np.eye(4), "'n_components' parameter"),
        ({"n_components": 4}, np.eye(4), "n_components=4 must be less than n_features = 4.*lower"),
        ({"n_clusters": 5}, np.eye(4), "n_clusters = 5, n_samples = 4"),
        ({}, np.ones((3, 2001)), "at most 2000 of them; X has 2001. Reduce them first"),
        ({}, np.array([[1.0, np.nan], [2, 3], [4, 5]]), "KSubspaces needs complete rows"),
    ],
)
def test_bad_settings(settings: dict[str, Any], rows: Array, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        KSubspaces(**settings).fit(rows)


@pytest.mark.slow
def test_faces_under_many_lights(shared_data: Any) -> None:
    """People are told apart, where k-means groups by light: the figures of the guide."""
    with np.load(shared_data("yaleb_faces_32x32.npz")) as file:
        X, y = file["X"].astype(float) / 255, file["y"]
    chosen = np.isin(y, np.unique(y)[:5])
    X, y = X[chosen], y[chosen]
    Z = PPCA(40, scale="scores").fit(X).transform(X)
    planes = KSubspaces(5, 4, n_init=10, random_state=0).fit_predict(Z)
    centres = KMeans(5, n_init=5, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, planes) > 0.5
    assert adjusted_rand_score(y, centres) < 0.1
