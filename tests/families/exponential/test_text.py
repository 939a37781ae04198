"""Counts of words as they are: thousands of sparse columns, never made dense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from mixfold.contracts import Block
from mixfold.families.exponential import Multinomial
from mixfold.math.frame import plain_frame


@pytest.fixture
def documents(shared_data: Callable[[str], Path]) -> tuple[csr_array, np.ndarray]:
    with np.load(shared_data("newsgroup4.npz")) as file:
        parts = file["data"], file["indices"], file["indptr"]
        return csr_array(parts, shape=tuple(file["shape"])), file["y"].astype(int)


def test_a_few_labels_find_the_newsgroups(documents: tuple[csr_array, np.ndarray]) -> None:
    X, y = documents
    known = np.random.default_rng(0).permutation(len(y))[:160]
    labels = np.full(len(y), -1)
    labels[known] = y[known] - y.min()
    family, frame = Multinomial(), plain_frame(X.shape[1])
    resp = np.eye(4)[labels[known]]
    params = family.from_rows(frame, X[known].toarray().astype(float), None, resp)
    block, last = Block(X, y=labels), -np.inf
    for _ in range(12):
        reading = family.mode(params)
        moments, sums = family.fused_pass(block, reading, np.log(np.full(4, 0.25)))
        assert sums.log_likelihood >= last - 1e-9 * abs(last)
        params, last = family.estimate(moments, params)[0], sums.log_likelihood
    found = family.log_density(Block(X), family.mode(params)).argmax(axis=1)
    assert adjusted_rand_score(y, found) > 0.6
