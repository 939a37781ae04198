"""The nearest point of an L1 sphere, against all faces of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mixfold.contracts import Array
from mixfold.math.l1_sphere import nearest_on_sphere


def distance(w: Array, u: Array, sigma: Array) -> float:
    return float((w - u) @ np.linalg.solve(sigma, w - u))


def by_all_faces(u: Array, sigma: Array, c: float) -> float:
    """The least distance over the 3^d faces {w_i = 0 where a_i = 0, sum a_i w_i = c}."""
    precision, least = np.linalg.inv(sigma), np.inf
    for signs in product((-1.0, 0.0, 1.0), repeat=len(u)):
        a = np.array(signs)
        on = np.flatnonzero(a)
        if on.size == 0:
            continue
        # minimise the quadratic over the free entries, with one linear equation
        P = precision[np.ix_(on, on)]
        system = np.block([[P, a[on][:, None]], [a[on][None], np.zeros((1, 1))]])
        solved = np.linalg.solve(system, np.append(precision[on] @ u, c))[:-1]
        if (solved * a[on] >= -1e-12).all():
            w = np.zeros(len(u))
            w[on] = solved
            least = min(least, distance(w, u, sigma))
    return least


def covariance(rng: np.random.Generator, d: int, spread: float = 1.0) -> Array:
    """Of axes in a random turn, with variances that differ by e^(2 spread)."""
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return np.asarray((turn * np.exp(spread * rng.uniform(-1, 1, d))) @ turn.T)


def on_sphere(rng: np.random.Generator, d: int, c: float) -> Array:
    w = rng.normal(size=d)
    return np.asarray(w * (c / np.abs(w).sum()))


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("spread", [0.3, 2.0, 5.0])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_the_best_of_all_faces(d: int, spread: float, outside: bool) -> None:
    rng = np.random.default_rng([d, int(10 * spread), outside])
    zeros = 0
    for _ in range(20):
        sigma, c = covariance(rng, d, spread), float(np.exp(rng.normal()))
        radius = c * (1 + 3 * rng.random() if outside else rng.random())
        u = on_sphere(rng, d, radius)
        w = nearest_on_sphere(u, sigma, c, on_sphere(rng, d, c))
        assert np.abs(w).sum() == pytest.approx(c, rel=1e-9)
        assert distance(w, u, sigma) == pytest.approx(by_all_faces(u, sigma, c), rel=1e-7, abs=1e-9)
        zeros += bool((w == 0).any())
    # points of lower faces, which no pattern of signs finds
    assert (zeros > 0) == (outside and d > 1)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_entries_that_are_zero_at_first(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(30):
        sigma = covariance(rng, d, 2.0)
        u = on_sphere(rng, d, 1.0)
        u[rng.permutation(d)[: rng.integers(1, d)]] = 0.0
        for c in (0.3 * np.abs(u).sum(), 2.0):
            w = nearest_on_sphere(u, sigma, c, on_sphere(rng, d, c))
            assert np.abs(w).sum() == pytest.approx(c, rel=1e-9)
            found = distance(w, u, sigma)
            assert found == pytest.approx(by_all_faces(u, sigma, c), rel=1e-6, abs=1e-9)


def test_equal_entries_and_equal_variances() -> None:
    """Ties: several entries reach zero, or are as good, at once."""
    for d in (2, 3, 5):
        for c in (0.5, 1.0, float(d), 2.0 * d):
            for u in (np.ones(d), np.zeros(d), np.tile([1.0, -1.0], d)[:d], np.eye(d)[0]):
                w = nearest_on_sphere(u, np.eye(d), c, np.full(d, c / d))
                assert np.abs(w).sum() == pytest.approx(c)
                wanted = by_all_faces(u, np.eye(d), c)
                assert distance(w, u, np.eye(d)) == pytest.approx(wanted, abs=1e-9)


def test_a_point_of_the_sphere_stays(rng: np.random.Generator) -> None:
    u = on_sphere(rng, 6, 2.0)
    sphere = float(np.abs(u).sum())
    np.testing.assert_allclose(nearest_on_sphere(u, covariance(rng, 6), sphere, u), u, atol=1e-12)


@pytest.mark.parametrize("d", [12, 13, 33, 40])
@pytest.mark.parametrize("radius", [0.01, 0.9, 1.1, 50.0])
def test_many_entries_and_never_worse_than_near(d: int, radius: float) -> None:
    rng = np.random.default_rng([d, int(100 * radius)])
    for _ in range(5):
        sigma = covariance(rng, d, 2.0)
        u = on_sphere(rng, d, radius)
        for near in (on_sphere(rng, d, 1.0), np.eye(d)[0], np.full(d, 1.0 / d)):
            w = nearest_on_sphere(u, sigma, 1.0, near)
            assert np.abs(w).sum() == pytest.approx(1.0, rel=1e-9)
            assert distance(w, u, sigma) <= distance(near, u, sigma) * (1 + 1e-9)


def test_from_outside_it_is_the_optimum_with_many_entries(rng: np.random.Generator) -> None:
    """The conditions of optimality: Sigma^-1 (u - w) = lambda s, s the signs of w."""
    for d in (33, 40):
        sigma, u = covariance(rng, d, 2.0), on_sphere(rng, d, 4.0)
        w = nearest_on_sphere(u, sigma, 1.0, on_sphere(rng, d, 1.0))
        pull = np.linalg.solve(sigma, u - w)
        some = w != 0
        multiplier = float(np.abs(pull).max())
        np.testing.assert_allclose(pull[some], multiplier * np.sign(w[some]), rtol=1e-7)
        assert 1 < some.sum() < d and multiplier > 0


def test_signs_of_many_entries_are_near_the_best_of_all() -> None:
    """With 13 entries all patterns can still be tried: few starts come close to the best."""
    patterns = np.array(list(product((-1.0, 1.0), repeat=13)))
    excess = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        sigma, u = covariance(rng, 13, 1.5), on_sphere(rng, 13, 0.5)
        w = nearest_on_sphere(u, sigma, 1.0, on_sphere(rng, 13, 1.0))
        best = ((1 - patterns @ u) ** 2 / np.einsum("pi,ij,pj->p", patterns, sigma, patterns)).min()
        excess.append(distance(w, u, sigma) / best - 1)
    assert min(excess) > -1e-9 and np.median(excess) < 1e-9 and max(excess) < 0.2


def by_many_descents(u: Array, sigma: Array, c: float, rng: np.random.Generator) -> float:
    """The least value that 400 random patterns reach by turns of single signs."""
    A = np.where(rng.random((400, len(u))) < 0.5, -1.0, 1.0)
    lane = np.arange(len(A))
    while True:
        across, gap = A @ sigma, c - A @ u
        value = gap**2 / (A * across).sum(axis=1)
        turned = (gap[:, None] + 2 * A * u) ** 2
        turned /= ((A * across).sum(axis=1))[:, None] - 4 * A * across + 4 * np.diagonal(sigma)
        best = turned.argmin(axis=1)
        better = turned[lane, best] < value * (1 - 1e-12)
        if not better.any():
            return float(value.min())
        A[lane[better], best[better]] *= -1


def test_signs_of_33_entries_are_as_good_as_those_of_many_descents() -> None:
    """A descent from a few starts alone ended up to 6 % above."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        axes = rng.normal(size=(33, 33)) * np.exp(rng.normal(size=33))
        sigma, u = axes @ axes.T + 0.01 * np.eye(33), rng.normal(size=33)
        c = float(np.abs(u).sum() * rng.uniform(1.05, 5))
        w = nearest_on_sphere(u, sigma, c, on_sphere(rng, 33, c))
        assert np.abs(w).sum() == pytest.approx(c)
        assert distance(w, u, sigma) <= by_many_descents(u, sigma, c, rng) * (1 + 1e-7)
