"""Dirichlet mixing weights: what the laws of all priors do not say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import psi

from mixfold.mixing import SymmetricDirichlet

COUNTS = np.array([6.0, 0.0, 2.0, 11.0, 1.0])


def test_posterior_adds_alpha_over_k() -> None:
    state = SymmetricDirichlet(2.0).posterior(COUNTS)
    np.testing.assert_allclose(state.concentration, COUNTS + 0.4)
    np.testing.assert_allclose(SymmetricDirichlet(2.0).mean(state), (COUNTS + 0.4) / 22)


def test_unequal_concentrations_keep_their_shares() -> None:
    mixing = SymmetricDirichlet(np.array([1.0, 3.0]))
    np.testing.assert_allclose(mixing.posterior(np.zeros(2)).concentration, [1, 3])
    np.testing.assert_allclose(mixing.posterior(np.zeros(2), 8.0).concentration, [2, 6])
    with pytest.raises(ValueError, match="one per component, got 2 values for 3 components"):
        mixing.posterior(np.zeros(3))
    with pytest.raises(ValueError, match="alpha must be positive and finite, got 0"):
        SymmetricDirichlet([1.0, 0.0])
    with pytest.raises(ValueError, match="hold one per component, got none"):
        SymmetricDirichlet([])


def test_equal_concentrations_are_the_symmetric_law() -> None:
    one, five = SymmetricDirichlet(2.5), SymmetricDirichlet([0.5] * 5)
    assert one.log_prob(COUNTS) == pytest.approx(five.log_prob(COUNTS))
    assert one.kl(one.posterior(COUNTS)) == pytest.approx(five.kl(five.posterior(COUNTS)))


def test_expected_log_weights_stay_finite_when_a_component_dies() -> None:
    expected = SymmetricDirichlet(1.0).expected_log_weights(
        SymmetricDirichlet(1.0).posterior(np.zeros(1000))
    )
    np.testing.assert_allclose(expected, psi(1e-3) - psi(1.0))


@pytest.mark.parametrize("hyper", [(1.0, 1.0), (3.0, 0.2), None])
def test_alternation_finds_the_alpha_of_the_assignment_law(
    hyper: tuple[float, float] | None,
) -> None:
    mixing = SymmetricDirichlet(1.0, learn_alpha=True, hyper=hyper)

    def loss(log_alpha: float) -> float:
        alpha = float(np.exp(log_alpha))
        prior = 0.0 if hyper is None else stats.gamma(hyper[0], scale=1 / hyper[1]).logpdf(alpha)
        return -mixing.log_prob(COUNTS, alpha) - prior

    best = minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
    alpha = 1.0
    for _ in range(2000):
        alpha = mixing.update_alpha(mixing.posterior(COUNTS, alpha))
    assert alpha == pytest.approx(np.exp(best.x), rel=1e-4)
    state = mixing.posterior(COUNTS, alpha)
    assert COUNTS @ mixing.expected_log_weights(state) - mixing.kl(state) == pytest.approx(
        -best.fun
    )


def test_many_components_behave_like_a_dirichlet_process() -> None:
    """P(partition) = number of labelings x P(z) tends to Ewens' formula."""
    K, alpha = 100_000, 1.5
    counts = np.zeros(K)
    counts[:2] = 3, 1
    labelings = np.log(K) + np.log(K - 1)
    ewens = np.log(alpha**2 * 2 / (alpha * (alpha + 1) * (alpha + 2) * (alpha + 3)))
    assert SymmetricDirichlet(alpha).log_prob(counts) + labelings == pytest.approx(ewens, abs=1e-3)


def test_order_does_not_matter() -> None:
    mixing = SymmetricDirichlet(0.7)
    assert mixing.order(COUNTS) is None
    assert mixing.log_prob(COUNTS) == pytest.approx(mixing.log_prob(np.sort(COUNTS)))
