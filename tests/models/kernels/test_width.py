"""Hyvarinen's score of held-out rows: differences of density, the Gaussian limit, the choice."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold import KernelPCA
from mixfold.contracts import Array
from mixfold.models.kernels.width import Widths, held_out_parts, score_widths


def score_of(part: object, axes: int, t: float) -> Array:
    """H of the held-out rows under a law of so many axes with the noise 1 / t."""
    names = ("along", "beside", "along2", "both", "beside2")
    a, b, aa, ab, bb = (getattr(part, name)[:, axes - 1] for name in names)
    return np.asarray(2 * (a + t * b) + aa + 2 * t * ab + t**2 * bb)


def score_by_differences(density: object, x: Array, step: float = 1e-3) -> float:
    """2 (sum of second differences) + (sum of squares of first differences)."""
    total, here = 0.0, density(x[None])[0]  # type: ignore[operator]
    for j in range(len(x)):
        move = step * np.eye(len(x))[j]
        after, before = density((x + move)[None])[0], density((x - move)[None])[0]  # type: ignore[operator]
        first, second = (after - before) / (2 * step), (after - 2 * here + before) / step**2
        total += 2 * second + first**2
    return float(total)


@pytest.mark.parametrize("axes", [1, 3, 5])
def test_the_score_is_that_of_the_density_of_features_as_a_function_of_the_row(
    axes: int, rng: np.random.Generator
) -> None:
    X, rows = rng.normal(size=(40, 3)) * [2, 1, 0.5], rng.normal(size=(6, 3))
    weight = rng.integers(1, 4, 40).astype(float)
    noise = 0.01
    model = KernelPCA(axes, gamma=0.4, noise_variance=noise).fit(X, sample_weight=weight)
    part = held_out_parts(0.4, X, weight, rows, np.ones(6), 5)
    np.testing.assert_allclose(1 / part.least[0, :axes], model.explained_variance_, rtol=1e-9)
    wanted = [score_by_differences(model.score_samples, x) for x in rows]
    np.testing.assert_allclose(score_of(part, axes, 1 / noise), wanted, rtol=1e-4, atol=1e-3)


def test_a_wide_kernel_gives_the_score_of_a_gaussian(rng: np.random.Generator) -> None:
    X, rows = rng.normal(size=(60, 3)) * [3, 2, 1], rng.normal(size=(5, 3))
    gamma, v = 1e-6, 0.7
    part = held_out_parts(gamma, X, np.ones(60), rows, np.ones(5), 2)
    values, U = np.linalg.eigh(np.cov(X.T, bias=True))
    leading = U[:, ::-1][:, :2]
    precision = leading @ np.diag(1 / values[::-1][:2] - 1 / v) @ leading.T + np.eye(3) / v
    slope = (rows - X.mean(axis=0)) @ precision
    wanted = -2 * np.trace(precision) + (slope**2).sum(axis=1)
    # features are sqrt(2 gamma) x: so is the noise
    np.testing.assert_allclose(score_of(part, 2, 1 / (2 * gamma * v)), wanted, rtol=1e-3)


def test_the_noise_is_the_best_one_and_below_the_axes(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 2)) + 4 * rng.integers(2, size=(80, 1))
    folds = [np.arange(i, 80, 4) for i in range(4)]
    found = score_widths(np.array([0.05, 0.2]), X, np.ones(80), folds, 4)
    assert found.gamma.shape == found.score.shape == found.noise.shape
    for i in (0, 1, len(found.gamma) // 2):
        parts = []
        for out in folds:
            inside = np.setdiff1d(np.arange(80), out)
            parts.append(held_out_parts(
                float(found.gamma[i]), X[inside], np.ones(60), X[out], np.ones(20), 4))  # fmt: skip
        axes = int(found.n_axes[i])

        def mean(t: float, parts: list[object] = parts, axes: int = axes) -> float:
            return float(np.mean([score_of(part, axes, t) for part in parts]))

        t, floor = 1 / found.noise[i], np.mean([p.least[0, axes - 1] for p in parts])
        assert t >= floor * (1 - 1e-12)
        np.testing.assert_allclose(mean(t), found.score[i], rtol=1e-9)
        assert mean(t) <= mean(1.01 * t)
        assert mean(t) <= mean(0.99 * t) or t == pytest.approx(floor)


def test_weights_count_and_equal_ones_do_not(rng: np.random.Generator) -> None:
    X, folds = rng.normal(size=(60, 2)), [np.arange(i, 60, 3) for i in range(3)]
    gammas = np.array([0.3])
    plain = score_widths(gammas, X, np.ones(60), folds, 3)
    twice = score_widths(gammas, X, np.full(60, 2.0), folds, 3)
    np.testing.assert_allclose(twice.score, plain.score, rtol=1e-9)
    uneven = score_widths(gammas, X, np.where(np.arange(60) < 30, 1.0, 3.0), folds, 3)
    assert np.abs(uneven.score - plain.score).max() > 1e-3


def test_the_choice_is_the_smoothest_within_one_error_of_the_best() -> None:
    tried = Widths(
        gamma=np.array([0.1, 0.1, 1.0, 1.0, 9.0]), n_axes=np.array([1, 2, 1, 2, 1]),
        score=np.array([-1.0, -4.2, -4.5, -5.0, -4.9]), error=np.full(5, 0.6),
        noise=np.ones(5),
    )  # fmt: skip
    assert tried.choose() == 2  # -4.5 is within 0.6 of -5; -4.2 is not
    assert (
        Widths(tried.gamma, tried.n_axes, tried.score, np.full(5, 0.9), tried.noise).choose() == 1
    )
