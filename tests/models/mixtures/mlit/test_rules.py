"""Transformations of a component against the published loops, and what they converge to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mixfold.contracts import Array
from mixfold.models.mixtures.mlit.model import law
from mixfold.models.mixtures.mlit.records import Moments
from mixfold.models.mixtures.mlit.rules import NORMS, Constrained, Normalized, Orthonormal, swept


def rows(seed: int = 0, n: int = 80, D: int = 6) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D))


def moments(X: Array, weight: Array | None = None) -> Moments:
    share = np.ones(len(X)) if weight is None else weight
    mean = np.average(X, axis=0, weights=share)
    covariance = np.cov(X.T, bias=True, aweights=share)
    return Moments(float(share.sum()), mean, covariance, covariance)


def begun(X: Array, d: int, seed: int = 1) -> tuple[Array, Array, Array]:
    omega = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1], d)))[0].T
    return (omega, *law(omega, moments(X), 0.01))


# ------------------------------------------------ normalised


@pytest.mark.parametrize("seed", range(4))
def test_a_sweep_is_the_loop_over_columns(seed: int) -> None:
    """w_j <- (mu a_j - sum_{i != j} w_i A_ij) / A_jj, literally."""
    X, weight = rows(seed), np.random.default_rng(seed).random(80)
    omega, mean, _ = begun(X, 3, seed)
    A, a = (X * weight[:, None]).T @ X, weight @ X
    wanted = omega.copy()
    for j in range(X.shape[1]):
        others = sum(wanted[:, i] * A[i, j] for i in range(X.shape[1]) if i != j)
        wanted[:, j] = (mean * a[j] - others) / A[j, j]
    np.testing.assert_allclose(swept(omega, mean, moments(X, weight)), wanted, rtol=1e-9)
    got = Normalized(7.0).move(omega, mean, np.eye(3), moments(X, weight), 1)
    assert np.linalg.norm(got) == pytest.approx(7.0)
    np.testing.assert_allclose(got, wanted * 7 / np.linalg.norm(wanted), rtol=1e-9)


def test_each_column_of_a_sweep_is_the_best_given_the_others() -> None:
    X = rows()
    omega, mean, covariance = begun(X, 2)

    def fit(trial: Array) -> float:
        return float(multivariate_normal(mean, covariance).logpdf(X @ trial.T).sum())

    first = omega.copy()
    first[:, 0] = swept(omega, mean, moments(X))[:, 0]  # the first column sees the old others
    best = fit(first)
    for step in 1e-3 * np.random.default_rng(0).normal(size=(50, 2)):
        nearby = first.copy()
        nearby[:, 0] += step
        assert fit(nearby) < best


def test_columns_of_zeros_stay() -> None:
    X = rows()
    X[:, [1, 4]] = 0.0
    omega, mean, covariance = begun(X, 2)
    got = swept(omega, mean, moments(X))
    np.testing.assert_array_equal(got[:, [1, 4]], omega[:, [1, 4]])
    A, a = X.T @ X, X.sum(axis=0)
    wanted = omega.copy()
    for j in (0, 2, 3, 5):
        wanted[:, j] = (mean * a[j] - wanted @ A[:, j] + wanted[:, j] * A[j, j]) / A[j, j]
    np.testing.assert_allclose(got, wanted, rtol=1e-9)
    start = Constrained(3.0).start(omega)
    held = Constrained(3.0).move(start, mean, covariance, moments(X), 1)
    np.testing.assert_array_equal(held[:, [1, 4]], start[:, [1, 4]])


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_sweeps_of_one_component_are_powers_of_a_matrix(scale: float) -> None:
    """Omega_t = scale Omega_0 (T')^t / |.| with T = L^-1 (a a'/n - U), whatever the scale."""
    X = rows(3, 200, 7)
    now, A, a = moments(X), X.T @ X, X.sum(axis=0)
    T = np.linalg.solve(np.tril(A), np.outer(a, a) / len(X) - np.triu(A, 1))
    assert np.abs(np.linalg.eigvals(T)).max() < 1
    first = Normalized(scale).start(begun(X, 3)[0])
    omega, power = first, first
    for t in range(1, 41):
        omega = Normalized(scale).move(omega, omega @ now.mean, np.eye(3), now, t)
        power = power @ T.T
        np.testing.assert_allclose(omega, scale * power / np.linalg.norm(power), atol=1e-7 * scale)


def test_sweeps_end_in_rank_one() -> None:
    X = rows(5, 300, 6)
    now, omega = moments(X), begun(X, 3)[0]
    for t in range(400):
        omega = Normalized(1.0).move(omega, omega @ now.mean, np.eye(3), now, t)
    first, second, *_ = np.linalg.svd(omega)[1]
    assert second / first < 1e-3 and np.linalg.norm(omega) == pytest.approx(1.0)


# ------------------------------------------------ constrained


def quality(omega: Array, mean: Array, covariance: Array, now: Moments) -> float:
    """Expected log density of the rows for a given mean and covariance."""
    gap = omega @ now.mean - mean
    spread = omega @ now.covariance @ omega.T + np.outer(gap, gap)
    return float(-0.5 * now.n * np.trace(np.linalg.solve(covariance, spread)))


@pytest.mark.parametrize("d", [1, 2, 5, 14])
@pytest.mark.parametrize("scale", [0.5, 20.0, 500.0])
def test_columns_stay_on_the_sphere_and_the_quality_never_falls(d: int, scale: float) -> None:
    D = 16
    X = rows(d, 200, D)
    now, rule = moments(X), Constrained(scale)
    omega = rule.start(begun(X, d)[0])
    for step in range(1, 4):
        np.testing.assert_allclose(np.abs(omega).sum(axis=0), scale / D, rtol=1e-9)
        mean, covariance = law(omega, now, 1e-9 * scale)
        before = quality(omega, mean, covariance, now)
        omega = rule.move(omega, mean, covariance, now, step)
        after = quality(omega, mean, covariance, now)
        assert after >= before - 1e-9 * abs(before)
    np.testing.assert_allclose(np.abs(omega).sum(axis=0), scale / D, rtol=1e-9)


def test_one_column_at_a_time_in_turn() -> None:
    X = rows()
    now, rule = moments(X), Constrained(6.0, columns=1)
    omega = rule.start(begun(X, 3)[0])
    mean, covariance = law(omega, now, 0.01)
    one_by_one = omega
    for step in range(1, 8):
        before = one_by_one
        one_by_one = rule.move(before, mean, covariance, now, step)
        changed = np.flatnonzero((one_by_one != before).any(axis=0))
        assert set(changed) <= {(step - 1) % 6}
        if step == 6:  # all of them once, as a step without a limit does
            whole = Constrained(6.0).move(omega, mean, covariance, now, 1)
            np.testing.assert_allclose(one_by_one, whole)
    many = replace(rule, columns=100).move(omega, mean, covariance, now, 1)
    np.testing.assert_array_equal(many, Constrained(6.0).move(omega, mean, covariance, now, 1))


def test_a_column_without_direction_begins_somewhere_on_the_sphere() -> None:
    axes = np.eye(2, 4)  # two columns of zeros
    omega = Constrained(8.0).start(axes)
    np.testing.assert_allclose(np.abs(omega).sum(axis=0), 2.0)


# ------------------------------------------------ orthonormal


def test_the_axes_of_least_variance() -> None:
    X = rows(2)
    now = moments(X)
    omega = Orthonormal().move(np.eye(3, 6), np.zeros(3), np.eye(3), now, 1)
    values = np.linalg.eigvalsh(now.covariance)
    np.testing.assert_allclose(omega @ omega.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(omega @ now.covariance @ omega.T, np.diag(values[:3]), atol=1e-9)
    assert (omega[np.arange(3), np.abs(omega).argmax(axis=1)] > 0).all()  # signs are fixed


def test_among_too_many_flat_axes_those_in_which_other_rows_differ() -> None:
    within = np.diag([1.0, 1.0, 0.0, 0.0, 0.0])
    of_all = np.diag([1.0, 1.0, 0.1, 5.0, 2.0])
    omega = Orthonormal().move(np.eye(2, 5), np.zeros(2), np.eye(2),
                               Moments(10.0, np.zeros(5), within, of_all), 1)  # fmt: skip
    np.testing.assert_allclose(np.abs(omega), np.eye(5)[[3, 4]], atol=1e-12)


def _norms_by_definition(omega: np.ndarray) -> dict[str, float]:
    values = np.sqrt(np.linalg.eigvalsh(omega @ omega.T))
    sizes = np.abs(omega)
    return {
        "frobenius": float(np.sqrt((omega**2).sum())),
        "spectral": float(values.max()),
        "nuclear": float(values.sum()),
        "l1": float(sizes.sum(axis=0).max()),
        "linf": float(sizes.sum(axis=1).max()),
        "entrywise": float(sizes.sum()),
    }


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_every_norm_is_what_its_name_says(norm: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 4)) + 1.0
    omega = rng.normal(size=(2, 4))
    rule = Normalized(7.0, norm)
    now = moments(X, np.ones(50))
    moved = rule.move(omega, omega @ now.mean, np.eye(2), now, 1)
    for found in (rule.start(omega), moved):
        assert np.isclose(_norms_by_definition(found)[norm], 7.0)
    plain = Normalized(7.0).move(omega, omega @ now.mean, np.eye(2), now, 1)
    np.testing.assert_allclose(moved / moved[0, 0], plain / plain[0, 0])
