"""The kernels of k-means against distances computed one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.math import assignment, sparse_assignment
from mixfold.math.centres import Centres
from mixfold.math.frame import Frame

Case = tuple[Block, Centres]


def direct(X: Array, centres: Array) -> Array:
    """(n, K) squared distances over the observed entries, in extended precision."""
    gaps = X[:, None, :].astype(np.longdouble) - centres.astype(np.longdouble)
    return np.asarray(np.nansum(gaps**2, axis=2))


def table(rng: np.random.Generator, n: int, D: int, K: int, missing: float = 0.0) -> Any:
    X = rng.normal(size=(n, D)) * 3 + 5
    X[rng.random((n, D)) < missing] = np.nan
    return X, rng.normal(size=(K, D)) * 3 + 5


def reading(points: Array, origin: float = 4.0, scale: float = 2.0) -> Centres:
    frame = Frame(np.full(points.shape[1], origin), np.full(points.shape[1], scale))
    return Centres(frame, frame.enter(points))


def check_sums(sums: Any, X: Array, weight: Array, centres: Centres, rtol: float = 1e-12) -> None:
    squared = direct(X, centres.frame.leave(centres.points))
    labels, K = np.argmin(squared, axis=1), len(centres.points)
    member = (labels[:, None] == np.arange(K)) * weight[:, None]
    seen = ~np.isnan(X)
    U = np.where(seen, centres.frame.enter(X), 0.0)
    count = np.broadcast_to(sums.count, sums.first.shape)
    np.testing.assert_allclose(sums.mass, member.sum(axis=0), rtol=rtol)
    np.testing.assert_allclose(count, member.T @ seen, rtol=rtol)
    np.testing.assert_allclose(sums.first, member.T @ U, rtol=rtol, atol=rtol * np.abs(U).sum())
    inertia = float(weight @ squared.min(axis=1)) / centres.frame.scale[0] ** 2
    assert sums.inertia == pytest.approx(inertia, rel=rtol)
    assert sums.weight == pytest.approx(weight.sum())


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "D", "K"), [(1, 1, 1), (700, 5, 3), (1100, 33, 70), (130, 2, 300)])
def test_sums_of_dense_rows(
    rng: np.random.Generator, n: int, D: int, K: int, missing: float
) -> None:
    X, points = table(rng, n, D, K, missing)
    weight = rng.integers(0, 4, n) + 0.5 * (rng.random(n) < 0.5)
    centres = reading(points)
    check_sums(
        assignment.assign(Block(X, weight=weight, complete=not missing), centres),
        X,
        weight,
        centres,
    )
    check_sums(assignment.assign(Block(X, complete=not missing), centres), X, np.ones(n), centres)


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_is_summed_in_float64(rng: np.random.Generator, order: Any) -> None:
    X, points = table(rng, 5000, 6, 9)
    X = np.asarray(X, dtype=np.float32, order=order)
    centres = reading(points)
    theta, _ = centres.scoring(X.dtype, True)
    assert theta.dtype == np.float32
    check_sums(assignment.assign(Block(X), centres), X, np.ones(5000), centres, 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("origin", [0.0, 1.5])
def test_sparse_rows_equal_dense_ones(
    rng: np.random.Generator, missing: float, origin: float
) -> None:
    X, points = table(rng, 300, 12, 5)
    X[rng.random(X.shape) < 0.7] = 0.0
    X[(rng.random(X.shape) < missing) & (X != 0)] = np.nan
    weight = rng.integers(0, 3, 300).astype(float)
    centres = reading(points, origin)
    thin = Block(sparse.csr_array(X), weight=weight, complete=not missing)
    full = Block(X, weight=weight, complete=not missing)
    check_sums(sparse_assignment.assign(thin, centres), X, weight, centres)
    for mine, theirs in zip(
        sparse_assignment.nearest(thin, centres), assignment.nearest(full, centres), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    np.testing.assert_allclose(
        sparse_assignment.squared_distances(thin, centres),
        assignment.squared_distances(full, centres),
        rtol=1e-12,
    )


def test_zero_weight_rows_are_labelled_and_not_summed(rng: np.random.Generator) -> None:
    X, points = table(rng, 200, 3, 4)
    block, centres = Block(X, weight=np.zeros(200)), reading(points)
    sums = assignment.assign(block, centres)
    assert sums.weight == 0 and not sums.mass.any() and not sums.first.any()
    labels, _ = assignment.nearest(block, centres)
    np.testing.assert_array_equal(labels, np.argmin(direct(X, points), axis=1))


def test_ties_go_to_the_lowest_index_in_every_tile() -> None:
    # whole numbers on a line, centres on them and twice over: exact ties everywhere
    X = np.tile(np.arange(0.0, 12.0)[:, None] + 1e5, (100, 3))
    points = np.array([[0.0], [4.0], [8.0], [4.0], [0.0]]) + np.full((1, 3), 1e5)
    labels, _ = assignment.nearest(Block(X), reading(points, origin=1e5))
    np.testing.assert_array_equal(labels, np.argmin(direct(X, points), axis=1))
    assert labels[2] == 0 and labels[6] == 1  # half-way between two


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_close_centres_far_from_the_origin_are_told_apart(
    rng: np.random.Generator, dtype: Any
) -> None:
    # |c|^2 is 1e16 (1e8) times the distance that decides: the product form has no digit left
    far = 1e8 if dtype == np.float64 else 1e4
    shift = np.outer(np.arange(600) % 2, [far, 0.0])
    X = (shift + rng.normal(size=(600, 2))).astype(dtype)
    points = np.array([[-1.0, 0], [1, 0], [far - 1, 0], [far + 1, 0]])
    labels, distances = assignment.nearest(Block(X), reading(points, 0.0, 2.0 ** int(np.log2(far))))
    expected = direct(X.astype(np.float64), points)
    np.testing.assert_array_equal(labels, np.argmin(expected, axis=1))
    scale = 4.0 ** int(np.log2(far))
    np.testing.assert_allclose(distances * scale, expected.min(axis=1).astype(float), rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_distances(rng: np.random.Generator, missing: float) -> None:
    X, points = table(rng, 900, 7, 20, missing)
    X[:20] = points + 1e-9 * rng.normal(size=points.shape)  # next to a centre: few digits otherwise
    centres = reading(points)
    squared = assignment.squared_distances(Block(X, complete=not missing), centres)
    np.testing.assert_allclose(squared * 4, direct(X, points).astype(float), rtol=1e-6, atol=1e-28)


def test_a_row_without_entries_costs_nothing() -> None:
    block = Block(np.array([[np.nan, np.nan], [1.0, np.nan]]), complete=False)
    labels, distances = assignment.nearest(block, reading(np.array([[9.0, 9.0], [1.0, 0.0]])))
    np.testing.assert_array_equal(labels, [0, 1])
    np.testing.assert_array_equal(distances, [0.0, 0.0])
    sums = assignment.assign(block, reading(np.array([[9.0, 9.0], [1.0, 0.0]])))
    np.testing.assert_array_equal(sums.count, [[0, 0], [1, 0]])
