"""Leading eigenpairs from products alone: against full decompositions, and the power method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.utils.extmath import randomized_svd

from mixfold.contracts import Array
from mixfold.math import krylov
from mixfold.math.krylov import leading_eigenpairs


def matrix(values: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """A symmetric matrix with the given eigenvalues, and its vectors."""
    V = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return (V * values) @ V.T, V


def counted(S: Array) -> tuple[Callable[[Array], Array], list[int]]:
    calls: list[int] = []

    def apply(Q: Array) -> Array:
        calls.append(Q.shape[1])
        return np.asarray(S @ Q)

    return apply, calls


SPECTRA = {
    "geometric": 0.6 ** np.arange(300),
    "polynomial": 1 / (1.0 + np.arange(300)) ** 2,
    "slow": 1 / (1.0 + np.arange(300)) ** 0.6,
    "signal and noise": np.r_[np.linspace(9, 4, 12), np.linspace(1, 0.1, 288)],
    "one step": np.r_[np.full(12, 1.2), np.ones(288)],
}


@pytest.mark.parametrize("name", SPECTRA)
def test_pairs_are_those_of_the_matrix(name: str, rng: np.random.Generator) -> None:
    values = SPECTRA[name]
    S, V = matrix(values, rng)
    apply, calls = counted(S)
    found = leading_eigenpairs(apply, 300, 12, rng, max_passes=30)
    assert found.converged and found.passes == len(calls)
    np.testing.assert_allclose(found.values, values[:12], rtol=1e-10)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(12), atol=1e-12)
    residuals = np.linalg.norm(S @ found.vectors - found.vectors * found.values, axis=0)
    assert np.all(residuals <= 1.5e-6 * found.values)
    assert np.sin(subspace_angles(found.vectors, V[:, :12])[0]) < 2e-5


@pytest.mark.parametrize("name", SPECTRA)
def test_fewer_products_than_power_iterations_for_a_better_space(
    name: str, rng: np.random.Generator
) -> None:
    values = SPECTRA[name]
    S, _ = matrix(values, rng)
    X = np.linalg.cholesky(S + 1e-15 * np.eye(300)).T  # X'X = S
    axes = randomized_svd(X, 12, n_iter=7, random_state=0)[2].T
    apply, calls = counted(X.T @ X)
    found = leading_eigenpairs(apply, 300, 12, rng)
    # a product with S is two with X, of which the other makes 16; where that is not enough...
    assert 2 * len(calls) <= (24 if name == "slow" else 16)
    lost = values[:12].sum() - np.trace(found.vectors.T @ S @ found.vectors)
    lost_by_power = values[:12].sum() - np.trace(axes.T @ S @ axes)
    assert lost <= max(lost_by_power, 1e-12 * values[0])
    if name == "slow":
        assert lost < 1e-3 * lost_by_power


def test_the_basis_is_contracted(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    values = SPECTRA["slow"]
    S, V = matrix(values, rng)
    long = leading_eigenpairs(lambda Q: S @ Q, 300, 5, rng, max_passes=100)
    monkeypatch.setattr(krylov, "_BASIS_BYTES", 0)
    widths: list[int] = []
    contract = krylov._Search.contract

    def watched(search: krylov._Search, width: int) -> None:
        widths.append(search.width)
        contract(search, width)

    monkeypatch.setattr(krylov._Search, "contract", watched)
    short = leading_eigenpairs(lambda Q: S @ Q, 300, 5, rng, max_passes=100)
    assert widths and max(widths) <= krylov._LEAST_BLOCKS * 15
    assert short.converged and short.passes >= long.passes
    np.testing.assert_allclose(short.values, values[:5], rtol=1e-10)
    assert np.sin(subspace_angles(short.vectors, V[:, :5])[0]) < 1e-4


def test_too_few_passes_are_reported(rng: np.random.Generator) -> None:
    values = np.linspace(2, 1, 300)
    S, _ = matrix(values, rng)
    apply, calls = counted(S)
    found = leading_eigenpairs(apply, 300, 5, rng, max_passes=3)
    assert not found.converged and found.passes == len(calls) == 3
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(5), atol=1e-12)
    assert np.all(found.values <= values[:5] * (1 + 1e-12))  # from below, always


@pytest.mark.parametrize("rank", [0, 1, 3, 30])
@pytest.mark.parametrize("k", [1, 4, 39, 40])
def test_operators_without_full_rank(rank: int, k: int, rng: np.random.Generator) -> None:
    values = np.r_[np.arange(rank, 0, -1.0), np.zeros(40 - rank)]
    S, V = matrix(values, rng)
    found = leading_eigenpairs(lambda Q: S @ Q, 40, k, rng)
    assert found.converged
    np.testing.assert_allclose(found.values, values[:k], atol=1e-12)
    assert np.all(found.values >= 0) and np.all(np.diff(found.values) <= 1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-10)
    real = min(rank, k)
    if real:
        cosines = np.abs(np.einsum("ij,ij->j", found.vectors[:, :real], V[:, :real]))
        np.testing.assert_allclose(cosines, 1.0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_units_do_not_matter(scale: float) -> None:
    S, _ = matrix(SPECTRA["polynomial"], np.random.default_rng(0))
    plain = leading_eigenpairs(lambda Q: S @ Q, 300, 6, np.random.default_rng(1))
    scaled = leading_eigenpairs(lambda Q: scale * (S @ Q), 300, 6, np.random.default_rng(1))
    assert scaled.passes == plain.passes
    np.testing.assert_allclose(scaled.values, scale * plain.values, rtol=1e-9)


def test_a_start_saves_passes(rng: np.random.Generator) -> None:
    S, _ = matrix(SPECTRA["slow"], rng)
    first = leading_eigenpairs(lambda Q: S @ Q, 300, 12, rng, max_passes=30)
    again = leading_eigenpairs(lambda Q: S @ Q, 300, 12, rng, max_passes=30, start=first.vectors)
    assert again.passes < first.passes
    np.testing.assert_allclose(again.values, first.values, rtol=1e-10)


@pytest.mark.parametrize("k", [0, 11])
def test_a_wrong_number_of_pairs_is_refused(k: int, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=f"from 1 to the size of the operator, 10; got {k}"):
        leading_eigenpairs(lambda Q: Q, 10, k, rng)


# ------------------------------------------------ narrow blocks


@pytest.mark.parametrize("name", SPECTRA)
def test_narrow_blocks_find_the_same_pairs(name: str, rng: np.random.Generator) -> None:
    values = SPECTRA[name]
    S, V = matrix(values, rng)
    apply, calls = counted(S)
    found = leading_eigenpairs(apply, 300, 12, rng, max_passes=100, width=4)
    assert found.converged and found.passes == len(calls)
    assert calls[0] == 4  # the first ones are narrow
    np.testing.assert_allclose(found.values, values[:12], rtol=1e-10)
    assert np.sin(subspace_angles(found.vectors, V[:, :12])[0]) < 2e-5


@pytest.mark.parametrize("times", [2, 5, 9, 20])
def test_equal_values_beyond_the_width_are_all_found(times: int, rng: np.random.Generator) -> None:
    values = np.sort(np.r_[np.repeat([5.0, 3.0], times), np.linspace(1, 0.1, 100)])[::-1]
    S, _ = matrix(values, rng)
    found = leading_eigenpairs(lambda Q: S @ Q, len(S), 2 * times + 1, rng, max_passes=200, width=3)
    assert found.converged
    np.testing.assert_allclose(found.values, values[: 2 * times + 1], rtol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 3, 30])
@pytest.mark.parametrize("k", [1, 4, 39, 40])
def test_narrow_blocks_without_full_rank(rank: int, k: int, rng: np.random.Generator) -> None:
    values = np.r_[np.arange(rank, 0, -1.0), np.zeros(40 - rank)]
    S, _ = matrix(values, rng)
    found = leading_eigenpairs(lambda Q: S @ Q, 40, k, rng, max_passes=60, width=2)
    assert found.converged
    real = min(k, rank)
    np.testing.assert_allclose(found.values[:real], values[:real], atol=1e-11)
    np.testing.assert_allclose(found.values[real:], 0.0, atol=1e-11)
    wanted = found.vectors[:, : len(found.values)]
    np.testing.assert_allclose(wanted.T @ wanted, np.eye(wanted.shape[1]), atol=1e-10)


def test_watch_sees_residuals_fall_and_can_end_the_search(rng: np.random.Generator) -> None:
    S, _ = matrix(SPECTRA["slow"], rng)
    seen: list[tuple[int, float]] = []

    def watch(passes: int, worst: float) -> bool:
        seen.append((passes, worst))
        return len(seen) == 3

    found = leading_eigenpairs(lambda Q: S @ Q, 300, 12, rng, max_passes=30, watch=watch)
    assert not found.converged and found.passes == seen[-1][0]
    assert len(seen) == 3 and seen[-1][1] < seen[0][1]


def test_watch_is_told_the_residual_relative_to_the_value(rng: np.random.Generator) -> None:
    S = np.diag(1e3 / (1.0 + np.arange(300)) ** 0.5)
    seen: list[float] = []

    def watch(passes: int, worst: float) -> bool:
        seen.append(worst)
        return False

    leading_eigenpairs(lambda Q: S @ Q, 300, 5, rng, tol=1e-12, max_passes=40, watch=watch)
    # of values between 400 and 1000; the first residuals are no more than the values themselves
    assert len(seen) > 2 and all(0 <= worst < 1 for worst in seen)
