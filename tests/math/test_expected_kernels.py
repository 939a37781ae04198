"""Expected kernels of rows with holes: quadrature, many draws, and what is positive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array
from mixfold.math.expected_kernels import ExpectedKernel, expected_kernel
from mixfold.math.kernels import (
    CosineKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RbfKernel,
)

RNG = np.random.default_rng(7)
ROOT = RNG.normal(size=(4, 4))
MEAN, COVARIANCE = np.array([1.0, -2.0, 0.5, 3.0]), ROOT @ ROOT.T / 2 + 0.2 * np.eye(4)
KERNELS = [RbfKernel(0.3), RbfKernel(0.05, MEAN), LinearKernel(), PolynomialKernel(1, 0.5, 1.0),
           PolynomialKernel(2, 0.5, 1.0), PolynomialKernel(3, 0.2, 0.0),
           PolynomialKernel(4, 0.1, 0.7)]  # fmt: skip
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(n: int = 6) -> Array:
    X = RNG.multivariate_normal(MEAN, COVARIANCE, n)
    X[RNG.random(X.shape) < 0.35] = np.nan
    X[0], X[1] = np.nan, MEAN + 1  # nothing, and everything, is seen
    return X


def draws(x: Array, size: int, rng: np.random.Generator) -> Array:
    """Rows that have the observed entries of x, by the conditional Gaussian written out."""
    lacks = np.isnan(x)
    seen = ~lacks
    out = np.tile(x, (size, 1))
    if lacks.any():
        inverse = np.linalg.inv(COVARIANCE[np.ix_(seen, seen)])
        gain = COVARIANCE[np.ix_(lacks, seen)] @ inverse
        mean = MEAN[lacks] + gain @ (x[seen] - MEAN[seen])
        spread = COVARIANCE[np.ix_(lacks, lacks)] - gain @ COVARIANCE[np.ix_(seen, lacks)]
        out[:, lacks] = rng.multivariate_normal(mean, spread, size)
    return out


@kernels
def test_products_are_means_over_draws(kernel: Any) -> None:
    expected, X, size = ExpectedKernel(kernel, MEAN, COVARIANCE), rows(), 4_000
    Y = X[::-1][:4]
    G, own = expected.block(X, Y), expected.diagonal(X)
    for i in range(len(X)):
        A = draws(X[i], size, RNG)
        values = kernel.diagonal(A)
        error = values.std() / np.sqrt(size)
        assert abs(values.mean() - own[i]) <= 6 * error + 1e-9 * abs(own[i])
        for j in range(len(Y)):
            B = draws(Y[j], size, RNG)
            # k(a, b) of pairs of rows: the diagonal of a block, 100 rows at a time
            pairs = np.concatenate([
                np.diagonal(kernel.block(A[k : k + 100], B[k : k + 100]))
                for k in range(0, size, 100)
            ])  # fmt: skip
            error = pairs.std() / np.sqrt(size)
            assert abs(pairs.mean() - G[i, j]) <= 6 * error + 1e-9 * abs(G[i, j])


@kernels
def test_one_missing_entry_is_an_integral(kernel: Any) -> None:
    x, y = np.array([0.5, np.nan, 1.0, 2.0]), np.array([1.0, -1.0, 0.0, np.nan])
    expected = ExpectedKernel(kernel, MEAN, COVARIANCE)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def points(row: Array) -> Array:
        lacks = np.isnan(row)
        seen = ~lacks
        gain = COVARIANCE[lacks][:, seen] @ np.linalg.inv(COVARIANCE[np.ix_(seen, seen)])
        mean = MEAN[lacks] + gain @ (row[seen] - MEAN[seen])
        spread = COVARIANCE[np.ix_(lacks, lacks)] - gain @ COVARIANCE[seen][:, lacks]
        out = np.tile(row, (60, 1))
        out[:, lacks] = mean + np.sqrt(spread[0, 0]) * nodes[:, None]
        return out

    P, Q = points(x), points(y)
    wanted = weights @ kernel.block(P, Q) @ weights
    np.testing.assert_allclose(expected.block(x[None], y[None])[0, 0], wanted, rtol=1e-9)
    np.testing.assert_allclose(
        expected.diagonal(x[None])[0], weights @ kernel.diagonal(P), rtol=1e-9
    )


@kernels
def test_products_of_means_are_positive_and_no_longer_than_the_diagonal(kernel: Any) -> None:
    expected, X = ExpectedKernel(kernel, MEAN, COVARIANCE), rows(60)
    G = expected.block(X, X)
    np.testing.assert_allclose(G, G.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(G).min() > -1e-10 * np.trace(G)
    assert (np.diagonal(G) <= expected.diagonal(X) * (1 + 1e-12)).all()
    whole = ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(np.diagonal(G)[whole], expected.diagonal(X)[whole])


@kernels
def test_complete_rows_have_the_kernel_itself(kernel: Any) -> None:
    X = RNG.normal(size=(6, 4))
    expected = ExpectedKernel(kernel, MEAN, COVARIANCE)
    np.testing.assert_array_equal(expected.block(X, X), kernel.block(X, X))
    beside = np.vstack([X, np.where(np.arange(4) == 1, np.nan, X[:1])])
    np.testing.assert_allclose(expected.block(X, beside)[:, :6], kernel.block(X, X), rtol=1e-12)
    np.testing.assert_array_equal(expected.fill(X), X)


def test_known_columns_leave_no_doubt_of_those_that_follow_from_them() -> None:
    B = RNG.normal(size=(4, 2))
    expected = ExpectedKernel(RbfKernel(0.2), np.zeros(4), B @ B.T)  # two columns tell the rest
    X = RNG.normal(size=(5, 2)) @ B.T
    holed = X.copy()
    holed[:, 3] = np.nan
    np.testing.assert_allclose(expected.fill(holed), X, atol=1e-9)
    np.testing.assert_allclose(expected.block(holed, X), RbfKernel(0.2).block(X, X), atol=1e-9)


@pytest.mark.parametrize("kernel", [LaplacianKernel(0.1), CosineKernel()], ids=repr)
def test_other_kernels_have_no_closed_form(kernel: Any) -> None:
    with pytest.raises(ValueError, match="has no closed form; use kernel='rbf'"):
        expected_kernel(kernel, MEAN, COVARIANCE)
