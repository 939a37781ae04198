"""Positive definite matrices: factors, packing, and the floor as a constrained maximum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mixfold.math import symmetric


def _matrices(rng: np.random.Generator, K: int, size: int) -> np.ndarray:
    root = rng.normal(size=(K, size, size))
    return root @ np.swapaxes(root, 1, 2) + 0.05 * np.eye(size)


def test_packing_is_the_upper_triangle_row_by_row(rng: np.random.Generator) -> None:
    A = np.array([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    np.testing.assert_array_equal(symmetric.pack(A), [1, 2, 3, 4, 5, 6])
    B = _matrices(rng, 4, 5)
    B = B + np.swapaxes(B, 1, 2)  # symmetric to the last bit
    np.testing.assert_array_equal(symmetric.unpack(symmetric.pack(B), 5), B)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_factors(size: int, rng: np.random.Generator) -> None:
    A = _matrices(rng, 3, size)
    factors, whiten = symmetric.factorise(A)
    np.testing.assert_allclose(factors, np.linalg.cholesky(A), rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(whiten, np.triu(whiten))
    np.testing.assert_allclose(whiten @ np.swapaxes(whiten, 1, 2), np.linalg.inv(A), rtol=1e-8)
    np.testing.assert_allclose(
        symmetric.log_determinants(factors), np.linalg.slogdet(A)[1], rtol=1e-10, atol=1e-12
    )


def test_what_is_not_positive_definite_has_no_factor() -> None:
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert symmetric.cholesky(indefinite) is None
    assert symmetric.cholesky(np.full((2, 2), np.nan)) is None
    with pytest.raises(ValueError, match="component 1 is not positive definite"):
        symmetric.factorise(np.stack([np.eye(2), indefinite]))


@pytest.mark.parametrize("size", [1, 3, 16])
def test_many_small_matrices_have_the_factors_of_each(size: int, rng: np.random.Generator) -> None:
    """They are factorised together; one by one the other route is taken."""
    A = _matrices(rng, 40, size)
    factors, whiten = symmetric.factorise(A)
    for k in range(0, 40, 13):
        alone = symmetric.cholesky(A[k])
        assert alone is not None
        np.testing.assert_allclose(factors[k], alone, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            whiten[k],
            symmetric.inverse_factor(alone),
            rtol=1e-8,
            atol=1e-9 * np.abs(whiten[k]).max(),
        )
    np.testing.assert_array_equal(whiten, np.triu(whiten))
    assert whiten.flags.c_contiguous


@pytest.mark.parametrize("bad", [np.diag([1.0, -1.0]), np.full((2, 2), np.nan)])
def test_one_bad_matrix_among_many_is_named(bad: np.ndarray) -> None:
    A = np.tile(np.eye(2), (20, 1, 1))
    A[17] = bad
    with pytest.raises(ValueError, match="component 17 is not positive definite"):
        symmetric.factorise(A)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_log_cholesky_round_trip(size: int, rng: np.random.Generator) -> None:
    A = _matrices(rng, 4, size)
    coordinates = symmetric.log_cholesky(np.linalg.cholesky(A))
    assert coordinates.shape == (4, size * (size + 1) // 2)
    np.testing.assert_allclose(symmetric.from_log_cholesky(coordinates, size), A, rtol=1e-12)
    moved = symmetric.from_log_cholesky(rng.normal(size=coordinates.shape), size)
    assert np.linalg.eigvalsh(moved).min() > 0  # any coordinates will do


def _gain(A: np.ndarray, S: np.ndarray) -> float:
    return float(-np.linalg.slogdet(A)[1] - np.trace(np.linalg.solve(A, S)))


@pytest.mark.parametrize("seed", range(4))
def test_floored_is_the_constrained_maximiser(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, floor = 3, 0.5
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    S = (turn * [0.01, 0.2, 3.0]) @ turn.T  # two directions below the floor, one above
    best, touched = symmetric.raise_eigenvalues(S, floor)
    assert touched == floor
    assert np.linalg.eigvalsh(best).min() >= floor * (1 - 1e-12)

    row, column = np.tril_indices(size)

    def loss(v: np.ndarray) -> float:  # A = floor I + B B' covers all that is allowed
        B = np.zeros((size, size))
        B[row, column] = v
        return -_gain(floor * np.eye(size) + B @ B.T, S)

    found = min(
        (minimize(loss, rng.normal(size=row.size), tol=1e-13) for _ in range(3)),
        key=lambda r: r.fun,
    )
    assert _gain(best, S) >= -found.fun - 1e-9
    assert _gain(best, S) == pytest.approx(-found.fun, abs=1e-6)
    # adding the floor is no maximiser: this test can tell
    assert _gain(S + floor * np.eye(size), S) < _gain(best, S) - 1e-3


def test_floored_leaves_alone_what_is_above(rng: np.random.Generator) -> None:
    A = _matrices(rng, 1, 4)[0] + np.eye(4)
    same, touched = symmetric.raise_eigenvalues(A, 0.9)
    assert same is A and touched == np.inf
    same, touched = symmetric.raise_eigenvalues(A, np.full(4, 0.9))
    assert same is A and touched == np.inf


def test_floored_singular_and_zero() -> None:
    for S in (np.zeros((3, 3)), np.outer([1.0, 2, 3], [1.0, 2, 3])):
        raised, touched = symmetric.raise_eigenvalues(S, 1e-6)
        assert touched == pytest.approx(1e-6)
        assert symmetric.cholesky(raised) is not None


@pytest.mark.parametrize("seed", range(4))
def test_a_floor_for_each_column_is_the_constrained_maximiser(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, floor = 3, np.array([0.5, 0.01, 2.0])
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    S = (turn * [0.001, 0.2, 3.0]) @ turn.T
    best, _ = symmetric.raise_eigenvalues(S, floor)
    assert np.linalg.eigvalsh(best - np.diag(floor)).min() >= -1e-12
    row, column = np.tril_indices(size)

    def loss(v: np.ndarray) -> float:  # A = diag(floor) + B B' covers all that is allowed
        B = np.zeros((size, size))
        B[row, column] = v
        return -_gain(np.diag(floor) + B @ B.T, S)

    found = min(
        (minimize(loss, rng.normal(size=row.size), tol=1e-13) for _ in range(5)),
        key=lambda r: r.fun,
    )
    assert _gain(best, S) == pytest.approx(-found.fun, abs=1e-5)
    assert _gain(best, S) > _gain(S + np.diag(floor), S) + 1e-3
    assert _gain(best, S) > _gain(symmetric.raise_eigenvalues(S, 2.0)[0], S) + 1e-3


def test_the_variance_of_a_raised_direction_is_told() -> None:
    # an exact line: x + y is raised, which has the variance of the sum of both roundings
    S = np.array([[1.0, -1.0], [-1.0, 1.0]])
    floor = np.array([0.01, 0.03])
    raised, variance = symmetric.raise_eigenvalues(S, floor)
    direction = np.ones(2) / np.sqrt(2)
    assert variance == pytest.approx(0.02, rel=0.05)
    assert direction @ raised @ direction == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("floor", [0.01, np.array([0.01, 0.3, 0.002])])
def test_what_is_told_to_be_above_a_floor_is(floor: float | np.ndarray) -> None:
    rng = np.random.default_rng(4)
    told = 0
    for _ in range(200):
        root = rng.normal(size=(2, 3, 3)) * np.exp(rng.normal(size=(2, 1, 3)))
        matrices = root @ np.swapaxes(root, 1, 2)
        if not symmetric.are_above(symmetric.factorise(matrices)[1], floor):
            continue
        told += 1
        raised, least = symmetric.raise_all_eigenvalues(matrices, floor)
        assert raised is matrices and np.isinf(least).all()
    assert 20 < told < 180
