"""Scores and sums over CSR rows against dense arithmetic written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from mixfold.contracts import Block
from mixfold.math.softmax import clamp, entropies, normalise
from mixfold.math.sparse_linear import linear_pass, linear_scores, linear_sums

N, D = 60, 11


def _block(holes: bool) -> Block:
    rng = np.random.default_rng(0)
    X = csr_array(random_array((N, D), density=0.5, rng=rng, data_sampler=rng.standard_normal))
    X.data *= 3
    if holes:
        X.data[rng.random(X.nnz) < 0.2] = np.nan
    weight = np.where(rng.random(N) < 0.2, 0.0, rng.uniform(0.5, 2, N))
    return Block(X, y=rng.integers(-3, 3, N).clip(-1), weight=weight, complete=not holes)


def _dense(block: Block, slope: np.ndarray, offset: np.ndarray) -> np.ndarray:
    X = block.X.toarray()
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0) @ slope.T + seen @ offset.T


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("K", [1, 3, 30])
def test_a_pass(holes: bool, K: int) -> None:
    rng = np.random.default_rng(1)
    slope, offset = rng.standard_normal((2, K, D)) * 2
    log_weights = np.log(rng.dirichlet(np.ones(K)))
    block = _block(holes)
    if K == 1:
        block = replace(block, y=None)
    scores = _dense(block, slope, offset)
    np.testing.assert_allclose(linear_scores(block, slope, offset), scores, rtol=1e-12, atol=1e-12)
    total, resp = normalise(clamp(scores + log_weights, block.y))
    w = block.weights()
    weighted = resp * w[:, None]
    X = block.X.toarray()
    got = linear_pass(block, slope, offset, log_weights)
    assert got.log_likelihood == pytest.approx(w @ total, rel=1e-12)
    assert got.entropy == pytest.approx(w @ entropies(resp), rel=1e-9, abs=1e-9)
    assert got.weight == pytest.approx(w.sum())
    for sums in (got, linear_sums(block, weighted)):
        np.testing.assert_allclose(sums.mass, weighted.sum(axis=0), rtol=1e-12, atol=1e-15)
        wanted = weighted.T @ np.nan_to_num(X)
        np.testing.assert_allclose(sums.first, wanted, rtol=1e-10, atol=1e-10)
        if holes:
            assert sums.absent is not None
            missing = weighted.T @ np.isnan(X).astype(float)
            np.testing.assert_allclose(sums.absent, missing, rtol=1e-10, atol=1e-10)
        else:
            assert sums.absent is None


def test_components_of_weight_zero_get_nothing() -> None:
    rng = np.random.default_rng(2)
    slope, offset = rng.standard_normal((2, 3, D))
    with np.errstate(divide="ignore"):
        log_weights = np.log([0.5, 0.0, 0.5])
    got = linear_pass(replace(_block(False), y=None), slope, offset, log_weights)
    assert got.mass[1] == 0
    assert not got.first[1].any()
    assert np.isfinite([got.log_likelihood, got.entropy]).all()


def test_shares_below_rounding_are_none() -> None:
    """One component explains the rows by far: the other has no mass, not a tiny one."""
    slope, offset = np.zeros((2, D)), np.zeros((2, D))
    offset[1] = -50.0 / D
    block = replace(_block(False), y=None)
    got = linear_pass(block, slope, offset, np.zeros(2))
    assert got.mass[1] == 0
    assert got.mass[0] == pytest.approx(block.weights().sum())


def test_rows_without_entries() -> None:
    block = Block(csr_array((4, D)))
    offset = np.log([[0.2], [0.8]]) * np.ones(D) / D
    got = linear_pass(block, np.ones((2, D)), offset, np.zeros(2))
    np.testing.assert_allclose(got.mass, [0.8, 3.2])
    assert got.log_likelihood == pytest.approx(0, abs=1e-12)
