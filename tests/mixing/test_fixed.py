"""Mixing weights that are given."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.mixing import FixedWeights


def test_weights_do_not_listen_to_counts() -> None:
    mixing = FixedWeights(np.array([0.25, 0.0, 0.75]))
    state = mixing.posterior(np.array([9.0, 9.0, 1.0]))
    np.testing.assert_array_equal(state, [0.25, 0.0, 0.75])
    np.testing.assert_allclose(mixing.mode(state), [np.log(0.25), -np.inf, np.log(0.75)])
    assert mixing.n_free(3) == 0
    assert mixing.order(np.array([9.0, 9.0, 1.0])) is None


def test_a_component_of_weight_zero_has_no_rows() -> None:
    mixing = FixedWeights([0.25, 0.0, 0.75])
    assert mixing.log_prob(np.array([1, 0, 1])) == pytest.approx(np.log(0.25 * 0.75))
    assert mixing.log_prob(np.array([1, 1, 1])) == -np.inf


def test_rounded_weights_are_made_to_sum_to_one() -> None:
    weights = FixedWeights([0.3333333, 0.3333333, 0.3333333]).weights
    assert sum(weights) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.6], "must sum to one, got the sum 1.1"),
        ([1.5, -0.5], "must not be negative or NaN, got -0.5 for component 1"),
        ([np.nan, 1.0], "must not be negative or NaN, got nan for component 0"),
        ([], r"one number per component, got an array of shape \(0,\)"),
        ([[0.5, 0.5]], r"one number per component, got an array of shape \(1, 2\)"),
    ],
)
def test_wrong_weights_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FixedWeights(weights)


def test_another_number_of_components_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fixed for 2 components, got counts of shape \(3,\)"):
        FixedWeights([0.5, 0.5]).posterior(np.ones(3))
