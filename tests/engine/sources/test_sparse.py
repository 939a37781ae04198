"""Sparse matrices: views, duplicates, damage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mixfold.engine.sources import open_source


def test_sparse_blocks_are_views_and_never_dense() -> None:
    X = sparse.random_array((5000, 40), density=0.05, format="csr", rng=1)
    X.sum_duplicates()
    for block in open_source(X).blocks(700):
        assert block.X.format == "csr"
        assert np.shares_memory(block.X.data, X.data)
        assert np.shares_memory(block.X.indices, X.indices)
    wide = sparse.csr_array((5000, 10**6), dtype=np.float32)
    assert open_source(wide).dtype == np.float32
    assert sum(block.X.nnz for block in open_source(wide).blocks()) == 0


def test_entries_stored_twice_are_added_without_touching_the_callers_matrix() -> None:
    X = sparse.csr_matrix(([1.0, 2.0, 3.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    (block,) = open_source(X).blocks()
    np.testing.assert_array_equal(block.X.toarray(), [[0, 3], [3, 0]])
    assert block.X.nnz == 2 and X.nnz == 3


def test_damaged_sparse_matrices_are_refused() -> None:
    X = sparse.csr_matrix(np.eye(3))
    X.indices[0] = 9
    with pytest.raises(ValueError, match="indices must be < 3"):
        open_source(X)
