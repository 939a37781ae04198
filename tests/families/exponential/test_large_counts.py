"""Counts beyond the range of integers are drawn with the moments of their law."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold import MultinomialMixture, PoissonMixture
from mixfold.families.exponential.large_counts import draw_multinomial, draw_poisson


@pytest.mark.parametrize("rate", [30.0, 1e14, 1e17, 1e40])
def test_poisson_counts_have_mean_and_variance_of_their_rate(rate: float) -> None:
    x = draw_poisson(np.full(20_000, rate), np.random.default_rng(0))
    assert abs(x.mean() / rate - 1) < 5 / np.sqrt(20_000 * rate) + 1e-15
    if rate < 1e30:  # beyond, the spread is below the last digit
        assert ((x - rate) ** 2).mean() == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("total", [50.0, 1e14, 1e18])
def test_multinomial_counts_have_the_covariance_of_their_shares(total: float) -> None:
    p = np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    x = draw_multinomial(np.full(20_000, total), np.tile(p, (20_000, 1)), rng)
    away = (x - total * p) / np.sqrt(total)
    np.testing.assert_allclose(away.T @ away / len(x), np.diag(p) - np.outer(p, p), atol=0.02)


def test_mixtures_of_huge_counts_can_be_drawn_from() -> None:
    X = np.random.default_rng(2).poisson(5.0, (40, 3)) * 1e25
    for kind in (PoissonMixture, MultinomialMixture):
        drawn = kind(1, random_state=0).fit(X).sample(5, random_state=0)[0]
        assert (drawn > 1e24).any() and np.isfinite(drawn).all()
