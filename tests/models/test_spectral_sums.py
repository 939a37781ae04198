"""Sums of squares and products of blocks: additive, exact, never dense where the data are not."""

from __future__ import annotations

import pickle
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.math.frame import subtract_origin
from mixfold.models.factors.spectral_sums import (
    MissingEntries,
    Multiply,
    Products,
    RowSums,
    SecondMoments,
    SumSquares,
)
from mixfold.testing.algebra import monoid
from mixfold.testing.storage import stored_identity

D = 7


def blocks(rng: np.random.Generator, kind: str) -> tuple[list[Block], Array, Array]:
    """Blocks of unequal length, their rows as one dense table, and their weights."""
    X = rng.normal(size=(90, D)) * np.arange(1, D + 1) + 3.0
    if kind == "sparse":
        X = np.where(rng.random(X.shape) < 0.7, 0.0, X)
    weight = rng.integers(0, 4, len(X)).astype(float) if kind == "weights" else np.ones(len(X))
    rows: Any = sparse.csr_array(X) if kind == "sparse" else X
    if kind == "float32":
        rows = X = X.astype(np.float32)
    if kind == "columns first":
        rows = np.asfortranarray(X)
    whole = Block(rows, weight=weight if kind == "weights" else None)
    cuts = [(0, 20), (20, 21), (21, 90)]
    return [whole.part(a, b) for a, b in cuts], np.asarray(X, float), weight


KINDS = ["plain", "weights", "sparse", "float32", "columns first"]
ORIGINS = {"zero": np.zeros(D), "elsewhere": np.r_[0.0, np.linspace(-1, 4, D - 1)]}


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
@pytest.mark.parametrize("kind", KINDS)
def test_moments(kind: str, origin: Array, rng: np.random.Generator) -> None:
    parts, X, w = blocks(rng, kind)
    total = reduce(add, map(SumSquares(origin), parts))
    rtol = 1e-5 if kind == "float32" else 1e-11
    assert isinstance(total, SecondMoments)
    assert total.rows == (w > 0).sum() and total.weight == w.sum()
    mean = np.average(X, axis=0, weights=w)
    np.testing.assert_allclose(total.mean, mean, rtol=rtol)
    S = np.cov(X.T, aweights=w, bias=True)
    np.testing.assert_allclose(total.covariance(), S, rtol=rtol, atol=rtol)
    about_zero = (X * w[:, None]).T @ X / w.sum()
    np.testing.assert_allclose(total.covariance(center=False), about_zero, rtol=rtol, atol=rtol)
    assert total.variance == pytest.approx(np.trace(S), rel=rtol)
    assert total.second.dtype == np.float64
    monoid([SumSquares(origin)(part) for part in parts], rtol=1e-12)


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str, origin: Array, rng: np.random.Generator) -> None:
    parts, X, w = blocks(rng, kind)
    Q = rng.normal(size=(D, 3))
    task = Multiply(np.ascontiguousarray(Q.T), origin)
    total = reduce(add, map(task, parts))
    rtol = 1e-5 if kind == "float32" else 1e-11
    assert isinstance(total, Products)
    S = np.cov(X.T, aweights=w, bias=True)
    about_zero = (X * w[:, None]).T @ X / w.sum()
    np.testing.assert_allclose(total.covariance_times(Q, True), S @ Q, rtol=rtol, atol=20 * rtol)
    np.testing.assert_allclose(
        total.covariance_times(Q, False), about_zero @ Q, rtol=rtol, atol=20 * rtol
    )
    assert total.variance == pytest.approx(np.trace(S), rel=rtol)
    assert total.rows == (w > 0).sum() and total.product.dtype == np.float64
    monoid([task(part) for part in parts], rtol=1e-12)
    bare = Multiply(task.rows, origin, square=False)(parts[0])
    assert bare.square == 0.0
    np.testing.assert_array_equal(bare.product, task(parts[0]).product)


@pytest.mark.parametrize("make", [SumSquares, lambda o: Multiply(np.eye(D)[:2], o)])
def test_weights_are_repetitions(make: Any, rng: np.random.Generator) -> None:
    parts, X, w = blocks(rng, "weights")
    weighted = reduce(add, map(make(ORIGINS["elsewhere"]), parts))
    repeated = make(ORIGINS["elsewhere"])(Block(np.repeat(X, w.astype(int), axis=0)))
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12)
    field = "second" if isinstance(weighted, SecondMoments) else "product"
    np.testing.assert_allclose(getattr(weighted, field), getattr(repeated, field), rtol=1e-10)


def test_blocks_are_not_written_to(rng: np.random.Generator) -> None:
    for kind in ("plain", "weights", "float32"):
        parts, X, _ = blocks(rng, kind)
        for part in parts:
            part.X.flags.writeable = False
            SumSquares(ORIGINS["elsewhere"])(part)
            Multiply(np.eye(D)[:2], ORIGINS["zero"])(part)
        np.testing.assert_array_equal(np.concatenate([p.X for p in parts]), X)


def test_a_sparse_block_gets_entries_in_the_columns_of_the_origin_only() -> None:
    X = sparse.csr_array(([5.0, 1e8, 1e8 + 1], [[0, 1, 2], [0, 3, 3]]), shape=(3, 6))
    origin = np.zeros(6)
    origin[3] = 1e8
    moved = subtract_origin(X, origin)
    assert sparse.issparse(moved) and moved.nnz <= 4
    np.testing.assert_array_equal(moved.toarray(), X.toarray() - origin)
    assert subtract_origin(X, np.zeros(6)) is X


def test_the_origin_is_what_the_type_of_the_data_can_hold(rng: np.random.Generator) -> None:
    X = (1000.0 + rng.normal(size=(50, 3))).astype(np.float32)
    total = SumSquares(np.full(3, 1000.1))(Block(X))  # no float32
    np.testing.assert_allclose(total.mean, X.astype(float).mean(axis=0), rtol=1e-8)


def test_missing_entries_are_refused(rng: np.random.Generator) -> None:
    X = rng.normal(size=(4, D))
    X[1, 2] = np.nan
    with pytest.raises(MissingEntries, match="rows 10 to 13"):
        SumSquares(np.zeros(D))(Block(X, start=10, complete=False))


def test_no_weight_at_all() -> None:
    with pytest.raises(ValueError, match="no row has a weight above 0"):
        _ = RowSums(0.0, 0.0, np.zeros(2), np.zeros(2)).mean


@pytest.mark.parametrize("task", [SumSquares(np.ones(D)), Multiply(np.eye(D)[:2], np.ones(D))])
def test_tasks_travel(task: Any, rng: np.random.Generator) -> None:
    parts, _, _ = blocks(rng, "plain")
    copy = pickle.loads(pickle.dumps(task))
    one, other = task(parts[0]), copy(parts[0])
    np.testing.assert_array_equal(one.sums.first, other.sums.first)
    stored_identity(one)
