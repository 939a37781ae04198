"""Row-keyed random numbers: an address gives a number, whatever was asked before."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from mixfold.engine.random import RowKeys, seed_from

CUTS = [
    [0, 1003],
    [0, 143, 286, 429, 572, 715, 858, 1003],
    [0, 1, 2, 5, 6, 500, 503, 1000, 1003],
    list(range(1004)),
]


@pytest.mark.parametrize("cuts", CUTS[1:], ids=["7 slices", "uneven", "row by row"])
@pytest.mark.parametrize("draw", ["uniform", "normal"])
def test_slices_give_the_bits_of_the_whole(cuts: list[int], draw: str) -> None:
    keys = RowKeys(seed=11, iteration=3, stream=2)
    whole = getattr(keys, draw)(slice(0, 1003), 5)
    parts = [getattr(keys, draw)(slice(a, b), 5) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_column_does_not_depend_on_how_many_are_drawn() -> None:
    keys = RowKeys(5)
    np.testing.assert_array_equal(
        keys.uniform(slice(9, 30), 7)[:, :2], keys.uniform(slice(9, 30), 2)
    )


@pytest.mark.parametrize("row", [0, 3, 4, 10**12 + 1])
def test_the_bits_are_those_of_philox_at_the_address(row: int) -> None:
    seed, iteration, stream, column = 2**64 + 17, 4, 9, 3
    philox = np.random.Philox(
        key=np.array([17, 1], dtype=np.uint64),
        counter=np.array([row // 4, column, iteration, stream], dtype=np.uint64),
    )
    word = int(philox.random_raw(4)[row % 4])
    drawn = RowKeys(seed, iteration, stream).uniform(slice(row, row + 1), 4)[0, column]
    assert drawn == ((word >> 12) + 0.5) / 2**52


@pytest.mark.parametrize("other", [RowKeys(2), RowKeys(1, iteration=1), RowKeys(1, stream=1)])
def test_every_part_of_the_key_matters(other: RowKeys) -> None:
    rows = slice(0, 64)
    assert not np.intersect1d(RowKeys(1).uniform(rows, 2), other.uniform(rows, 2)).size


def test_columns_and_rows_are_independent_uniforms_and_normals() -> None:
    keys = RowKeys(3)
    u = keys.uniform(slice(0, 50_000), 3)
    assert u.min() > 0.0 and u.max() < 1.0
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-6
    z = keys.normal(slice(0, 50_000), 3)
    for column in z.T:
        assert stats.kstest(column, "norm").pvalue > 1e-6
    table = np.column_stack([z[1:], z[:-1]])
    correlations = np.corrcoef(table.T)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(50_000)


def test_extreme_words_stay_inside_the_open_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([[0, 2**64 - 1]], dtype=np.uint64)
    monkeypatch.setattr(RowKeys, "_raw", lambda self, rows, per_row: words)
    low, high = RowKeys(0).uniform(slice(0, 1), 2)[0]
    assert 0.0 < low < high < 1.0
    assert np.isfinite(RowKeys(0).normal(slice(0, 1), 2)).all()


def test_empty_slice_and_pickle() -> None:
    keys = pickle.loads(pickle.dumps(RowKeys(8, 2, 1)))
    assert keys == RowKeys(8, 2, 1)
    assert keys.uniform(slice(4, 4), 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: RowKeys(-1), ValueError, r"seed must lie in \[0, 2\*\*128\), got -1"),
        (lambda: RowKeys(0, iteration=-2), ValueError, "iteration must lie"),
        (lambda: RowKeys("a"), TypeError, "seed must be an integer, got 'a'"),
        (lambda: RowKeys(0).uniform(slice(None, 3)), ValueError, "a start, a stop"),
        (lambda: RowKeys(0).uniform(slice(0, 9, 2)), ValueError, "step 1"),
        (lambda: RowKeys(0).uniform(slice(5, 3)), ValueError, "start <= stop"),
        (lambda: seed_from(-3), ValueError, "must not be negative, got -3"),
        (lambda: seed_from("x"), TypeError, "random_state must be None, an integer"),
    ],
)
def test_mistakes(make: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()  # type: ignore[operator]


def test_seeds() -> None:
    assert seed_from(7) == seed_from(np.int32(7)) == 7
    for kind in (np.random.RandomState, np.random.default_rng):
        first, again = kind(3), kind(3)
        seeds = [seed_from(first), seed_from(first)]
        assert seeds == [seed_from(again), seed_from(again)]
        assert seeds[0] != seeds[1]
        assert all(0 <= seed < 2**63 for seed in seeds)


def test_no_seed_follows_numpys_global_state() -> None:
    state = np.random.get_state()
    try:
        np.random.seed(1)
        first = seed_from(None)
        assert seed_from(None) != first
        np.random.seed(1)
        assert seed_from(None) == first
    finally:
        np.random.set_state(state)
