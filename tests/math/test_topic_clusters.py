"""Inner loops over documents of clusters, against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax

from mixfold.math.topic_clusters import spread_rows, sum_listed_clusters, token_rows

N, D, K, M = 12, 9, 3, 5


@pytest.fixture
def tables(rng):
    X = rng.poisson(0.7, (N, D)).astype(float)
    X[4] = 0  # a document without words
    return X, rng.dirichlet(np.ones(D), K).T.copy(), rng.dirichlet(np.ones(K), M)


def parts(X):
    X = sparse.csr_array(X)
    return X.indptr, X.indices, X.data


def test_listed_clusters(tables, rng):
    X, words, shares = tables
    weight, level = rng.uniform(0.5, 2, N), np.log(rng.dirichlet(np.ones(M)))
    lists = np.array([[0, 2, -1, 4]] * N, np.int32)
    lists[3] = [-1, -1, 1, -1]
    sums, centres, clusters = np.zeros((D, K)), np.zeros((M, K)), np.zeros(M)
    bounds = sum_listed_clusters(
        *parts(X), weight, words, shares, level, lists, sums, centres, clusters
    )
    P = words @ shares.T
    allowed = np.array([[m in row for m in range(M)] for row in lists])
    scores = np.where(allowed, X @ np.log(P) + level, -np.inf)
    psi = softmax(scores, axis=1) * weight[:, None]
    ratio = (X.T @ psi) / P
    np.testing.assert_allclose(bounds, logsumexp(scores, axis=1), rtol=1e-12)
    np.testing.assert_allclose(clusters, psi.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums, ratio @ shares, rtol=1e-12)
    np.testing.assert_allclose(centres, ratio.T @ words, rtol=1e-12)
    assert clusters[3] == 0 and not centres[3].any()


def test_tokens_by_topic(tables, rng):
    X, words, _ = tables
    weights, sums, by_topic = rng.uniform(0.1, 2, (N, K)), np.zeros((D, K)), np.empty((N, K))
    weight = rng.uniform(0, 2, N)
    weight[2] = 0
    inside = token_rows(*parts(X), weight, words, weights, by_topic, sums)
    mass = weights @ words.T
    np.testing.assert_allclose(inside, (X * np.log(mass)).sum(axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(by_topic, weights * ((X / mass) @ words), rtol=1e-12)
    np.testing.assert_allclose(by_topic.sum(axis=1), X.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums, (weight[:, None] * X / mass).T @ weights, rtol=1e-12)


def test_words_by_cluster(tables, rng):
    X, _, _ = tables
    psi = rng.dirichlet(np.full(M, 0.05), N)
    seen = np.ones((D, M))
    spread_rows(*parts(X), psi, seen)
    np.testing.assert_allclose(seen, 1 + X.T @ psi, rtol=1e-12)


def test_impossible_words_have_a_bound_all_the_same():
    X = np.array([[1.0, 1.0]])
    words, shares = np.array([[1.0], [0.0]]), np.ones((1, 1))
    sums, centres, clusters = np.zeros((2, 1)), np.zeros((1, 1)), np.zeros(1)
    lists = np.zeros((1, 1), np.int32)
    bounds = sum_listed_clusters(
        *parts(X), np.ones(1), words, shares, np.zeros(1), lists, sums, centres, clusters
    )
    assert bounds[0] == pytest.approx(np.log(1e-300))
