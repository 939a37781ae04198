"""KernelPCA(missing='expected'): rows with holes, against explicit features and by use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

import mixfold
from mixfold import PPCA, GaussianMixture, KernelPCA
from mixfold.contracts import Array
from mixfold.math.expected_kernels import ExpectedKernel
from mixfold.math.kernels import RbfKernel


def holed(X: Array, share: float, rng: np.random.Generator) -> Array:
    holes = rng.random(X.shape) < share
    holes[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(holes, np.nan, X)


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    X = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(90, 4))
    X[:45, 0] += 4
    return X


def model(**settings: Any) -> KernelPCA:
    return KernelPCA(**{"n_components": 3, "gamma": 0.1, "missing": "expected", **settings})


@pytest.mark.parametrize("settings", [{}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}],
                         ids=str)  # fmt: skip
def test_without_holes_nothing_changes(settings: dict[str, Any], rows: Array) -> None:
    found = model(**settings).fit(rows)
    plain = KernelPCA(3, gamma=0.1, **settings).fit(rows)
    np.testing.assert_allclose(found.eigenvalues_, plain.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(
        np.abs(found.transform(rows)), np.abs(plain.transform(rows)), atol=1e-8
    )
    np.testing.assert_allclose(found.gamma_ or 0, plain.gamma_ or 0)


def test_the_linear_kernel_is_pca_of_what_is_expected(
    rows: Array, rng: np.random.Generator
) -> None:
    X = holed(rows, 0.2, rng)
    columns = GaussianMixture(1, random_state=0).fit(X)
    filled = columns.impute(X)
    found, plain = model(kernel="linear").fit(X), KernelPCA(3, kernel="linear").fit(filled)
    np.testing.assert_allclose(found.eigenvalues_, plain.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(found.transform(X)), np.abs(plain.transform(filled)), atol=1e-5
    )
    # the variance of what is missing is variance
    assert found.explained_variance_ratio_.sum() < plain.explained_variance_ratio_.sum()


def test_the_axes_are_those_of_mean_features(rows: Array, rng: np.random.Generator) -> None:
    """Of many draws of each row, by explicit features of a polynomial."""
    X = holed(rows[:, :2], 0.2, rng)
    columns = GaussianMixture(1, random_state=0).fit(X)
    size = 800
    draws = [columns.impute(X, method="draw", random_state=s) for s in range(size)]

    def features(A: Array) -> Array:  # of (a'b + 1)^2
        a, b = A.T
        root = np.sqrt(2)
        return np.column_stack([a**2, b**2, root * a * b, root * a, root * b, np.ones(len(A))])

    mean = sum(features(A) for A in draws) / size
    centred = mean - mean.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False)[:3] ** 2
    found = model(kernel="poly", degree=2, gamma=1.0).fit(X)
    np.testing.assert_allclose(found.eigenvalues_, values, rtol=0.05)


def test_expected_products_are_nearer_than_those_of_filled_rows(rng: np.random.Generator) -> None:
    table = load_wine()
    X = ((table.data - table.data.mean(axis=0)) / table.data.std(axis=0))[:, [0, 5, 6, 9, 11, 12]]
    Y = holed(X, 0.3, rng)
    columns, kernel = GaussianMixture(1, random_state=0).fit(Y), RbfKernel(0.1)
    expected = ExpectedKernel(kernel, columns.means_[0], columns.covariances_[0])
    whole, others = kernel.block(X, X), ~np.eye(len(X), dtype=bool)
    filled, middle = columns.impute(Y), np.where(np.isnan(Y), 0.0, Y)
    errors = [
        np.sqrt(np.mean((G - whole)[others] ** 2))
        for G in (expected.block(Y, Y), kernel.block(filled, filled), kernel.block(middle, middle))
    ]
    assert errors[0] < 0.9 * errors[1] < 0.9 * 0.9 * errors[2]
    # the model is the one of these products
    found = KernelPCA(3, gamma=0.1, missing="expected").fit(Y)
    given = KernelPCA(3, kernel="precomputed").fit(expected.block(Y, Y))
    np.testing.assert_allclose(found.eigenvalues_, given.eigenvalues_, rtol=1e-5)


def test_what_lacks_more_is_nearer_to_the_middle_and_less_certain(
    rows: Array, rng: np.random.Generator
) -> None:
    found = model().fit(holed(rows, 0.1, rng))
    x = rows[:1]
    one, two, none = (x.copy() for _ in range(3))
    one[0, 0], two[0, :2], none[:] = np.nan, np.nan, np.nan
    errors = [found.reconstruction_error(a)[0] for a in (x, one, two, none)]
    assert errors[0] < errors[1]
    assert errors[1] < errors[3]
    lengths = [np.linalg.norm(found.transform(a)) for a in (x, none)]
    assert lengths[1] < lengths[0]
    assert np.isfinite(found.score_samples(none)).all()


def test_weights_streams_and_files(rows: Array, rng: np.random.Generator, tmp_path: Path) -> None:
    X = holed(rows, 0.15, rng)
    weight = rng.integers(0, 3, len(X)).astype(float)
    weighted = model().fit(X, sample_weight=weight)
    repeated = model().fit(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(
        weighted.explained_variance_, repeated.explained_variance_, rtol=1e-5
    )
    found = model().fit(X)
    found.save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), found.transform(X))
    np.testing.assert_array_equal(loaded.score_samples(X), found.score_samples(X))
    # the Gaussian of the columns is that of the first batch
    stream = model().fit(X[:60]).partial_fit(X[60:])
    assert stream.transform(X).shape == (90, 3)
    again = found.inverse_transform(found.transform(X))
    assert np.isfinite(again).all()
    np.testing.assert_allclose(
        model(solver="em", max_iter=1000).fit(X).eigenvalues_, found.eigenvalues_, rtol=1e-4
    )


@pytest.mark.parametrize(
    "kernel", ["laplacian", "cosine", pytest.param(lambda A, B: A @ B.T, id="function")]
)
def test_kernels_without_a_closed_form(kernel: Any, rows: Array) -> None:
    with pytest.raises(ValueError, match="needs a kernel whose expectation has a closed form"):
        model(kernel=kernel).fit(rows)


def test_what_does_not_go_with_holes(rows: Array, rng: np.random.Generator) -> None:
    X = holed(rows, 0.1, rng)
    for settings in ({"landmarks": 20}, {"kernel": "linear", "solver": "primal"}):
        with pytest.raises(ValueError, match="works by the kernel matrix of all rows"):
            model(**settings).fit(X)
    with pytest.raises(ValueError, match="a kernel needs complete rows"):
        KernelPCA(2).fit(X)
    with pytest.raises(ValueError, match="compares densities of complete rows"):
        model(gamma="learn").fit(X)
    with pytest.raises(ValueError, match="The 'missing' parameter of KernelPCA"):
        model(missing="drop").fit(X)
    # a model that was fitted without holes takes none
    plain = KernelPCA(2).fit(PPCA(2).fit(X).impute(X))
    with pytest.raises(ValueError, match="a kernel needs complete rows"):
        plain.transform(X)
