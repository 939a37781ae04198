"""Densities, predictive densities and priors against scipy's distributions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import expit, softmax

from mixfold.contracts import Block
from mixfold.families.linear import Bernoulli, Binomial, Categorical, Gamma, Multinomial, Poisson

from .conftest import CATEGORIES, EXPOSURE, SHAPE, SPARSE, TRIALS, D, K, Sample, sample_of

Law = Callable[[np.ndarray, np.ndarray], np.ndarray]
STARTS = np.concatenate([[0], np.cumsum(CATEGORIES)])

# log density of entries (n, D) under one component, NaN where missing
ENTRIES: dict[str, Law] = {
    "bernoulli": lambda x, t: stats.bernoulli.logpmf(x, expit(t)),
    "binomial": lambda x, t: stats.binom.logpmf(x, TRIALS, expit(t)),
    "poisson": lambda x, t: stats.poisson.logpmf(x, EXPOSURE * np.exp(t)),
    "exponential": lambda x, t: stats.expon.logpdf(x, scale=np.exp(-t)),
    "gamma": lambda x, t: stats.gamma.logpdf(x, SHAPE, scale=np.exp(-t)),
}
# the same of the posterior predictive, given a and b
PREDICTIVE: dict[str, Any] = {
    "bernoulli": lambda x, a, b: stats.bernoulli.logpmf(x, a / (a + b)),
    "binomial": lambda x, a, b: stats.betabinom.logpmf(x, TRIALS, a, b),
    "poisson": lambda x, a, b: stats.nbinom.logpmf(x, a, b / (b + EXPOSURE)),
    "exponential": lambda x, a, b: stats.lomax.logpdf(x, a, scale=b),
    "gamma": lambda x, a, b: stats.betaprime.logpdf(x, SHAPE, a, scale=b),
}


def _categories(X: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Log probability of codes under one component, by lookup."""
    out = np.zeros(len(X))
    for n, row in enumerate(X):
        for d, code in enumerate(row):
            if not np.isnan(code):
                out[n] += np.log(p[STARTS[d] + int(code)])
    return out


def _wanted(name: str, X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    if name == "multinomial":
        return stats.multinomial.logpmf(X, X.sum(axis=1).astype(int), softmax(theta))
    if name == "categorical":
        return _categories(X, np.exp(theta))
    seen = ~np.isnan(X)
    entries = ENTRIES[name](np.where(seen, X, 1.0), theta)
    return np.where(seen, entries, 0.0).sum(axis=1)


def test_log_density(name: str, sample: Sample) -> None:
    family, X = sample.family, sample.X
    params = family.from_rows(sample.frame, X, None, sample.resp)
    wanted = np.stack([_wanted(name, X, theta) for theta in params.theta], axis=1)
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
    p, theta, total = expit(params.theta), params.theta, sample.resp.T @ sample.X.sum(axis=1)
    wanted: Any = {
        "bernoulli": lambda: p,
        "binomial": lambda: TRIALS * p,
        "poisson": lambda: EXPOSURE * np.exp(theta),
        "exponential": lambda: np.exp(-theta),
        "gamma": lambda: SHAPE * np.exp(-theta),
        # resp @ row totals, over the rows of a component
        "multinomial": lambda: np.exp(theta) * (total / sample.resp.sum(axis=0))[:, None],
        "categorical": lambda: np.stack(
            [np.exp(theta[:, a:b]) @ np.arange(b - a) for a, b in pairwise(STARTS)],
            axis=1,
        ),
    }  # fmt: skip
    np.testing.assert_allclose(params.means, wanted[name](), rtol=1e-12)


def test_log_predictive(name: str, sample: Sample) -> None:
    family, X, q = sample.family, sample.X, sample.posterior
    seen = ~np.isnan(X)
    if name == "multinomial":
        total = X.sum(axis=1).astype(int)
        wanted = [stats.dirichlet_multinomial.logpmf(X.astype(int), a, total) for a in q.a]
    elif name == "categorical":
        parts = [q.a[:, a:b] for a, b in pairwise(STARTS)]
        p = np.concatenate([part / part.sum(axis=1, keepdims=True) for part in parts], axis=1)
        wanted = [_categories(X, row) for row in p]
    else:
        filled = np.where(seen, X, 1.0)
        entries = [PREDICTIVE[name](filled, a, b) for a, b in zip(q.a, q.b, strict=True)]
        wanted = [np.where(seen, entry, 0.0).sum(axis=1) for entry in entries]
    block = Block(X, complete=False)
    got = family.log_predictive(q, block)
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
        moments, _ = family.fused(Block(kind), reading, np.zeros(K))
        dense, _ = family.fused(Block(X), reading, np.zeros(K))
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
