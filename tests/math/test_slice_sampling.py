"""Slice sampling against the law it should leave unchanged."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mixfold.math.slice_sampling import slice_sample


@pytest.mark.parametrize("width", [0.2, 1.0, 20.0])
def test_a_transition_keeps_the_law(width: float, rng: np.random.Generator) -> None:
    law = stats.loggamma(0.7)

    def log_density(x: float) -> float:
        return 0.7 * x - math.exp(x)

    starts = law.rvs(3000, random_state=rng)
    ends = np.array([slice_sample(log_density, x, rng, width) for x in starts])
    assert stats.kstest(ends, law.cdf).pvalue > 1e-3
    assert (ends != starts).all()


def test_two_modes_keep_their_shares(rng: np.random.Generator) -> None:
    """Stepping out must begin at a random place: modes apart would lose their balance if not."""
    low, high = stats.norm(-2, 0.3), stats.norm(1, 1)

    def log_density(x: float) -> float:
        narrow = math.log(0.3 / 0.3) - 0.5 * ((x + 2) / 0.3) ** 2
        return float(np.logaddexp(narrow, math.log(0.7) - 0.5 * (x - 1) ** 2))

    left = rng.random(3000) < 0.3
    x = np.where(left, low.rvs(3000, random_state=rng), high.rvs(3000, random_state=rng))
    for _ in range(6):
        x = np.array([slice_sample(log_density, start, rng, 2.0) for start in x])
    assert stats.kstest(x, lambda t: 0.3 * low.cdf(t) + 0.7 * high.cdf(t)).pvalue > 1e-3
    assert ((x < -1) != left).mean() > 0.2  # rows do go over


def test_a_start_outside_the_support_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"finite at the start -1\.0, got -inf"):
        slice_sample(lambda x: 0.0 if 0 < x < 1 else -math.inf, -1.0, rng)


def test_a_density_that_does_not_fall_off_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="does not fall off within 1000 steps"):
        slice_sample(lambda x: 0.0, 0.0, rng)
