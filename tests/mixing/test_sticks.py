"""Stick-breaking mixing weights: what the laws of all priors do not say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from mixfold.mixing import StickBreaking
from mixfold.mixing.sticks import truncation_mass

COUNTS = np.array([6.0, 0.0, 2.0, 11.0, 1.0])


def test_posterior_counts_what_is_broken_off_and_what_goes_on() -> None:
    state = StickBreaking(0.5).posterior(COUNTS)
    np.testing.assert_allclose(state.first, [7, 1, 3, 12])
    np.testing.assert_allclose(state.second, [14.5, 14.5, 12.5, 1.5])


def test_the_last_stick_is_not_random() -> None:
    """Weights add up to one in every draw, and P(z) is a product of K - 1 beta integrals."""
    mixing = StickBreaking(1.3)
    expected = 0.0
    for k in range(4):
        later = COUNTS[k + 1 :].sum()
        integral = stats.beta(1, 1.3).expect(
            lambda v, k=k, later=later: v ** COUNTS[k] * (1 - v) ** later, epsabs=0
        )
        expected += np.log(integral)
    assert mixing.log_prob(COUNTS) == pytest.approx(expected, rel=1e-6)


def test_small_late_counts_are_not_lost_behind_large_early_ones() -> None:
    counts = np.array([1e16, 0.25, 0.5])
    np.testing.assert_allclose(StickBreaking(1e-3).posterior(counts).second, [0.751, 0.501])


@pytest.mark.parametrize("hyper", [(1.0, 1.0), (3.0, 0.2)])
def test_bound_with_an_unknown_alpha_is_below_the_evidence(hyper: tuple[float, float]) -> None:
    mixing = StickBreaking(1.0, learn_alpha=True, hyper=hyper)
    prior = stats.gamma(hyper[0], scale=1 / hyper[1])
    total = quad(lambda a: prior.pdf(a) * np.exp(mixing.log_prob(COUNTS, a)), 0, 200, limit=400)[0]
    exact = np.log(total)
    alpha = 1.0
    for start in (0.1, 1.0, 20.0):
        state = mixing.posterior(COUNTS, start)
        assert COUNTS @ mixing.expected_log_weights(state) - mixing.kl(state) < exact
    for _ in range(100):
        alpha = mixing.update_alpha(mixing.posterior(COUNTS, alpha))
    state = mixing.posterior(COUNTS, alpha)
    gap = exact - (COUNTS @ mixing.expected_log_weights(state) - mixing.kl(state))
    assert 0 < gap < 0.2


def test_learned_alpha_without_a_prior_is_the_maximum_of_the_law() -> None:
    mixing = StickBreaking(1.0, learn_alpha=True, hyper=None)
    alpha = 1.0
    for _ in range(500):
        alpha = mixing.update_alpha(mixing.posterior(COUNTS, alpha))
    best = mixing.log_prob(COUNTS, alpha)
    for other in (0.98 * alpha, 1.02 * alpha):
        assert mixing.log_prob(COUNTS, other) < best


def test_order_is_kept_only_if_the_bound_rises(rng: np.random.Generator) -> None:
    mixing = StickBreaking(1.0, reorder=True)
    taken = better = 0
    for alpha in rng.gamma(1.0, 2.0, 300):
        counts = rng.gamma(0.7, 8, 4)
        decreasing = np.sort(counts)[::-1]
        rises = mixing.log_prob(decreasing, alpha) > mixing.log_prob(counts, alpha) + 1e-6
        order = mixing.order(counts, alpha)
        assert (order is not None) == rises
        if order is not None:
            np.testing.assert_array_equal(counts[order], decreasing)
            taken += 1
            before, after = (StickBreaking().posterior(c, alpha) for c in (counts, decreasing))
            rise = decreasing @ mixing.expected_log_weights(after) - mixing.kl(after)
            better += rise > counts @ mixing.expected_log_weights(before) - mixing.kl(before)
    assert better == taken
    assert 100 < taken < 300  # sorting is mostly, not always, an improvement


def test_order_is_an_option_and_leaves_sorted_counts_alone() -> None:
    assert StickBreaking(1.0).order(COUNTS) is None
    sorted_counts = np.sort(COUNTS)[::-1]
    assert StickBreaking(1.0, reorder=True).order(sorted_counts) is None
    assert StickBreaking(1.0, reorder=True).order(COUNTS) is not None


@pytest.mark.parametrize(("K", "alpha"), [(1, 2.0), (5, 0.3), (40, 10.0)])
def test_truncation_mass_is_the_last_mean_weight(K: int, alpha: float) -> None:
    mixing = StickBreaking(alpha)
    last = mixing.mean(mixing.posterior(np.zeros(K)))[-1]
    assert truncation_mass(K, alpha) == pytest.approx(last, rel=1e-10)
