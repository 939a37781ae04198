"""Free mixing weights."""

from __future__ import annotations

import numpy as np

from mixfold.mixing import FreeWeights


def test_weights_are_shares_of_the_counts() -> None:
    np.testing.assert_allclose(
        FreeWeights().posterior(np.array([1.0, 3, 0, 4])), [1 / 8, 3 / 8, 0, 1 / 2]
    )


def test_shares_are_the_maximum_of_the_likelihood(rng: np.random.Generator) -> None:
    counts = rng.uniform(0.1, 5, 4)
    best = FreeWeights().posterior(counts)
    for other in rng.dirichlet(np.ones(4), 200):
        assert counts @ np.log(other) <= counts @ np.log(best)


def test_a_component_without_rows_is_ruled_out_without_a_warning() -> None:
    log_weights = FreeWeights().mode(np.array([0.25, 0.0, 0.75]))
    np.testing.assert_allclose(log_weights, [np.log(0.25), -np.inf, np.log(0.75)])


def test_one_weight_is_not_free() -> None:
    assert [FreeWeights().n_free(k) for k in (1, 2, 5)] == [0, 1, 4]


def test_nothing_assigned_has_probability_one() -> None:
    assert FreeWeights().log_prob(np.zeros(3)) == 0
