"""Starting points: k-means++, Lloyd, rows without repetition."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.seeding import distinct, lloyd, plus_plus, squared_distances


def _inertia(U: np.ndarray, w: np.ndarray, centres: np.ndarray) -> float:
    return float(w @ squared_distances(U, centres).min(axis=1))


@pytest.fixture
def blobs(rng: np.random.Generator) -> np.ndarray:
    centres = np.array([[0, 0], [30, 0], [0, 30], [30, 30]])
    return (centres[:, None] + rng.normal(size=(4, 25, 2))).reshape(-1, 2)


def test_squared_distances(rng: np.random.Generator) -> None:
    U, C = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    wanted = ((U[:, None] - C) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(U, C), wanted, rtol=1e-12)
    assert (squared_distances(U * 1e8, U * 1e8) >= 0).all()


@pytest.mark.parametrize("seed", range(10))
def test_plus_plus_finds_one_row_of_each_far_blob(seed: int, blobs: np.ndarray) -> None:
    centres = plus_plus(blobs, np.ones(100), 4, np.random.default_rng(seed))
    assert sorted(np.flatnonzero((blobs == c).all(axis=1))[0] // 25 for c in centres) == [
        0,
        1,
        2,
        3,
    ]


def test_plus_plus_never_takes_rows_without_weight(blobs: np.ndarray) -> None:
    weight = np.where(np.arange(100) < 50, 0.0, 1.0)
    for seed in range(20):
        centres = plus_plus(blobs, weight, 3, np.random.default_rng(seed))
        for centre in centres:
            assert np.flatnonzero((blobs == centre).all(axis=1))[0] >= 50


def test_plus_plus_keeps_given_centres(blobs: np.ndarray, rng: np.random.Generator) -> None:
    given = np.array([[0.0, 0.0], [30.0, 30.0]])
    centres = plus_plus(blobs, np.ones(100), 4, rng, given)
    np.testing.assert_array_equal(centres[:2], given)
    assert sorted(np.round(centres[2:] / 30).tolist()) == [[0, 1], [1, 0]]


def test_plus_plus_with_fewer_distinct_rows_than_centres(rng: np.random.Generator) -> None:
    U = np.repeat([[1.0], [2.0]], 5, axis=0)
    centres = plus_plus(U, np.ones(10), 4, rng)
    assert centres.shape == (4, 1)
    assert set(centres[:, 0]) == {1.0, 2.0}


def test_lloyd_lowers_the_inertia_to_a_fixed_point(rng: np.random.Generator) -> None:
    U, w = rng.normal(size=(200, 2)), rng.uniform(0.1, 3, 200)
    centres = U[:5].copy()
    last = _inertia(U, w, centres)
    for _ in range(30):
        _, centres = lloyd(U, w, centres, 1)
        now = _inertia(U, w, centres)
        assert now <= last + 1e-9
        last = now
    assigned, final = lloyd(U, w, U[:5], 500)
    np.testing.assert_array_equal(assigned, squared_distances(U, final).argmin(axis=1))
    for k in range(5):
        wanted = np.average(U[assigned == k], axis=0, weights=w[assigned == k])
        np.testing.assert_allclose(final[k], wanted)


def test_lloyd_obeys_labels_and_keeps_empty_centres() -> None:
    U = np.array([[0.0], [1.0], [10.0], [11.0]])
    labels = np.array([1, -1, -1, -1])
    assigned, centres = lloyd(U, np.ones(4), np.array([[0.5], [10.5], [99.0]]), 20, labels)
    assert assigned[0] == 1
    assert centres[2, 0] == 99.0


def test_distinct_adds_weights_in_an_order_of_its_own(rng: np.random.Generator) -> None:
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0, 0], X[1, 0] = 0.0, -0.0
    w = rng.uniform(0.5, 2, 60)
    rows, total, _ = distinct(X, w, None)
    order = rng.permutation(60)
    again, total_again, _ = distinct(X[order], w[order], None)
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_allclose(total, total_again, rtol=1e-14)
    for row, weight in zip(rows, total, strict=True):
        same = ((row == X) | (np.isnan(X) & np.isnan(row))).all(axis=1)
        assert weight == pytest.approx(w[same].sum())
    assert total.sum() == pytest.approx(w.sum())


def test_distinct_keeps_apart_rows_of_different_labels() -> None:
    X = np.ones((3, 1))
    rows, total, labels = distinct(X, np.array([1.0, 2.0, 4.0]), np.array([0, -1, 0]))
    assert len(rows) == 2
    assert dict(zip(labels, total, strict=True)) == {0: 5.0, -1: 2.0}


def test_the_order_of_distinct_rows_does_not_depend_on_units(rng: np.random.Generator) -> None:
    """Otherwise a start would draw other rows once a column is rescaled or moved."""
    X = rng.normal(size=(50, 2))
    moved = X * [1000.0, 3.0] + [7.0, -1e4]
    rows, _, _ = distinct(X, np.ones(50), None)
    again, _, _ = distinct(moved, np.ones(50), None)
    np.testing.assert_allclose(again, rows * [1000.0, 3.0] + [7.0, -1e4])


def test_distinct_of_many_wide_rows(rng: np.random.Generator) -> None:
    """Rows are compared a few at a time: repetitions across and within those few are found."""
    rows = rng.integers(0, 3, (700, 4)).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    weight = rng.random(700)
    X, total, labels = distinct(rows, weight, None)
    keys = [tuple(None if np.isnan(v) else v for v in row) for row in rows]
    assert labels is None and len(X) == len(set(keys)) < 700
    for row, sum_of in zip(X, total, strict=True):
        key = tuple(None if np.isnan(v) else v for v in row)
        mine = [w for k, w in zip(keys, weight, strict=True) if k == key]
        assert sum_of == pytest.approx(sum(mine))
    alone = rng.normal(size=(600, 3))
    X, total, _ = distinct(alone, np.arange(600.0), None)
    order = np.argsort(alone[:, 0])
    np.testing.assert_array_equal(X, alone[order])
    np.testing.assert_array_equal(total, order)
