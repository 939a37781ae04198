"""A filtered subspace finds the leading eigenpairs: against full decompositions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from mixfold.contracts import Array
from mixfold.math.chebyshev import filtered_eigenpairs

SPECTRA = {
    "geometric": 0.6 ** np.arange(200),
    "polynomial": 1 / (1.0 + np.arange(200)) ** 2,
    "slow": 1 / (1.0 + np.arange(200)) ** 0.6,
    "one step": np.r_[np.full(8, 1.2), np.ones(192)],
    "equal ones": np.r_[np.full(30, 3.0), np.full(170, 1.0)],
}


def matrix(values: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    V = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return (V * values) @ V.T, V


@pytest.mark.parametrize("name", SPECTRA)
def test_pairs_are_those_of_the_matrix(name: str, rng: np.random.Generator) -> None:
    values = SPECTRA[name]
    S, V = matrix(values, rng)
    calls: list[int] = []

    def apply(Q: Array) -> Array:
        calls.append(Q.shape[1])
        return np.asarray(S @ Q)

    found = filtered_eigenpairs(apply, 200, 8, rng, tol=1e-9, max_passes=2000)
    assert found.converged and found.passes == len(calls)
    assert max(calls) == 18  # little memory
    np.testing.assert_allclose(found.values, values[:8], rtol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(8), atol=1e-12)
    if name != "equal ones":
        assert np.sin(subspace_angles(found.vectors, V[:, :8])[0]) < 1e-7


def test_too_few_products_are_reported(rng: np.random.Generator) -> None:
    values = np.linspace(2, 1, 200)
    S, _ = matrix(values, rng)
    found = filtered_eigenpairs(lambda Q: S @ Q, 200, 5, rng, max_passes=20)
    assert not found.converged and found.passes <= 20
    assert np.all(found.values <= values[:5] * (1 + 1e-12))


@pytest.mark.parametrize("rank", [0, 1, 3, 30])
@pytest.mark.parametrize("k", [1, 4, 25, 40])
def test_operators_without_full_rank(rank: int, k: int, rng: np.random.Generator) -> None:
    values = np.r_[np.arange(rank, 0, -1.0), np.zeros(40 - rank)]
    S, _ = matrix(values, rng)
    found = filtered_eigenpairs(lambda Q: S @ Q, 40, k, rng)
    assert found.converged
    np.testing.assert_allclose(found.values, values[:k], atol=1e-11)


def test_a_start_saves_products(rng: np.random.Generator) -> None:
    S, _ = matrix(SPECTRA["slow"], rng)
    first = filtered_eigenpairs(lambda Q: S @ Q, 200, 8, rng)
    again = filtered_eigenpairs(lambda Q: S @ Q, 200, 8, rng, start=first.vectors)
    assert again.passes == 1 < first.passes
    np.testing.assert_allclose(again.values, first.values, rtol=1e-10)


def test_watch_sees_the_residuals_and_can_end_it(rng: np.random.Generator) -> None:
    S, _ = matrix(SPECTRA["slow"], rng)
    seen: list[tuple[int, float]] = []

    def watch(passes: int, worst: float) -> bool:
        seen.append((passes, worst))
        return len(seen) == 3

    found = filtered_eigenpairs(lambda Q: S @ Q, 200, 8, rng, tol=1e-14, watch=watch)
    assert not found.converged and found.passes == seen[-1][0]
    assert len(seen) == 3 and seen[0][1] > seen[1][1] > seen[2][1]
    # the largest residual, relative to its value, where that is not rounding
    seen.clear()
    found = filtered_eigenpairs(lambda Q: S @ Q, 200, 8, rng, watch=watch)
    residuals = np.linalg.norm(S @ found.vectors - found.vectors * found.values, axis=0)
    assert seen[-1][1] == pytest.approx((residuals / found.values).max(), rel=1e-6)


def test_single_precision_is_told_by_rounding(rng: np.random.Generator) -> None:
    S, _ = matrix(SPECTRA["geometric"], rng)
    single = S.astype(np.float32)

    def apply(Q: Array) -> Array:
        return np.asarray(single @ Q.astype(np.float32), np.float64)

    found = filtered_eigenpairs(apply, 200, 20, rng, tol=1e-5, max_passes=200, rounding=1e-6)
    assert found.converged
    strict = filtered_eigenpairs(apply, 200, 20, rng, tol=1e-5, max_passes=200)
    assert not strict.converged  # 0.6^20 of the largest is beyond what float32 can tell
