"""Shares above a floor against a numerical optimiser and the plain quotient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mixfold.math.floored_shares import shares_above_floor


def test_without_a_floor_they_are_in_proportion(rng: np.random.Generator) -> None:
    amounts = rng.random((4, 9))
    got = shares_above_floor(amounts, np.array([0, 2, 5]), 1e-12)
    for a, b in ((0, 2), (2, 5), (5, 9)):
        part = amounts[:, a:b]
        np.testing.assert_allclose(got[:, a:b], part / part.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("seed", range(5))
def test_they_maximise_the_likelihood_under_the_floor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    amounts, floor = rng.dirichlet(np.full(6, 0.3)) * 10, 0.08
    got = shares_above_floor(amounts[None], np.zeros(1, int), floor)[0]
    assert got.min() >= floor * (1 - 1e-12)
    assert got.sum() == pytest.approx(1)
    best = minimize(
        lambda p: -amounts @ np.log(p),
        np.full(6, 1 / 6),
        bounds=[(floor, 1)] * 6,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(got, best.x, atol=1e-5)
    assert amounts @ np.log(got) >= -best.fun - 1e-8


def test_shares_at_the_floor_stay_there() -> None:
    """A second time changes nothing, and ends: rounding must not move the floor's members."""
    amounts = np.concatenate([np.zeros(50), np.full(7, 1e-12), [3.0, 1.0]])[None]
    once = shares_above_floor(amounts, np.zeros(1, int), 1e-12)
    again = shares_above_floor(once, np.zeros(1, int), 1e-12)
    np.testing.assert_allclose(again, once, rtol=1e-13)


def test_a_segment_without_amounts_has_no_shares() -> None:
    amounts = np.array([[0.0, 0.0, 1.0, 3.0], [1.0, 1.0, 0.0, 2.0]])
    got = shares_above_floor(amounts, np.array([0, 2]), 1e-3)
    assert np.isnan(got[0, :2]).all()
    np.testing.assert_allclose(got[0, 2:], [0.25, 0.75])
    np.testing.assert_allclose(got[1], [0.5, 0.5, 1e-3, 1 - 1e-3])
