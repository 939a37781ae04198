"""Batches of documents: weights of steps, blended statistics, the order of documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mixfold.engine.sources import open_source
from mixfold.models.topics import streams
from mixfold.models.topics.records import TopicParams, TopicSums
from mixfold.models.topics.streams import (
    TopicStream,
    held,
    parts,
    per_document,
    shuffled,
    stream_of,
)


def sums(rng: np.random.Generator, documents: float) -> TopicSums:
    tokens = rng.gamma(1.0, size=(4, 2)) * documents
    return TopicSums(tokens, rng.normal(size=3) * documents, -3.0, documents, tokens.sum(), 1.0)


def test_steps_weigh_less_and_less_and_small_batches_are_parts_of_steps(rng) -> None:
    stream = TopicStream(per_document(sums(rng, 9.0)), 100.0, 6.0)
    full = stream.rate(sums(rng, 50.0), 50.0, 0.7, 10.0)
    assert full == pytest.approx(16**-0.7)
    half = stream.rate(sums(rng, 25.0), 50.0, 0.7, 10.0)
    assert (1 - half) ** 2 == pytest.approx(1 - full)
    begun = TopicStream(stream.stats, 0.0, 0.0)
    assert begun.rate(sums(rng, 50.0), 50.0, 0.7, 0.0) == 1  # never more than all


def test_batches_are_blended_per_document(rng) -> None:
    old, batch = sums(rng, 10.0), sums(rng, 40.0)
    got = TopicStream(per_document(old), 10.0, 2.0).blend(batch, 0.25, 20.0)
    np.testing.assert_allclose(got.stats.words, 0.75 * old.words / 10 + 0.25 * batch.words / 40)
    np.testing.assert_allclose(got.stats.tokens, 0.75 * old.tokens / 10 + 0.25 * batch.tokens / 40)
    assert (got.documents, got.steps) == (50, 4)


def test_fitted_topics_are_a_stream_without_their_prior(rng) -> None:
    words = rng.gamma(1.0, size=(5, 2))
    params = TopicParams(np.ascontiguousarray(words.T) + 0.3, np.ones(2), 0.3)
    stream = stream_of(params, 20.0, 80.0, 10.0)
    np.testing.assert_allclose(stream.stats.words * 20, words)
    assert (stream.documents, stream.steps, stream.stats.tokens) == (20, 2, 4)


def test_documents_come_once_each_in_random_order(rng, monkeypatch) -> None:
    monkeypatch.setattr(streams, "SHUFFLED", 60)
    X, weight = sparse.csr_array(np.diag(np.arange(1.0, 101))), np.arange(100.0) + 1
    source = open_source(X, weight=weight)
    seen = [part for batch in shuffled(source, 16, rng) for part in batch]
    order = np.concatenate([part.X.sum(axis=1) for part in seen]).astype(int)
    assert sorted(order) == list(range(1, 101)) and (np.diff(order) < 0).any()
    assert set(order[:60]) == set(range(1, 61))  # as far as they are held
    np.testing.assert_array_equal(np.concatenate([part.weights() for part in seen]), order)
    other = np.concatenate([b.X.sum(axis=1) for s in shuffled(source, 16, rng) for b in s])
    assert not np.array_equal(order, other)


def test_documents_are_held_in_equal_numbers_and_parted_for_threads(monkeypatch) -> None:
    X = sparse.csr_array(np.diag(np.arange(1.0, 12)))
    blocks = list(held(open_source(X), 4))
    assert [block.n_rows for block in blocks] == [4, 4, 3]
    rows = np.concatenate([block.X.toarray() for block in blocks])
    np.testing.assert_array_equal(rows, X.toarray())
    monkeypatch.setattr(streams, "PART", 3)
    assert [part.n_rows for part in parts(blocks[0])] == [3, 1]
