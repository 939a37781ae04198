"""Documents in batches: sparse rows, and the stream that fitted topics might have come from."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mixfold.engine.sources import open_source
from mixfold.models.topics.records import TopicParams
from mixfold.models.topics.streams import SparseBlocks, mean_document


def test_fitted_topics_are_a_stream_without_their_prior(rng: np.random.Generator) -> None:
    words = rng.gamma(1.0, size=(5, 2))
    params = TopicParams(np.ascontiguousarray(words.T) + 0.3, np.ones(2), 0.3)
    each = mean_document(params, 20.0, 80.0)
    np.testing.assert_allclose(each.words * 20, words)
    assert (each.documents, each.tokens) == (1, 4)


def test_documents_of_a_table_are_held_as_sparse_rows(rng: np.random.Generator) -> None:
    X, weight = rng.poisson(0.3, (30, 7)).astype(float), rng.uniform(size=30)
    source = open_source(X, weight=weight)
    blocks = list(SparseBlocks(source).blocks(8))
    assert all(sparse.issparse(block.X) for block in blocks)
    np.testing.assert_array_equal(np.concatenate([b.X.toarray() for b in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([b.weights() for b in blocks]), weight)
    assert SparseBlocks(source).n_features == 7
