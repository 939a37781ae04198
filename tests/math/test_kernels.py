"""Kernels: against scikit-learn's, their own diagonal, positive definiteness and offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise
from sklearn.preprocessing import PolynomialFeatures

from mixfold.contracts import Array
from mixfold.math.kernels import (
    CallableKernel,
    CosineKernel,
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RbfKernel,
)

KERNELS: dict[str, tuple[Kernel, Any]] = {
    "linear": (LinearKernel(), pairwise.linear_kernel),
    "rbf": (RbfKernel(0.3), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.3)),
    "laplacian": (LaplacianKernel(0.3), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.3)),
    "poly": (
        PolynomialKernel(3, 0.5, 2.0),
        lambda A, B: pairwise.polynomial_kernel(A, B, degree=3, gamma=0.5, coef0=2.0),
    ),
    "cosine": (CosineKernel(), pairwise.cosine_similarity),
    "callable": (CallableKernel(pairwise.rbf_kernel), pairwise.rbf_kernel),
}
every = pytest.mark.parametrize("name", KERNELS)


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[Array, Array]:
    A, B = rng.normal(size=(70, 4)), rng.normal(size=(9, 4))
    A[rng.random(A.shape) < 0.4] = 0.0
    A[3] = 0.0  # a row of zeros has no direction
    return A, B


@every
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_blocks_are_those_of_scikit_learn(name: str, kind: Any, rows: tuple[Array, Array]) -> None:
    kernel, expected = KERNELS[name]
    A, B = rows
    before = A.copy(), B.copy()
    block = kernel.block(kind(A), kind(B))
    assert isinstance(block, np.ndarray)
    np.testing.assert_allclose(block, expected(A, B), atol=1e-12)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])


@every
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_the_diagonal_is_that_of_the_block(name: str, kind: Any, rows: tuple[Array, Array]) -> None:
    kernel, A = KERNELS[name][0], kind(rows[0])
    np.testing.assert_allclose(kernel.diagonal(A), np.diag(kernel.block(A, A)), atol=1e-12)


@every
def test_no_negative_eigenvalues(name: str, rows: tuple[Array, Array]) -> None:
    A = rows[0]
    values = np.linalg.eigvalsh(KERNELS[name][0].block(A, A))
    assert values[0] > -1e-10 * values[-1]


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "callable"])
def test_single_precision_stays(name: str, rows: tuple[Array, Array]) -> None:
    kernel, expected = KERNELS[name]
    A, B = (M.astype(np.float32) for M in rows)
    block = kernel.block(A, B)
    assert block.dtype == kernel.diagonal(A).dtype == np.float32
    np.testing.assert_allclose(block, expected(*rows), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_distances_keep_their_digits_far_from_zero(offset: float, rng: np.random.Generator) -> None:
    A = np.round(rng.normal(size=(40, 3)), 3) + offset
    near = A - offset  # what is left after the rounding of the sum
    kernel = RbfKernel(0.3).centred(A.mean(axis=0))
    np.testing.assert_allclose(kernel.block(A, A), RbfKernel(0.3).block(near, near), rtol=1e-9)
    if offset >= 1e6:  # without the origin they do not
        assert np.abs(RbfKernel(0.3).block(A, A) - RbfKernel(0.3).block(near, near)).max() > 1e-6
    laplacian = LaplacianKernel(0.3)
    np.testing.assert_allclose(laplacian.block(A, A), laplacian.block(near, near), rtol=1e-9)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_the_dimension_of_polynomials_is_that_of_their_monomials(degree: int, coef0: float) -> None:
    monomials = PolynomialFeatures(degree).fit(np.zeros((1, 4))).powers_.sum(axis=1)
    expected = len(monomials) if coef0 else int((monomials == degree).sum())
    kernel = PolynomialKernel(degree, 1.0, coef0)
    assert kernel.dimension(4) == expected
    X = np.random.default_rng(0).normal(size=(60, 4))
    assert np.linalg.matrix_rank(kernel.block(X, X)) == expected


def test_dimensions_of_the_others() -> None:
    assert LinearKernel().dimension(7) == CosineKernel().dimension(7) == 7
    unbounded = [RbfKernel(1.0), LaplacianKernel(1.0), CallableKernel(pairwise.rbf_kernel)]
    assert [kernel.dimension(7) for kernel in unbounded] == [None] * 3


def test_a_function_of_another_shape_is_refused() -> None:
    kernel = CallableKernel(lambda A, B: np.zeros(3))
    with pytest.raises(ValueError, match=r"of shape \(n, m\); for n = 5 and m = 2 .* \(3,\)"):
        kernel.block(np.zeros((5, 1)), np.zeros((2, 1)))


def test_a_function_that_gives_nan_is_told() -> None:
    kernel = CallableKernel(lambda A, B: np.full((len(A), len(B)), np.nan))
    with pytest.raises(ValueError, match="finite"):
        kernel.block(np.ones((2, 2)), np.ones((3, 2)))


def test_rows_in_single_precision_far_from_an_origin_that_is_too_large_for_it() -> None:
    """k(a, b) of rows at 1e119, to which rows in float32 are as near as to zero."""
    A, B = np.float32([[0.0, 1.0], [2.0, 3.0]]), 1e119 * np.array([[1.0, 2.0], [0.5, -1.0]])
    kernel = RbfKernel(1e-239, origin=np.array([7e118, 5e118]))
    exact = np.exp(-1e-239 * (B**2).sum(axis=1))
    np.testing.assert_allclose(kernel.block(A, B), np.tile(exact, (2, 1)), rtol=1e-9)
