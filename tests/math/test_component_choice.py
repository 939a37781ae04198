"""Components of a union that are kept: against all subsets, with copies, weights and odd rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from mixfold.contracts import Array
from mixfold.math.component_choice import choose_components


def _union(seed: int) -> tuple[Array, Array, Array]:
    """Log densities (200, 8) of three components near the truth and of five others, and weights."""
    rng = np.random.default_rng(seed)
    centres = 5 * rng.normal(size=3)
    x = centres[rng.integers(3, size=200)] + rng.normal(size=200)
    means = np.concatenate([centres + 0.2 * rng.normal(size=3), 5 * rng.normal(size=5)])
    scales = np.concatenate([np.ones(3), rng.uniform(0.5, 3, 5)])
    order = rng.permutation(8)
    weight = rng.integers(1, 4, 200).astype(float)
    return norm.logpdf(x[:, None], means[order], scales[order]), weight, x


def _best(log_density: Array, weight: Array) -> float:
    """The highest mean log-likelihood of these components with weights of their own."""
    density = np.exp(log_density)
    a = np.full(density.shape[1], 1 / density.shape[1])
    for _ in range(400):
        a = a * (density.T @ (weight / weight.sum() / (density @ a)))
    return float(weight @ np.log(density @ a) / weight.sum())


@pytest.mark.parametrize("seed", range(6))
def test_the_kept_components_are_nearly_the_best_of_all_subsets(seed: int) -> None:
    """Elimination is greedy: it may miss the best by what nearly equal components differ."""
    log_density, weight, _ = _union(seed)
    chosen, _ = choose_components(log_density, weight, 3)
    values = {c: _best(log_density[:, c], weight) for c in combinations(range(8), 3)}
    assert values[tuple(chosen)] > max(values.values()) - 0.003
    assert sum(value > values[tuple(chosen)] for value in values.values()) <= 4


def test_copies_go_first_and_one_of_them_stays() -> None:
    log_density, weight, _ = _union(0)
    chosen, _ = choose_components(log_density, weight, 3)
    twice = np.concatenate([log_density[:, chosen]] * 3, axis=1)
    kept, a = choose_components(twice, weight, 3)
    assert sorted(kept % 3) == [0, 1, 2]
    terms = np.exp(twice[:, kept]) * a
    alone = _best(log_density[:, chosen], weight)
    assert weight @ np.log(terms.sum(axis=1)) / weight.sum() == pytest.approx(alone, abs=5e-3)


def test_a_weight_is_a_repetition_and_zero_an_absence() -> None:
    log_density, weight, _ = _union(1)
    weight[::7] = 0
    repeated = np.repeat(log_density, weight.astype(int), axis=0)
    one, other = (
        choose_components(log_density, weight, 4),
        choose_components(repeated, np.ones(len(repeated)), 4),
    )
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_allclose(one[1], other[1], rtol=1e-9)


def test_rows_that_one_component_alone_explains_keep_it() -> None:
    log_density = np.full((60, 5), -3000.0)
    log_density[np.arange(60), np.arange(60) % 3] = 0.0  # two components explain nothing
    log_density[:3] = -np.inf  # and three rows are impossible
    chosen, a = choose_components(log_density, np.ones(60), 3)
    np.testing.assert_array_equal(chosen, [0, 1, 2])
    np.testing.assert_allclose(a, 1 / 3, atol=0.02)
