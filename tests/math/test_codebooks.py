"""Codebooks from second moments: conditions of the minimum for every rule of rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from mixfold.math.adaptive import adaptive_step
from mixfold.math.codebooks import RowRule, solve_codebook, swept

H, D, N = 4, 6, 60


@pytest.fixture
def data(rng):
    phi = rng.normal(size=(N, H))
    X = phi @ rng.normal(size=(H, D)) + rng.normal(size=D) + 0.3 * rng.normal(size=(N, D))
    F = np.column_stack([phi, np.ones(N)])
    return F, X, F.T @ F, F.T @ X


def test_free_rows_are_least_squares(data) -> None:
    F, X, gram, cross = data
    found = solve_codebook(np.zeros((H + 1, D)), gram, cross, RowRule())
    np.testing.assert_allclose(found, np.linalg.lstsq(F, X, rcond=None)[0], atol=1e-10)
    no_bias = solve_codebook(np.zeros((H + 1, D)), gram, cross, RowRule(bias=False))
    np.testing.assert_allclose(
        no_bias[:-1], np.linalg.lstsq(F[:, :-1], X, rcond=None)[0], atol=1e-9
    )
    assert (no_bias[-1] == 0).all()


def test_a_dead_code_keeps_its_row(data) -> None:
    F, X, _, _ = data
    F = F.copy()
    F[:, 1] = 0.0
    B = np.ones((H + 1, D))
    found = solve_codebook(B, F.T @ F, F.T @ X, RowRule())
    np.testing.assert_allclose(found[1], 1.0)
    rest = [0, 2, 3, 4]
    np.testing.assert_allclose(
        found[rest], np.linalg.lstsq(F[:, rest], X, rcond=None)[0], atol=1e-9
    )


def test_lasso_is_that_of_scikit_learn(data) -> None:
    F, X, gram, cross = data
    threshold = 12.0
    rule = RowRule(threshold)
    found = swept(np.zeros((H + 1, D)), gram, cross, rule, most=2000, tol=1e-12)
    peer = Lasso(alpha=threshold / N, tol=1e-12, max_iter=100000).fit(F[:, :-1], X)
    np.testing.assert_allclose(found[:-1], peer.coef_.T, atol=1e-7)
    np.testing.assert_allclose(found[-1], peer.intercept_, atol=1e-7)
    assert (found == 0).any()


def test_nonneg_rows_meet_the_conditions(data) -> None:
    _, _, gram, cross = data
    found = swept(np.ones((H + 1, D)), gram, cross, RowRule(nonneg=True), most=5000, tol=1e-13)
    slope = gram @ found - cross
    assert (found >= 0).all() and (found == 0).any()
    assert np.abs(slope[found > 0]).max() < 1e-8
    assert slope[found == 0].min() > -1e-8


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 3.0])
def test_bounded_rows_cannot_be_improved(data, rng, nonneg, threshold) -> None:
    _, _, gram, cross = data
    rule = RowRule(threshold, nonneg, radius=0.8)
    found = swept(
        rule.project_to_constraints(np.ones((H + 1, D))), gram, cross, rule, most=5000, tol=1e-13
    )
    assert np.linalg.norm(found[:-1], axis=1).max() <= 0.8 + 1e-12
    best = rule.value(found, gram, cross)
    for _ in range(300):
        other = rule.project_to_constraints(
            found + rng.normal(scale=10.0 ** rng.uniform(-4, 0), size=found.shape)
        )
        assert rule.value(other, gram, cross) >= best - 1e-9


def test_no_sweep_increases_the_value(data) -> None:
    _, _, gram, cross = data
    rule = RowRule(2.0, True, 1.5)
    B = rule.project_to_constraints(np.ones((H + 1, D)))
    last = rule.value(B, gram, cross)
    for _ in range(15):
        B = swept(B, gram, cross, rule, most=1)
        value = rule.value(B, gram, cross)
        assert value <= last + 1e-10
        last = value


def test_adaptive_steps_grow_and_are_halved() -> None:
    x, size = adaptive_step(np.array([1.0]), 0.5, lambda x, t: x - t, lambda x: float(x[0] ** 2))
    assert (float(x[0]), size) == (0.5, 0.65)
    x, size = adaptive_step(np.array([1.0]), 64.0, lambda x, t: x - t, lambda x: float(x[0] ** 2))
    assert (float(x[0]), size) == (-1.0, 2.6)
    x, size = adaptive_step(np.array([1.0]), 1.0, lambda x, t: x + t, lambda x: float(x[0] ** 2))
    assert float(x[0]) == 1.0
