"""Kernel matrices by tiles, centred: against the matrices themselves."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array
from mixfold.engine.executors import ThreadExecutor
from mixfold.math.kernels import CosineKernel, LinearKernel, RbfKernel
from mixfold.models.kernels.centred import CentredGram
from mixfold.models.kernels.gram import FactoredGram, GivenGram, Gram, Strips

KERNEL = RbfKernel(0.2)


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    return rng.normal(size=(83, 4))


@pytest.mark.parametrize("tile", [1, 7, 20, 41, 42, 82, 83, 200])
def test_every_pair_of_rows_is_in_one_tile(tile: int) -> None:
    strips = Strips(np.zeros((83, 2)), tile)
    count = np.zeros((83, 83))
    for i in range(strips.count):
        for j in strips.partners(i):
            count[strips.rows(i), strips.rows(j)] += 1
            if i != j:
                count[strips.rows(j), strips.rows(i)] += 1
    assert (count == 1).all()
    assert sum(block.n_rows for block in strips.blocks()) == 83
    lengths = [len(strips.partners(i)) for i in range(strips.count)]
    assert max(lengths) - min(lengths) <= 1  # as much work in all of them


@pytest.mark.parametrize("tile", [7, 20, 42, 200])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kept", [0.0, 0.15, 1.0])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_products_are_those_of_the_matrix(
    tile: int, threads: int, kept: float, kind: Any, rows: Array, rng: np.random.Generator
) -> None:
    G, Q = KERNEL.block(rows, rows), rng.normal(size=(83, 5))
    gram = Gram(kind(rows), KERNEL, ThreadExecutor(threads), kept * 2 * 8 * 83**2, tile)
    for _ in range(2):  # from new tiles and from those that were kept
        np.testing.assert_allclose(gram.times(Q), G @ Q, atol=1e-12)
    assert gram.is_kept == (kept == 1.0)
    np.testing.assert_allclose(gram.diagonal(), np.diag(G))
    assert bool(gram._tiles) == (gram._kept_strips > 0)


def test_tiles_do_not_travel(rows: Array) -> None:
    gram = Gram(rows, KERNEL, ThreadExecutor(1), 1e9, 20)
    gram.times(np.eye(83))
    assert gram._tiles
    there = pickle.loads(pickle.dumps(gram))
    assert not there._tiles and there.executor is None
    block = next(there.strips.blocks())
    expected = gram.strip_times(np.eye(83), block)
    np.testing.assert_array_equal(there.strip_times(np.eye(83), block), expected)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_linear_kernel_needs_no_tiles(kind: Any, rows: Array, rng: np.random.Generator) -> None:
    Q = rng.normal(size=(83, 5))
    gram = FactoredGram(kind(rows), LinearKernel(), ThreadExecutor(2))
    np.testing.assert_allclose(gram.times(Q), rows @ (rows.T @ Q), atol=1e-12)
    assert gram.is_kept and not gram._tiles
    np.testing.assert_allclose(gram.diagonal(), (rows**2).sum(axis=1))


@pytest.mark.parametrize("kernel", [KERNEL, LinearKernel(), CosineKernel()], ids=repr)
@pytest.mark.parametrize("weighed", [False, True])
def test_centring(kernel: Any, weighed: bool, rows: Array, rng: np.random.Generator) -> None:
    weight = rng.integers(1, 4, 83).astype(float) if weighed else None
    G = kernel.block(rows, rows)
    p = np.full(83, 1 / 83) if weight is None else weight / weight.sum()
    H = np.eye(83) - np.outer(np.ones(83), p)
    Gc = H @ G @ H.T
    roots = np.sqrt(83 * p)
    S = roots[:, None] * Gc * roots
    gram = CentredGram(GivenGram(G, ThreadExecutor(1), 20), weight)
    Q = rng.normal(size=(83, 3))
    np.testing.assert_allclose(gram.times(Q), S @ Q, atol=1e-11)
    assert gram.passes == 1
    np.testing.assert_allclose(gram.trace(), np.trace(S), rtol=1e-10)
    np.testing.assert_allclose(gram.after(G @ gram.before(Q)), S @ Q, atol=1e-11)
    assert gram.passes == 1  # the first product has found the centre, too
    # new rows: among them those that are known
    centre = gram.centre()
    np.testing.assert_allclose(centre.rows(G.copy()), Gc, atol=1e-12)
    np.testing.assert_allclose(centre.squares(G, np.diag(G)), np.diag(Gc), atol=1e-12)


def test_the_centre_can_be_asked_for_first(rows: Array) -> None:
    gram = CentredGram(Gram(rows, KERNEL, ThreadExecutor(1), 1e9))
    G = KERNEL.block(rows, rows)
    np.testing.assert_allclose(gram.centre().means, G.mean(axis=1))
    assert gram.centre().mean == pytest.approx(G.mean()) and gram.passes == 1
