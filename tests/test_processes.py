"""Samplers of the Dirichlet process: three ways, one law of partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from mixfold.processes import (
    Sticks,
    chinese_restaurant,
    expected_tables,
    polya_urn,
    stick_breaking,
)


def _normal(size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=size)


def _first_seen(labels: np.ndarray) -> tuple[int, ...]:
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(label), len(seen)) for label in labels)


def _urn(n: int, alpha: float, random_state: Any) -> np.ndarray:
    values, tables = polya_urn(n, alpha, _normal, random_state)
    # the values themselves, not the tables reported with them
    labels = np.unique(values, return_inverse=True)[1]
    assert _first_seen(labels) == tuple(tables)
    return labels


def _restaurant(n: int, alpha: float, random_state: Any) -> np.ndarray:
    tables, counts = chinese_restaurant(n, alpha, random_state)
    np.testing.assert_array_equal(np.bincount(tables), counts)
    return tables


def _sticks(n: int, alpha: float, random_state: Any) -> np.ndarray:
    return stick_breaking(n, alpha, _normal, random_state).labels


SAMPLERS = {"urn": _urn, "restaurant": _restaurant, "sticks": _sticks}


def _ewens(n: int, alpha: float) -> dict[tuple[int, ...], float]:
    """P(partition) = alpha^K prod (N_k - 1)! G(alpha) / G(alpha + n), over all partitions."""
    partitions: list[tuple[int, ...]] = [(0,)]
    for _ in range(n - 1):
        partitions = [(*p, k) for p in partitions for k in range(max(p) + 2)]
    return {
        p: float(
            np.exp(
                (max(p) + 1) * np.log(alpha)
                + gammaln(np.bincount(p)).sum()
                + gammaln(alpha)
                - gammaln(alpha + n)
            )
        )
        for p in partitions
    }


@pytest.mark.parametrize("alpha", [0.4, 2.5])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_partitions_of_four_follow_ewens(
    sampler: Callable[[int, float, Any], np.ndarray], alpha: float, rng: np.random.Generator
) -> None:
    law = _ewens(4, alpha)
    assert len(law) == 15 and sum(law.values()) == pytest.approx(1)
    found = Counter(_first_seen(sampler(4, alpha, rng)) for _ in range(4000))
    observed = [found[p] for p in law]
    assert sum(observed) == 4000
    assert stats.chisquare(observed, 4000 * np.array(list(law.values()))).pvalue > 1e-3


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_number_of_tables_in_large_samples(
    sampler: Callable[[int, float, Any], np.ndarray], rng: np.random.Generator
) -> None:
    n, alpha = 3000, 7.0
    found = [len(np.unique(sampler(n, alpha, rng))) for _ in range(60)]
    error = np.std(found) / np.sqrt(60)
    assert abs(np.mean(found) - expected_tables(n, alpha)) < 4 * error


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_a_seed_repeats_the_draw(sampler: Callable[[int, float, Any], np.ndarray]) -> None:
    np.testing.assert_array_equal(sampler(50, 3.0, 5), sampler(50, 3.0, 5))
    assert any((sampler(50, 3.0, 5) != sampler(50, 3.0, s)).any() for s in range(5))
    generator = np.random.default_rng(0)
    assert (sampler(50, 3.0, generator) != sampler(50, 3.0, generator)).any()


@pytest.mark.parametrize("alpha", [1e-300, 1e-5, 1e5])
def test_extreme_concentrations(alpha: float) -> None:
    expected = expected_tables(40, alpha)
    for sampler in SAMPLERS.values():
        tables = len(np.unique(sampler(40, alpha, 3)))
        assert tables == round(expected)


# ------------------------------------------------ values


def test_values_are_draws_of_the_base(rng: np.random.Generator) -> None:
    values, _ = polya_urn(3000, 1e4, stats.gamma(2.0), rng)
    assert stats.kstest(np.unique(values), stats.gamma(2.0).cdf).pvalue > 1e-3
    law = stick_breaking(0, 1000.0, stats.gamma(2.0), rng, eps=0.1)
    assert stats.kstest(law.atoms, stats.gamma(2.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("base", "shape"),
    [
        (stats.multivariate_normal(np.zeros(3)), (3,)),
        (stats.dirichlet([1.0, 1.0]), (2,)),
        (stats.poisson(3.0), ()),
        (lambda size, rng: rng.normal(size=(size, 2, 4)), (2, 4)),
        (lambda size, rng: rng.choice(["a", "b"], size), ()),
    ],
)
def test_any_base(base: Any, shape: tuple[int, ...]) -> None:
    for alpha in (1e-9, 5.0):  # the first makes a single atom
        values, tables = polya_urn(20, alpha, base, 0)
        assert values.shape == (20, *shape)
        for table in range(tables.max() + 1):
            rows = values[tables == table]
            assert (rows == rows[0]).all()
        law = stick_breaking(20, alpha, base, 0)
        assert law.atoms.shape == (len(law.weights), *shape)


def test_margin_of_a_random_law_is_beta(rng: np.random.Generator) -> None:
    """G(A) ~ Beta(alpha base(A), alpha (1 - base(A)))."""
    alpha, share = 3.0, 0.3
    masses = []
    for _ in range(1500):
        law = stick_breaking(0, alpha, stats.uniform(), rng, eps=1e-9)
        masses.append(law.weights[law.atoms < share].sum())
    expected = stats.beta(alpha * share, alpha * (1 - share))
    assert stats.kstest(masses, expected.cdf).pvalue > 1e-3


def test_sticks_go_on_until_less_than_eps_is_left() -> None:
    for seed in range(20):
        law = stick_breaking(0, 2.0, _normal, seed, eps=1e-3)
        assert isinstance(law, Sticks) and len(law.labels) == 0
        assert 1 - law.weights.sum() < 1e-3 <= 1 - law.weights[:-1].sum()


def test_sticks_go_on_until_every_value_has_an_atom() -> None:
    for seed in range(20):
        draw = stick_breaking(30, 2.0, _normal, seed)
        assert draw.labels.max() == len(draw.weights) - 1
        assert draw.atoms[draw.labels].shape == (30,)
        both = stick_breaking(30, 2.0, _normal, seed, eps=1e-9)
        np.testing.assert_array_equal(both.labels, draw.labels)
        assert len(both.weights) > len(draw.weights) and 1 - both.weights.sum() < 1e-9


def test_labels_follow_the_weights() -> None:
    draw = stick_breaking(5000, 1.0, _normal, 2)
    big = draw.weights > 0.01
    found = np.bincount(draw.labels, minlength=len(big))[big]
    error = np.sqrt(5000 * draw.weights[big] * (1 - draw.weights[big]))
    assert (np.abs(found - 5000 * draw.weights[big]) < 4 * error).all()


# ------------------------------------------------ the expected number


def test_expected_number_of_tables_is_the_sum_over_customers() -> None:
    for alpha in (1e-8, 0.7, 9999.0, 10001.0, 1e12):
        for n in (1, 2, 500):
            expected = (alpha / (alpha + np.arange(n))).sum()
            assert expected_tables(n, alpha) == pytest.approx(expected, rel=1e-10)


# ------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: polya_urn(0, 1.0, _normal), ValueError, "n must be at least 1, got 0"),
        (lambda: polya_urn(2.0, 1.0, _normal), TypeError, r"n must be an integer, got 2\.0"),
        (lambda: polya_urn(5, 0.0, _normal), ValueError, r"alpha must be positive.*got 0\.0"),
        (lambda: chinese_restaurant(5, "a"), TypeError, "alpha must be a number, got 'a'"),
        (lambda: chinese_restaurant(5, np.nan), ValueError, "alpha must be positive.*got nan"),
        (lambda: polya_urn(5, 1.0, 3.0), TypeError, r"base must be a callable.*got 3\.0"),
        (
            lambda: polya_urn(5, 9.0, lambda size, rng: rng.normal(size=size + 1), 0),
            ValueError,
            r"base must return an array of shape \(size, ...\), got the shape",
        ),
        (lambda: stick_breaking(0, 1.0, _normal), ValueError, "Give n or eps"),
        (lambda: stick_breaking(0, 1.0, _normal, eps=1.5), ValueError, "between 0 and 1, got 1.5"),
        (lambda: stick_breaking(9, 1e12, _normal, 0), ValueError, "Use polya_urn"),
        (lambda: expected_tables(0, 1.0), ValueError, "n must be at least 1, got 0"),
        (lambda: polya_urn(5, 1.0, _normal, "seed"), TypeError, "random_state must be"),
    ],
)
def test_mistakes_are_explained(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
