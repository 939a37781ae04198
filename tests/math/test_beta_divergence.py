"""Beta divergences: scikit-learn's, slopes by differences, and bounds that are bounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition._nmf import _beta_divergence

from mixfold.math.beta_divergence import BetaDivergence, check_range

POWERS = (-1.0, 0.0, 0.5, 1.0, 1.3, 2.0, 2.7)


@pytest.mark.parametrize("power", POWERS)
def test_values_are_those_of_scikit_learn(power) -> None:
    rng = np.random.default_rng(0)
    X, W, H = rng.gamma(1, size=(5, 4)), rng.gamma(1, size=(5, 2)), rng.gamma(1, size=(2, 4))
    wanted = _beta_divergence(X, W, H, power)
    found = BetaDivergence(power).value(X, W @ H).sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("power", POWERS)
def test_slopes_are_those_of_differences(power) -> None:
    d, x, v = BetaDivergence(power), np.array([0.3, 2.0, 1.0]), np.array([0.7, 0.4, 1.0])
    up, down = d.slopes(x, v)
    difference = (d.value(x, v + 1e-6) - d.value(x, v - 1e-6)) / 2e-6
    np.testing.assert_allclose(up - down, difference, atol=1e-6)
    assert (up > 0).all() and (down > 0).all()
    np.testing.assert_allclose(d.value(x, x), 0.0, atol=1e-15)


@pytest.mark.parametrize("weight", [0.0, 0.7])
@pytest.mark.parametrize("power", POWERS)
def test_the_bound_touches_and_is_never_below(power, weight) -> None:
    """Also with a penalty; and its minimum is the step."""
    rng = np.random.default_rng(1)
    A, x = rng.gamma(1, size=(3, 6)), rng.gamma(1, size=6)
    d, at = BetaDivergence(power), rng.gamma(2, size=3)

    def cost(phi):
        return d.value(x, phi @ A).sum() + weight * phi.sum()

    up, down = d.slopes(x, at @ A)
    push, pull = d.bound_sums(A @ up, A @ down, at)
    push = push + d.penalty(weight, at)
    ground = cost(at) - d.bound_value(push, pull, at)
    for _ in range(300):
        phi = at * np.exp(rng.normal(0, 1.0, 3))
        assert d.bound_value(push, pull, phi) + ground >= cost(phi) - 1e-10 * cost(phi)
    best = d.bound_minimum(push, pull, at)
    np.testing.assert_allclose(best, d.step(A @ up + weight, A @ down, at), rtol=1e-12)
    least = d.bound_value(push, pull, best)
    for h in range(3):
        for factor in (0.99, 1.01):
            phi = best.copy()
            phi[h] *= factor
            assert d.bound_value(push, pull, phi) > least


def test_values_without_a_loss_are_refused() -> None:
    zero, holed = np.array([[1.0, 0.0]]), np.array([[1.0, np.nan]])
    for power in (0.0, -0.5):
        with pytest.raises(ValueError, match="X holds 0, where the loss"):
            check_range(zero, BetaDivergence(power))
        check_range(holed, BetaDivergence(power))
    check_range(zero, BetaDivergence(0.5))
    with pytest.raises(ValueError, match="Negative values in data: X holds -1"):
        check_range(-holed, BetaDivergence(1.5))
