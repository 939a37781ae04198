"""Densities, predictive densities and priors against scipy's distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from mixfold.contracts import Block
from mixfold.families.exponential import (
    Bernoulli,
    Binomial,
    Categorical,
    Gamma,
    Multinomial,
    Poisson,
)

from .conftest import CONJUGATE, SPARSE, D, K, Sample, sample_of
from .examples import EXAMPLES


def _summed(X: np.ndarray, law: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Log densities of rows from those of their entries, of which some are missing."""
    seen = ~np.isnan(X)
    found = law(np.where(seen, X, 1.0))
    return found if found.ndim == 1 else np.where(seen, found, 0.0).sum(axis=1)


def test_log_density(name: str, sample: Sample) -> None:
    family, X, law = sample.family, sample.X, EXAMPLES[name].log_density
    params = family.from_rows(sample.frame, X, None, sample.resp)
    wanted = np.stack(
        [_summed(X, lambda x, theta=theta: law(x, theta)) for theta in params.theta], axis=1
    )
    block, reading = Block(X, complete=False), family.mode(params)
    np.testing.assert_allclose(family.log_density(block, reading), wanted, rtol=1e-10)
    np.testing.assert_allclose(family.scores(block, reading).log_density, wanted, rtol=1e-10)
    whole = ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(
        family.log_density(Block(X[whole]), reading), wanted[whole], rtol=1e-10
    )


def test_means_are_those_of_the_distribution(name: str, sample: Sample) -> None:
    family = sample.family
    params = family.from_rows(sample.frame, sample.X, None, sample.resp)
    np.testing.assert_allclose(params.means, EXAMPLES[name].means(params), rtol=1e-12)
    if name == "multinomial":  # resp @ row totals, over the rows of a component
        totals = sample.resp.T @ sample.X.sum(axis=1) / sample.resp.sum(axis=0)
        np.testing.assert_allclose(params.means.sum(axis=1), totals, rtol=1e-12)


def test_zero_has_a_density_under_an_exponential() -> None:
    family = Gamma(shape=1.0)
    found = family.entry_base(np.array([0.0, 2.0, np.nan]), np.ones(3))
    np.testing.assert_array_equal(found, [0.0, 0.0, np.nan])


@pytest.mark.parametrize("name", CONJUGATE)
def test_log_predictive(name: str, sample: Sample) -> None:
    family, X, q = sample.family, sample.X, sample.posterior
    law, block = EXAMPLES[name].log_predictive, Block(X, complete=False)
    got = family.log_predictive(q, block)
    if law is not None:
        wanted = [_summed(X, lambda x, k=k: law(x, q, k)) for k in range(K)]
        np.testing.assert_allclose(got, np.stack(wanted, axis=1), rtol=1e-9, atol=1e-9)
    if name in SPARSE:
        again = family.log_predictive(q, Block(csr_array(X), complete=False))
        np.testing.assert_allclose(again, got, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("family", [Poisson(), Multinomial(), Bernoulli(), Binomial(trials=9)])
def test_integer_and_single_precision_sparse_rows(family: Any) -> None:
    """Cast before any arithmetic; explicit zeros are zeros."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if family.name == "bernoulli" else 9, (40, D)).astype(float)
    params = family.from_rows(sample_of("poisson").frame, X, None, rng.dirichlet(np.ones(K), 40))
    reading, sparse = family.mode(params), csr_array(X)
    wanted = family.log_density(Block(X), reading)
    stored = csr_array((X.ravel(), np.tile(np.arange(D), 40), np.arange(0, 40 * D + 1, D)))
    assert stored.nnz == X.size > sparse.nnz
    kinds = (sparse, stored, sparse.astype(np.int32), sparse.astype(np.float32))
    for kind in kinds:
        got = family.log_density(Block(kind), reading)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
        moments, _ = family.fused_pass(Block(kind), reading, np.zeros(K))
        dense, _ = family.fused_pass(Block(X), reading, np.zeros(K))
        np.testing.assert_allclose(moments.first, dense.first, rtol=1e-10)
        assert moments.base == pytest.approx(dense.base)


def test_rates_far_from_one_keep_their_digits() -> None:
    """Counts of a million and waiting times of a nanosecond."""
    rng = np.random.default_rng(0)
    resp = np.ones((50, 1))
    counts = rng.poisson(1e6, (50, 2)).astype(float)
    params = Poisson().from_rows(sample_of("poisson").frame, counts, None, resp)
    got = Poisson().log_density(Block(counts), Poisson().mode(params))[:, 0]
    wanted = stats.poisson.logpmf(counts, np.exp(params.theta[0])).sum(axis=1)
    np.testing.assert_allclose(got, wanted, atol=1e-7)
    short = rng.gamma(2.0, 1e-9, (50, 2))
    family = Gamma(shape=2.0)
    params = family.from_rows(sample_of("gamma").frame, short, None, resp)
    got = family.log_density(Block(short), family.mode(params))[:, 0]
    wanted = stats.gamma.logpdf(short, 2.0, scale=np.exp(-params.theta[0])).sum(axis=1)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_zero_probabilities_stay_above_the_floor() -> None:
    """A category or a word that no row has: no row is impossible, and no density is infinite."""
    X = np.zeros((30, 3))
    X[:, 1] = 1
    for family in (Bernoulli(), Poisson(), Multinomial(), Categorical(n_categories=3)):
        resp = np.ones((30, 1))
        params = family.from_rows(sample_of("poisson").frame, X, None, resp)
        other = np.array([[2.0, 0.0, 1.0]]) if family.name != "bernoulli" else 1 - X[:1]
        both = family.log_density(Block(np.concatenate([X, other])), family.mode(params))
        assert np.isfinite(both).all()
        assert both[0, 0] > both[-1, 0]


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()], ids=["bernoulli", "poisson"])
def test_information_is_the_slope_of_the_mean(family: Any) -> None:
    """In the natural parameter of an exponential family: the variance of an entry."""
    theta, size, step = np.array([[-2.0, 0.3, 1.5]]), np.ones(3), 1e-5
    slope = (
        family.of_theta(theta + step, size, theta) - family.of_theta(theta - step, size, theta)
    ) / (2 * step)
    np.testing.assert_allclose(family.information(theta, size), slope, rtol=1e-8)
