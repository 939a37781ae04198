"""The one log-sum-exp, and what is read off responsibilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from scipy.stats import entropy

from mixfold.math.softmax import choose, clamp, entropies, log_normalised, log_shares, normalise


@pytest.mark.parametrize("level", [0.0, -1e5, 800.0])
def test_against_scipy_at_any_level(level: float, rng: np.random.Generator) -> None:
    L = 30 * rng.normal(size=(50, 4)) + level
    L[0, 1] = -np.inf
    total, share = normalise(L)
    np.testing.assert_allclose(total, logsumexp(L, axis=1), rtol=1e-14)
    np.testing.assert_allclose(share, np.exp(log_softmax(L, axis=1)), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-14)


def test_what_is_impossible_everywhere_gets_equal_shares() -> None:
    total, share = normalise(np.array([[-np.inf, -np.inf], [0.0, -np.inf]]))
    np.testing.assert_array_equal(total, [-np.inf, 0])
    np.testing.assert_array_equal(share, [[0.5, 0.5], [1, 0]])


def test_logarithms_of_shares_where_they_underflow_or_all_is_impossible() -> None:
    joint = np.array([[0.0, -1e4], [-np.inf, -np.inf], [-np.inf, -3.0]])
    found = log_normalised(joint)
    np.testing.assert_array_equal(found[[0, 2]], [[0.0, -1e4], [-np.inf, 0.0]])
    np.testing.assert_allclose(found[1], -np.log(2))


def test_arguments_are_left_alone(rng: np.random.Generator) -> None:
    L = rng.normal(size=(5, 3))
    before = L.copy()
    normalise(L)
    clamp(L, np.array([0, -1, 2, 1, -1]))
    np.testing.assert_array_equal(L, before)


def test_entropies(rng: np.random.Generator) -> None:
    share = rng.dirichlet([0.3, 1, 2], 40)
    share[0] = [0, 1, 0]
    np.testing.assert_allclose(entropies(share), entropy(share, axis=1), atol=1e-15)


def test_clamp_rules_out_all_but_the_label() -> None:
    L = np.arange(6.0).reshape(2, 3)
    clamped = clamp(L, np.array([2, -1]))
    np.testing.assert_array_equal(clamped, [[-np.inf, -np.inf, 2], [3, 4, 5]])
    assert clamp(L, None) is L


def test_choose_inverts_the_distribution() -> None:
    shares = np.tile([0.25, 0.0, 0.5, 0.25], (5, 1))
    got = choose(shares, np.array([0.1, 0.24999, 0.26, 0.74999, 0.76]))
    np.testing.assert_array_equal(got, [0, 0, 2, 2, 3])


def test_choose_never_takes_what_has_no_share(rng: np.random.Generator) -> None:
    shares = np.tile([0.0, 0.3, 0.0, 0.7, 0.0], (20_000, 1)) * 7  # any total will do
    got = np.bincount(choose(shares, rng.random(20_000)), minlength=5)
    assert got[[0, 2, 4]].sum() == 0
    assert abs(got[3] / 20_000 - 0.7) < 6 * np.sqrt(0.21 / 20_000)


@pytest.mark.parametrize("size", [1.0, 1e8, 1e15, 1e149])
def test_log_shares_sum_to_one_however_large_scores_are(size: float) -> None:
    scores = np.random.default_rng(0).normal(size=(50, 3)) * size
    scores[:5] = scores[:5, :1] + np.array([0.0, 0.5, 1.0]) * (size < 1e10)  # nearly equal ones
    np.testing.assert_allclose(np.exp(log_shares(scores)).sum(axis=1), 1.0, rtol=1e-12)
    if size < 1e10:
        np.testing.assert_allclose(np.exp(log_shares(scores)), normalise(scores)[1], atol=1e-12)
