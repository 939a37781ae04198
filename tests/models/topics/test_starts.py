"""Where topic models begin, against literal formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.models.topics.records import TopicParams
from mixfold.models.topics.starts import (
    count_words,
    dirichlet_topics,
    document_topics,
    memberships,
    random_topics,
    start_clusters,
)


def test_words_are_counted_by_weight_without_empty_documents() -> None:
    X = np.array([[2.0, 0, 1], [0, 0, 0], [1, 4, 0]])
    words = count_words(Block(X, weight=np.array([1.0, 5.0, 0.5])))
    np.testing.assert_array_equal(words.words, [2.5, 2, 1])
    assert (words.documents, words.rows) == (1.5, 3)


def test_random_topics_are_frequencies_up_or_down(rng: np.random.Generator) -> None:
    words = np.array([8.0, 1, 0, 1])
    topics = random_topics(words, 20_000, rng)
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    assert (topics[:, 2] == 0).all() and np.ptp(topics[:, 0]) > 0.5
    ratio = topics[:, 0] / topics[:, 1]  # eight times the ratio of two exponentials
    assert np.median(ratio) == pytest.approx(8, rel=0.1)


def test_topics_of_lda_share_the_tokens_evenly() -> None:
    topics, prior = np.array([[0.5, 0.5, 0], [0, 0.2, 0.8]]), np.array([0.3, 0.4])
    params = dirichlet_topics(topics, 60.0, prior, 0.1)
    np.testing.assert_allclose(params.topics, [[15.1, 15.1, 0.1], [0.1, 6.1, 24.1]])
    assert params.prior is prior and params.smoothing == 0.1


def test_topics_of_documents_are_tokens_without_the_prior(rng: np.random.Generator) -> None:
    X = rng.poisson(1.0, (7, 6)).astype(float)
    X[3] = 0
    params = TopicParams(rng.gamma(1.0, size=(2, 6)) + 0.1, np.array([0.7, 1.9]), 0.1)
    found = document_topics(params, open_source(sparse.csr_array(X)), ThreadExecutor(1))
    np.testing.assert_allclose(found.sum(axis=1), X.sum(axis=1), atol=1e-6)
    assert not found[3].any()


def test_memberships_are_nearly_hard_and_by_the_roots_of_shares(rng: np.random.Generator) -> None:
    """By roots, a topic that is absent differs from a rare one more than common ones differ."""
    shares = np.array([[0.5, 0.5, 0.0], [0.58, 0.42, 0.0], [0.54, 0.42, 0.04]])
    by_topic = np.repeat(shares, 10, axis=0) * rng.uniform(5, 50, (30, 1))
    psi = memberships(by_topic, np.ones(30), 2, rng)
    np.testing.assert_allclose(psi.sum(axis=1), 1)
    np.testing.assert_allclose(np.unique(psi.round(12)), [0.05, 0.95])
    of = psi.argmax(axis=1).reshape(3, 10)
    assert of[0, 0] == of[1, 0] != of[2, 0] and (of == of[:, :1]).all()


def test_clusters_begin_with_the_tokens_of_their_documents(rng: np.random.Generator) -> None:
    by_topic = np.array([[9.0, 1], [8, 0], [0, 7], [1, 9]])
    weight, prior = np.array([1.0, 2, 1, 1]), np.array([0.5, 0.6])
    words = TopicParams(np.ones((2, 5)), prior, 0.1)
    own = start_clusters(by_topic, weight, words, 2.0, 4, rng)
    np.testing.assert_allclose(own.centres, prior + by_topic * weight[:, None])
    np.testing.assert_allclose(own.weights, 0.5 + weight)
    two = start_clusters(by_topic, weight, words, 2.0, 2, rng)
    np.testing.assert_allclose(np.sort(two.weights), [1 + 0.95 * 2 + 0.05 * 3, 1 + 0.95 * 3 + 0.1])
    np.testing.assert_allclose(two.centres.sum(axis=0), 2 * prior + weight @ by_topic)
    first = int(np.argmax(two.weights))
    wanted = prior + 0.95 * np.array([25.0, 1]) + 0.05 * np.array([1.0, 16])
    np.testing.assert_allclose(two.centres[first], wanted)
    assert (two.alpha, two.n_clusters, two.ids.tolist()) == (2.0, 2, [0, 1])
