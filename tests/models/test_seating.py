"""How rows sit down when weights are integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

from mixfold.mixing import FreeWeights, StickBreaking, SymmetricDirichlet
from mixfold.models.mixtures.partition_priors import (
    ChineseRestaurantPrior,
    DirichletMultinomialPrior,
    partition_prior_of,
)
from mixfold.testing.samplers import law


def _exact_means(seating: Any, counts: np.ndarray) -> tuple[float, float]:
    """E alpha and E ln alpha given a partition, for alpha ~ gamma(2, rate 1.5)."""

    def density(t: float) -> float:
        return float(np.exp(seating.log_prob(counts, np.exp(t)) + 2 * t - 1.5 * np.exp(t) + 8))

    def mean(of: Any) -> float:
        return quad(lambda t: of(t) * density(t), -12, 5, limit=200)[0]

    total = mean(lambda t: 1.0)
    return mean(np.exp) / total, mean(lambda t: t) / total


@pytest.mark.parametrize("counts", [[4.0, 3.0, 1.0, 0.0], [6.0, 0.0], [1.0, 0.0]])
@pytest.mark.parametrize("process", [True, False])
def test_alpha_given_the_partition(counts: Any, process: bool, rng: np.random.Generator) -> None:
    hyper = (2.0, 1.5)
    mixing = StickBreaking(1.0, True, hyper) if process else SymmetricDirichlet(1.0, True, hyper)
    seating, rows = partition_prior_of(mixing, process=process), np.array(counts)
    alpha, draws = 1.0, []
    for _ in range(6000):
        alpha = seating.draw_alpha(rows, alpha, rng)
        draws.append([alpha, np.log(alpha)])
    batches = np.array(draws).reshape(30, -1, 2).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(30)
    z = (batches.mean(axis=0) - _exact_means(seating, rows)) / error
    assert np.abs(z).max() < 4.5, z


def test_a_known_alpha_stays(rng: np.random.Generator) -> None:
    for seating in (
        ChineseRestaurantPrior(StickBreaking(3.0)),
        DirichletMultinomialPrior(SymmetricDirichlet([1.0, 2.0])),
    ):
        assert seating.first_alpha == 3.0
        assert seating.draw_alpha(np.array([2.0, 1.0]), 3.0, rng) == 3.0


def test_law_of_a_process_is_that_of_seats_taken_one_by_one() -> None:
    seating = ChineseRestaurantPrior(StickBreaking(0.7))

    def log_weight(labels: Any) -> float:
        return seating.log_prob(np.bincount(labels, minlength=4).astype(float), 0.7)

    def taken(labels: Any) -> float:
        value = 1.0
        for n, label in enumerate(labels):
            before = labels[:n].count(label)
            value *= (before or 0.7) / (n + 0.7)
        return value

    found = law(4, 4, log_weight, labelled=False)
    assert sum(np.exp(log_weight(p)) for p in found) == pytest.approx(1.0, rel=1e-12)
    for partition, share in found.items():
        assert share == pytest.approx(taken(partition), rel=1e-12)


def test_weights_of_a_process_are_those_of_its_tables(rng: np.random.Generator) -> None:
    """(N_1, ..., N_K, alpha) in a Dirichlet law, as sticks."""
    mixing = StickBreaking(2.0)
    seating, counts = ChineseRestaurantPrior(mixing), np.array([3.0, 0.0, 5.0, 1.0])
    shown, spare = seating.list_components(counts)
    assert shown.tolist() == [0, 2, 3] and spare == 1
    state = seating.weights(counts, 2.0)
    a = np.array([3.0, 5.0, 1.0, 2.0])
    np.testing.assert_allclose(mixing.mean(state), a / 11, rtol=1e-13)
    draws = np.exp([mixing.draw(state, rng) for _ in range(4000)])
    variance = a * (11 - a) / (11**2 * 12)
    np.testing.assert_allclose(draws.mean(axis=0), a / 11, atol=5 * np.sqrt(0.02 / 4000))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.15)


def test_masses() -> None:
    own, fresh = DirichletMultinomialPrior(SymmetricDirichlet([1.0, 2.0])).masses(2, 6.0)
    assert own.tolist() == [2.0, 4.0] and fresh == 0.0
    own, fresh = ChineseRestaurantPrior(StickBreaking(1.0)).masses(3, 6.0)
    assert own.tolist() == [0.0] * 3 and fresh == 6.0
    # as K grows, Dirichlet weights are a process: alpha is spread over the empty tables
    rows = np.array([3.0, 2.0])
    many = DirichletMultinomialPrior(SymmetricDirichlet(1.5)).log_prob(
        np.append(rows, np.zeros(10**5)), 1.5
    )
    labelled = gammaln(10**5 + 3) - gammaln(10**5 + 1)
    process = ChineseRestaurantPrior(StickBreaking(1.5)).log_prob(rows, 1.5)
    assert many + labelled == pytest.approx(process, abs=1e-3)


def test_other_weights_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'stick-breaking', got FreeWeights.*inference='gibbs'"):
        partition_prior_of(FreeWeights(), process=True)
