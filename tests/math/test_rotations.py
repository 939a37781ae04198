"""Rotations of loadings: criteria at their optimum, the common part kept, peers and optimisers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize
from sklearn.decomposition import FactorAnalysis

from mixfold.contracts import Array
from mixfold.math import rotations
from mixfold.math.rotations import Rotation, oblimin, promax, quartimax, varimax

ALL: dict[str, Callable[..., Rotation]] = {
    "varimax": varimax,
    "varimax, rows of length one": lambda W: varimax(W, normalise=True),
    "quartimax": quartimax,
    "promax": promax,
    "oblimin": oblimin,
    "oblimin, gamma -1": lambda W: oblimin(W, gamma=-1.0),
    "oblimin, rows of length one": lambda W: oblimin(W, normalise=True),
}


def loadings(seed: int, D: int = 15, d: int = 3) -> Array:
    """Mostly one factor for each column of the data, turned at random."""
    rng = np.random.default_rng(seed)
    simple = 0.15 * rng.normal(size=(D, d))
    simple[np.arange(D), np.arange(D) % d] += rng.uniform(0.6, 2.0, size=D)
    return np.asarray(simple @ np.linalg.qr(rng.normal(size=(d, d)))[0])


def orthomax(L: Array, gamma: float) -> float:
    """The variance of the squares in each column, written out."""
    return float((L**4).sum() - gamma / len(L) * ((L**2).sum(axis=0) ** 2).sum())


def crossed(L: Array, gamma: float) -> float:
    """The criterion of oblimin, pair by pair."""
    total = 0.0
    for i in range(L.shape[1]):
        for j in range(i):
            a, b = L[:, i] ** 2, L[:, j] ** 2
            total += float(a @ b - gamma / len(L) * a.sum() * b.sum())
    return total


def matched(L: Array, target: Array) -> Array:
    """L with columns permuted and turned to be nearest to the target."""
    best = min(permutations(range(L.shape[1])), key=lambda p: _distance(L[:, p], target))
    return np.asarray(L[:, best] * np.sign((L[:, best] * target).sum(axis=0)))


def _distance(L: Array, target: Array) -> float:
    return float(np.abs(np.abs(L) - np.abs(target)).sum())


# ------------------------------------------------ what all share


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(15, 3), (6, 1), (40, 6), (4, 4)])
def test_the_common_part_is_kept(name: str, shape: tuple[int, int]) -> None:
    W = loadings(1, *shape)
    turned = ALL[name](W)
    L, Phi = turned.loadings, turned.correlations
    np.testing.assert_allclose(L @ Phi @ L.T, W @ W.T, atol=1e-10)
    np.testing.assert_allclose(W @ turned.matrix, L, atol=1e-12)
    np.testing.assert_allclose(np.diag(Phi), 1.0, atol=1e-10)
    if not name.startswith(("promax", "oblimin")):
        np.testing.assert_allclose(Phi, np.eye(shape[1]), atol=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_the_given_rotation_does_not_matter(name: str, rng: np.random.Generator) -> None:
    W = loadings(2)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    one, other = ALL[name](W), ALL[name](W @ turn)
    np.testing.assert_allclose(one.loadings, other.loadings, atol=1e-6)
    np.testing.assert_allclose(one.correlations, other.correlations, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_order_and_signs(name: str) -> None:
    L = ALL[name](loadings(3)).loadings
    assert np.all(L[np.abs(L).argmax(axis=0), range(3)] > 0)
    if name != "canonical":
        assert np.all(np.diff((L**2).sum(axis=0)) <= 0)


@pytest.mark.parametrize("name", ALL)
def test_factors_that_load_on_nothing(name: str, rng: np.random.Generator) -> None:
    W = loadings(4)
    wide = np.c_[W, np.zeros((15, 2))] @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    turned = ALL[name](wide)
    np.testing.assert_allclose(turned.loadings[:, :3], ALL[name](W).loadings, atol=1e-6)
    np.testing.assert_allclose(turned.loadings[:, 3:], 0.0, atol=1e-9)
    L, Phi = turned.loadings, turned.correlations
    np.testing.assert_allclose(L @ Phi @ L.T, W @ W.T, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_empty_and_zero(name: str) -> None:
    assert ALL[name](np.empty((5, 0))).loadings.shape == (5, 0)
    nothing = ALL[name](np.zeros((5, 2)))
    np.testing.assert_array_equal(nothing.loadings, np.zeros((5, 2)))
    np.testing.assert_allclose(nothing.correlations, np.eye(2), atol=1e-12)


# ------------------------------------------------ orthogonal


@pytest.mark.parametrize("rotate, gamma", [(varimax, 1.0), (quartimax, 0.0)])
@pytest.mark.parametrize("seed", range(5))
def test_no_rotation_is_better(rotate: Any, gamma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = loadings(seed) if seed else rng.normal(size=(15, 3))
    L = rotate(W).loadings
    best = orthomax(L, gamma)
    for size in (1e-4, 1e-2, 0.3, 3.0):
        for _ in range(30):
            A = size * rng.normal(size=(3, 3))
            assert orthomax(L @ expm(A - A.T), gamma) <= best * (1 + 1e-12)


@pytest.mark.parametrize("rotation", ["varimax", "quartimax"])
def test_scikit_learn_agrees(rotation: str, rng: np.random.Generator) -> None:
    # their rotation of the loadings that their fit without one finds
    X = rng.normal(size=(400, 3)) @ loadings(6).T + 0.5 * rng.normal(size=(400, 15))
    plain = FactorAnalysis(3, random_state=0).fit(X)
    turned = FactorAnalysis(3, rotation=rotation, random_state=0).fit(X)
    ours = ALL[rotation](plain.components_.T).loadings
    np.testing.assert_allclose(matched(ours, turned.components_.T), turned.components_.T, atol=2e-3)
    gamma = 1.0 if rotation == "varimax" else 0.0
    assert orthomax(ours, gamma) >= orthomax(turned.components_.T, gamma)


def test_a_flat_start_is_left() -> None:
    # every entry of the same size: no small rotation changes the criterion to first order
    W = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    for rotate in (varimax, quartimax):
        L = np.abs(rotate(W).loadings)
        np.testing.assert_allclose(np.sort(L, axis=1), [[0, np.sqrt(2)]] * 4, atol=1e-7)


def test_rows_of_length_one(rng: np.random.Generator) -> None:
    # stretching rows changes nothing of a rotation that looks at their directions only
    W, stretch = loadings(7), rng.uniform(0.1, 10, size=(15, 1))
    one, other = varimax(W, normalise=True), varimax(W * stretch, normalise=True)
    np.testing.assert_allclose(
        matched(one.loadings * stretch, other.loadings), other.loadings, atol=1e-6
    )
    plain = varimax(W * stretch)
    assert np.abs(matched(plain.loadings, other.loadings) - other.loadings).max() > 1e-2


# ------------------------------------------------ oblique


@pytest.mark.parametrize("gamma", [0.0, -0.5, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_oblimin_against_a_general_optimiser(gamma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = loadings(seed)

    def rotated(v: Array) -> Array:
        T = v.reshape(3, 3) / np.linalg.norm(v.reshape(3, 3), axis=0)
        return np.asarray(W @ np.linalg.inv(T).T)

    starts = [np.linalg.qr(rng.normal(size=(3, 3)))[0].ravel() for _ in range(6)]
    runs = [minimize(lambda v: crossed(rotated(v), gamma), v, tol=1e-12) for v in starts]
    best = min(runs, key=lambda r: r.fun)
    ours = oblimin(W, gamma=gamma).loadings
    assert crossed(ours, gamma) == pytest.approx(best.fun, abs=1e-7)
    np.testing.assert_allclose(matched(rotated(best.x), ours), ours, atol=2e-3)


def test_oblimin_is_flat_at_the_end(rng: np.random.Generator) -> None:
    turned = oblimin(loadings(8))
    T = np.linalg.inv(turned.matrix).T
    np.testing.assert_allclose(np.linalg.norm(T, axis=0), 1.0, atol=1e-10)
    best = crossed(turned.loadings, 0.0)
    W = loadings(8)
    for size in (1e-5, 1e-3, 1e-1):
        for _ in range(20):
            moved = T + size * rng.normal(size=T.shape)
            moved /= np.linalg.norm(moved, axis=0)
            assert crossed(W @ np.linalg.inv(moved).T, 0.0) >= best * (1 - 1e-9)


def test_promax_is_the_fit_to_powers_of_varimax() -> None:
    W = loadings(9)
    start = varimax(W, normalise=True).loadings
    target = np.sign(start) * np.abs(start) ** 3

    def misfit(v: Array) -> float:
        return float(((start @ v.reshape(3, 3) - target) ** 2).sum())

    U = minimize(misfit, np.eye(3).ravel(), tol=1e-14).x.reshape(3, 3)
    U = U * np.sqrt(np.diag(np.linalg.inv(U.T @ U)))
    turned = promax(W, power=3.0)
    np.testing.assert_allclose(matched(start @ U, turned.loadings), turned.loadings, atol=1e-5)


@pytest.mark.parametrize("name", ["promax", "oblimin"])
def test_correlated_factors_are_found(name: str, rng: np.random.Generator) -> None:
    simple = np.zeros((30, 3))
    simple[np.arange(30), np.arange(30) % 3] = rng.uniform(0.5, 1.5, size=30)
    Phi = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    W = simple @ np.linalg.cholesky(Phi)
    turned = ALL[name](W @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    tolerance = 1e-6 if name == "oblimin" else 0.1  # promax is a quick approximation
    np.testing.assert_allclose(matched(turned.loadings, simple), simple, atol=tolerance)
    found = np.sort(turned.correlations[np.triu_indices(3, 1)])
    np.testing.assert_allclose(found, [0.2, 0.3, 0.5], atol=tolerance)


def test_higher_powers_correlate_factors_more() -> None:
    Phi = np.array([[1.0, 0.6, 0.4], [0.6, 1.0, 0.5], [0.4, 0.5, 1.0]])
    W = varimax(loadings(10)).loadings @ np.linalg.cholesky(Phi)
    largest = [np.abs(np.triu(promax(W, power=p).correlations, 1)).max() for p in (1.5, 3, 6)]
    assert largest[0] < largest[1] < largest[2]


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"power of promax must be above 1 .* got 1"):
        promax(loadings(0), power=1)
    with pytest.raises(ValueError, match=r"gamma of oblimin must be at most 0\.8.*got 0\.9"):
        oblimin(loadings(0), gamma=0.9)


def test_the_gradient_of_oblimin(rng: np.random.Generator) -> None:
    A, T = rng.normal(size=(8, 3)), rng.normal(size=(3, 3))
    value, G = rotations._oblimin_criterion(A, T, 0.3)
    assert value == pytest.approx(crossed(A @ np.linalg.inv(T).T, 0.3) / 2)
    for i in range(3):
        for j in range(3):
            E = np.zeros((3, 3))
            E[i, j] = 1e-6
            ahead = rotations._oblimin_criterion(A, T + E, 0.3)[0]
            behind = rotations._oblimin_criterion(A, T - E, 0.3)[0]
            assert G[i, j] == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-4)


def test_promax_of_loadings_that_are_next_to_nothing_is_varimax() -> None:
    """Powers of them are so small that the factors would coincide."""
    big = np.array([1.98e-3, -2.31e-3, 6.82e-3, -6.75e-3])
    small = np.array([2.28e-12, -2.18e-12, -6.59e-13, 7.51e-13])
    W = np.column_stack([big, small, 1e-19 * small])
    found, plain = promax(W), varimax(W, normalise=True)
    assert np.isfinite(found.correlations).all()
    np.testing.assert_allclose(found.loadings, plain.loadings, atol=1e-15)
