"""A mixture of kernel PCA: MixtureOfPPCA of the scores of KernelPCA."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from mixfold import KernelPCA, MixtureOfPPCA
from mixfold.contracts import Array


def mixture(seed: int = 0) -> MixtureOfPPCA:
    return MixtureOfPPCA(2, 1, n_init=2, tol=1e-9, random_state=seed)


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    X = rng.normal(size=(200, 1)) * [2.0, 1.0, 0.0] + 0.3 * rng.normal(size=(200, 3))
    X[:80] = X[:80, ::-1] + [4.0, 0.0, 4.0]
    return X


def test_all_axes_of_the_linear_kernel_are_the_columns(rows: Array) -> None:
    columns = mixture().fit(rows)
    scores = KernelPCA(None, kernel="linear").fit_transform(rows)
    features = mixture().fit(scores)
    np.testing.assert_allclose(features.score(scores), columns.score(rows), rtol=1e-6)
    np.testing.assert_allclose(
        np.sort(features.noise_variance_), np.sort(columns.noise_variance_), rtol=1e-3
    )
    assert adjusted_rand_score(features.predict(scores), columns.predict(rows)) == 1


def test_all_axes_of_a_polynomial_are_the_monomials(rows: Array) -> None:
    X = rows[:, :2] / 3
    root = np.sqrt(2)
    explicit = np.column_stack([
        X**2, root * X[:, 0] * X[:, 1], root * X, np.zeros(len(X)),
    ])[:, :5]  # fmt: skip
    scores = KernelPCA(None, kernel="poly", degree=2, gamma=1.0).fit_transform(X)
    assert scores.shape == (200, 5)
    np.testing.assert_allclose(
        scores @ scores.T,
        (explicit - explicit.mean(0)) @ (explicit - explicit.mean(0)).T,
        atol=1e-9,
    )
    one, other = mixture().fit(scores), mixture().fit(explicit)
    np.testing.assert_allclose(one.score(scores), other.score(explicit), rtol=1e-5)
    assert adjusted_rand_score(one.predict(scores), other.predict(explicit)) == 1


def test_bent_clusters_are_found_in_few_axes(rng: np.random.Generator) -> None:
    turn, radius = rng.uniform(0, 7, 400), rng.choice([1.0, 3.0], 400)
    X = radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    X += 0.1 * rng.normal(size=X.shape)
    bends = make_pipeline(KernelPCA(4, gamma=0.5), MixtureOfPPCA(2, 2, n_init=3, random_state=0))
    assert adjusted_rand_score(radius, bends.fit_predict(X)) == 1
    flat = MixtureOfPPCA(2, 1, n_init=3, random_state=0)
    assert adjusted_rand_score(radius, flat.fit_predict(X)) < 0.1


def test_cultivars_of_wine() -> None:
    table = load_wine()
    X = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    model = make_pipeline(KernelPCA(10, gamma=0.04), MixtureOfPPCA(3, 2, n_init=3, random_state=0))
    assert adjusted_rand_score(table.target, model.fit_predict(X)) > 0.85
