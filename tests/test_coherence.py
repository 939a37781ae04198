"""Coherence of topics against counting by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from mixfold.metrics import npmi_coherence


def by_hand(words: list[int], X: np.ndarray) -> float:
    documents = [set(np.flatnonzero(row)) for row in X if row.any()]
    values = []
    for i, j in itertools.combinations(words, 2):
        p_i = sum(i in d for d in documents) / len(documents)
        p_j = sum(j in d for d in documents) / len(documents)
        p = sum(i in d and j in d for d in documents) / len(documents)
        if p_i == 0 or p_j == 0:
            continue
        if p in (0, 1):
            values.append(2 * p - 1)
        else:
            values.append(math.log(p / (p_i * p_j)) / -math.log(p))
    return sum(values) / len(values)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    X = rng.poisson(0.5, (40, 12))
    X[3] = 0
    X[:, 11] = 0
    X[X.any(axis=1), 0] = 1  # a word of all documents
    return X


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_matrix, sparse.csc_array, np.ndarray.tolist]
)
def test_coherence_is_counted(rng: np.random.Generator, X: np.ndarray, form) -> None:
    topics = rng.dirichlet(np.ones(12), 4)
    words = [np.argsort(-row)[:5].tolist() for row in topics]
    expected = [by_hand(row, X) for row in words]
    np.testing.assert_allclose(npmi_coherence(topics, form(X), 5, per_topic=True), expected)
    np.testing.assert_allclose(npmi_coherence(words, form(X), 5, per_topic=True), expected)
    np.testing.assert_allclose(npmi_coherence(topics, form(X), 5), np.mean(expected))


def test_good_topics_are_more_coherent(rng: np.random.Generator) -> None:
    topic = rng.integers(2, size=200)
    X = rng.poisson(np.where(np.arange(8) // 4 == topic[:, None], 1.5, 0.1))
    good = npmi_coherence([[0, 1, 2, 3], [4, 5, 6, 7]], X, 4)
    bad = npmi_coherence([[0, 5, 2, 7], [4, 1, 6, 3]], X, 4)
    assert good > 0.3 > 0 > bad


def test_words_that_never_occur(X: np.ndarray) -> None:
    assert np.isnan(npmi_coherence([[1, 11], [1, 2]], X, per_topic=True)[0])
    np.testing.assert_allclose(npmi_coherence([[1, 11], [1, 2]], X), by_hand([1, 2], X))


def test_misuse(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="n_words must be at least 2"):
        npmi_coherence([[0, 1]], X, 1)
    with pytest.raises(ValueError, match="topic 1 must be 12 weights"):
        npmi_coherence([[0, 1], [0, 12]], X)
    with pytest.raises(ValueError, match="different columns"):
        npmi_coherence([[0, 0]], X)
    with pytest.raises(TypeError, match="look up their columns"):
        npmi_coherence([["a", "b"]], X)
    with pytest.raises(ValueError, match="no document with a word"):
        npmi_coherence([[0, 1]], np.zeros((3, 2)))


def test_words_of_all_documents_go_together() -> None:
    X = np.array([[1, 2, 0], [3, 1, 0], [1, 1, 1]])
    assert npmi_coherence([[0, 1]], X, n_words=2) == pytest.approx(1)
    assert npmi_coherence([[0, 2]], X, n_words=2) == pytest.approx(0)  # ln(p / p) says nothing
