"""Inner loops of topic models against scipy's functions and literal loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, psi

from mixfold.math.dirichlet import dirichlet_kl, expected_log
from mixfold.math.topic_sweeps import (
    digamma,
    digamma_rise,
    dirichlet_rows,
    dirichlet_terms,
    exp_digamma,
    expected_words,
    log_gamma,
    mixture_rows,
)


def corpus(rng: np.random.Generator, n: int = 7, D: int = 9) -> np.ndarray:
    X = rng.poisson(1.0, (n, D)).astype(float)
    X[2] = 0.0  # a document without a word
    X[:, 4] = 0.0  # a word that nobody uses
    return X


def test_special_functions_are_those_of_scipy() -> None:
    x = np.exp(np.linspace(np.log(1e-3), np.log(1e9), 4000))
    np.testing.assert_allclose([digamma(v) for v in x], psi(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose([log_gamma(v) for v in x], gammaln(x), rtol=1e-12, atol=1e-12)
    large = x[x > 3e-3]
    values = [exp_digamma(v) for v in large]
    np.testing.assert_allclose(values, np.exp(psi(large)), rtol=1e-10)
    assert exp_digamma(1e-4) == 0.0  # underflows, quietly


def test_expected_words_and_rise(rng: np.random.Generator) -> None:
    topics = rng.gamma(0.3, size=(4, 11)) + 0.01
    np.testing.assert_allclose(expected_words(topics), np.exp(expected_log(topics)).T, rtol=1e-11)
    counts = rng.poisson(0.7, (5, 6)) * 1.3
    literal = (psi(counts + 0.2) - psi(0.2)).sum()
    np.testing.assert_allclose(digamma_rise(counts, 0.2), literal, rtol=1e-12)


def test_dirichlet_terms_are_divergences_and_sums(rng: np.random.Generator) -> None:
    gamma, prior = rng.gamma(1.0, size=(6, 4)) + 0.01, rng.gamma(1.0, size=4) + 0.01
    weight = rng.uniform(size=6)
    out, logs = dirichlet_terms(gamma, prior, weight)
    np.testing.assert_allclose(out, -dirichlet_kl(gamma, prior), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(logs[:-1], weight @ psi(gamma), rtol=1e-12)
    np.testing.assert_allclose(logs[-1], weight @ psi(gamma.sum(axis=1)), rtol=1e-12)


def literal_dirichlet(X, words, prior, gamma, steps):
    """One token type at a time, with the whole array of topics of tokens."""
    phi = np.zeros((*X.shape, len(prior)))
    for n in range(len(X)):
        for _ in range(steps):
            for j in range(X.shape[1]):
                p = np.exp(psi(gamma[n])) * words[j]
                phi[n, j] = p / p.sum()
            gamma[n] = prior + X[n] @ phi[n]
        for j in range(X.shape[1]):
            p = np.exp(psi(gamma[n])) * words[j]
            phi[n, j] = p / p.sum()
    return gamma, phi


def test_documents_rest_when_they_move_by_less_than_the_tolerance(rng: np.random.Generator) -> None:
    X = corpus(rng)[:1] * 5.0
    words, prior, tol = rng.gamma(1.0, size=(X.shape[1], 3)), rng.gamma(1.0, size=3), 1e-3
    now, steps = np.ones((1, 3)), 0
    while True:
        before, steps = now, steps + 1
        now, _ = literal_dirichlet(X, words, prior, before.copy(), 1)
        if np.abs(now - before).mean() < tol:
            break
    rows, gamma = sparse.csr_array(X), np.ones((1, 3))
    _, made = dirichlet_rows(rows.indptr, rows.indices, rows.data, np.ones(1), words, prior, gamma,
                             np.zeros(words.shape), 1000, tol)  # fmt: skip
    assert made == steps > 3
    np.testing.assert_allclose(gamma, now, rtol=1e-10)


@pytest.mark.parametrize("steps", [1, 4])
def test_dirichlet_rows_are_a_literal_loop(rng: np.random.Generator, steps: int) -> None:
    X = corpus(rng)
    words, prior = rng.gamma(1.0, size=(X.shape[1], 3)), rng.gamma(1.0, size=3)
    weight = rng.uniform(0.5, 2.0, len(X))
    start = rng.gamma(2.0, size=(len(X), 3))
    gamma, phi = literal_dirichlet(X, words, prior, start.copy(), steps)
    S = sparse.csr_array(X)
    found, sums = start.copy(), np.zeros_like(words)
    inside, sweeps = dirichlet_rows(
        S.indptr, S.indices, S.data, weight, words, prior, found, sums, steps, 0.0
    )
    assert sweeps == steps * (len(X) - 1)
    np.testing.assert_allclose(found, gamma, rtol=1e-10)
    np.testing.assert_allclose(sums, np.einsum("n,nj,njk->jk", weight, X, phi), rtol=1e-10)
    level = np.exp(expected_log(gamma))
    tokens = weight * (X * np.log(level @ words.T)).sum(axis=1)
    np.testing.assert_allclose(inside, tokens, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found[2], prior)


@pytest.mark.parametrize("power", [1.0, 0.7])
@pytest.mark.parametrize("extra", [0.0, 0.4])
def test_mixture_rows_are_a_literal_step(rng, power: float, extra: float) -> None:
    X, K = corpus(rng), 3
    topics = rng.dirichlet(np.ones(X.shape[1]), K)
    theta = rng.dirichlet(np.ones(K), len(X))
    weight = rng.uniform(0.5, 2.0, len(X))
    words = np.ascontiguousarray(topics.T) ** power
    phi = theta[:, None, :] ** power * words[None]
    phi /= phi.sum(axis=2, keepdims=True)
    new = np.einsum("nj,njk->nk", X, phi) + extra
    S = sparse.csr_array(X)
    found, sums = theta.copy(), np.zeros_like(words)
    inside, _ = mixture_rows(
        S.indptr, S.indices, S.data, weight, words, found, np.full(K, extra), sums, 1, 0.0, power
    )
    full = X.sum(axis=1) > 0
    literal = new[full] / new[full].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[full], literal, rtol=1e-11)
    np.testing.assert_allclose(found[2], 1 / 3)
    np.testing.assert_allclose(sums, np.einsum("n,nj,njk->jk", weight, X, phi), rtol=1e-10)
    if power == 1.0:
        tokens = weight * (X * np.log(theta @ topics)).sum(axis=1)
        np.testing.assert_allclose(inside, tokens, rtol=1e-10, atol=1e-12)


def test_words_that_no_topic_has_leave_shares_even() -> None:
    S = sparse.csr_array(np.array([[0.0, 3.0]]))
    words = np.array([[0.5, 0.5], [0.0, 0.0]])
    theta, sums = np.array([[0.9, 0.1]]), np.zeros((2, 2))
    mixture_rows(
        S.indptr, S.indices, S.data, np.ones(1), words, theta, np.zeros(2), sums, 5, 0.0, 1.0
    )
    np.testing.assert_array_equal(theta, [[0.5, 0.5]])
    assert np.isfinite(sums).all()
