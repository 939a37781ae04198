"""The pilot: a uniform sample and summaries of all rows, whatever the blocks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from scipy import sparse

from mixfold.contracts import Block, Pilot, Source
from mixfold.engine.column_summary import column_summary, reduce_columns
from mixfold.engine.pilot import PILOT_STREAM, Survey, draw_pilot
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source


class Serial:
    """The least executor; counts its passes."""

    def __init__(self, max_rows: int | None = None, backwards: bool = False) -> None:
        self.max_rows, self.backwards, self.passes = max_rows, backwards, 0

    def map_reduce(self, task: Callable[[Block], Any], source: Source) -> Any:
        self.passes += 1
        sent = pickle.loads(pickle.dumps(task))  # as to a worker
        sums = [sent(block) for block in source.blocks(self.max_rows)]
        return reduce(lambda a, b: a + b, sums[::-1] if self.backwards else sums)

    def map_rows(self, task: Callable[[Block], Any], source: Source) -> Iterator[Any]:
        return (task(block) for block in source.blocks(self.max_rows))


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(3000, 4)) * [1, 10, 0.1, 1] + [0, 100, 0, 0]
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 3] = np.nan
    return X


def _same(a: Pilot, b: Pilot) -> None:
    np.testing.assert_array_equal(a.block.X, b.block.X)
    np.testing.assert_array_equal(a.block.y, b.block.y)
    np.testing.assert_array_equal(a.block.weight, b.block.weight)
    assert a.total_rows == b.total_rows
    assert a.total_weight == pytest.approx(b.total_weight, rel=1e-12)
    for name in ("observed", "minimum", "maximum"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("size", [1, 10, 500, 3000, 5000])
@pytest.mark.parametrize("max_rows", [1, 7, 1000, 3000])
def test_the_pilot_does_not_depend_on_blocks(size: int, max_rows: int, X: np.ndarray) -> None:
    weight, y = np.arange(3000) % 3 * 0.5, np.arange(3000)
    source = open_source(X, weight=weight, y=y)
    whole = draw_pilot(source, Serial(), size, seed=4)
    _same(whole, draw_pilot(source, Serial(max_rows), size, seed=4))
    _same(whole, draw_pilot(source, Serial(max_rows, backwards=True), size, seed=4))


def test_it_is_the_rows_of_the_smallest_keys_in_row_order(X: np.ndarray) -> None:
    keys = RowKeys(4, stream=PILOT_STREAM).uniform(slice(0, 3000))[:, 0]
    expected = np.sort(np.argsort(keys)[:200])
    pilot = draw_pilot(open_source(X, y=np.arange(3000)), Serial(), 200, seed=4)
    assert pilot.block.y is not None
    np.testing.assert_array_equal(pilot.block.y, expected)
    np.testing.assert_array_equal(pilot.block.X, X[expected])
    assert not pilot.block.complete


def test_summaries_speak_of_all_rows_of_positive_weight(X: np.ndarray) -> None:
    weight = np.tile([0.0, 2.0, 0.25], 1000)
    X[0, 0], X[3, 1] = 1e9, -1e9  # of weight zero
    pilot = draw_pilot(open_source(X, weight=weight), Serial(100), 50, seed=1)
    kept = X[weight > 0]
    assert pilot.total_rows == 2000
    assert pilot.total_weight == pytest.approx(2250.0)
    np.testing.assert_array_equal(pilot.observed, (~np.isnan(kept)).sum(axis=0))
    np.testing.assert_array_equal(pilot.minimum[:3], np.nanmin(kept[:, :3], axis=0))
    np.testing.assert_array_equal(pilot.maximum[:3], np.nanmax(kept[:, :3], axis=0))
    assert np.isnan(pilot.minimum[3]) and np.isnan(pilot.maximum[3])
    assert pilot.block.weight is not None and (pilot.block.weight > 0).all()


def test_weight_zero_equals_absence_of_the_row_in_the_sample(X: np.ndarray) -> None:
    weight = np.zeros(3000)
    weight[[5, 1700, 2999]] = 1.0
    executor = Serial(64)
    pilot = draw_pilot(open_source(X, weight=weight), executor, 10, seed=0)
    np.testing.assert_array_equal(pilot.block.X, X[[5, 1700, 2999]])
    assert executor.passes <= 4
    with pytest.raises(ValueError, match="zero in every row"):
        draw_pilot(_Weightless(open_source(X)), Serial(), 10, seed=0)


class _Weightless:
    """A stream whose weights nobody saw before."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        for block in self.source.blocks(max_rows):
            yield Block(block.X, block.start, weight=np.zeros(block.n_rows))


def test_one_pass(X: np.ndarray) -> None:
    for size in (1, 30, 3000):
        executor = Serial(100)
        draw_pilot(open_source(X), executor, size, seed=0)
        assert executor.passes == 1


def test_every_row_is_equally_likely() -> None:
    source = open_source(np.zeros((20, 1)), y=np.arange(20))
    counts = np.zeros(20)
    trials = 2000
    for seed in range(trials):
        block = draw_pilot(source, Serial(), 5, seed).block
        assert block.y is not None and len(set(block.y.tolist())) == 5
        counts[block.y] += 1
    error = np.sqrt(trials * 0.25 * 0.75)
    assert np.abs(counts - trials * 0.25).max() < 6 * error


def test_csr_stays_csr_and_counts_its_zeros() -> None:
    dense = np.zeros((600, 5))
    dense[:, 0] = np.arange(1, 601)  # never zero
    dense[::3, 1] = -2.0  # zeros are the maximum
    dense[::2, 2] = np.nan
    dense[:, 3] = np.nan
    X = sparse.csr_matrix(dense)
    pilot = draw_pilot(open_source(X, y=np.arange(600)), Serial(37), 100, seed=3)
    same = draw_pilot(open_source(dense, y=np.arange(600)), Serial(), 100, seed=3)
    assert pilot.block.X.format == "csr" and not pilot.block.complete
    np.testing.assert_array_equal(pilot.block.X.toarray(), same.block.X)
    np.testing.assert_array_equal(pilot.block.y, same.block.y)
    for name in ("observed", "minimum", "maximum"):
        np.testing.assert_array_equal(getattr(pilot, name), getattr(same, name))
    assert pilot.observed.tolist() == [600, 600, 300, 0, 600]


def test_a_stream_of_unknown_length_gives_the_same_pilot(X: np.ndarray, tmp_path: Path) -> None:
    columns = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(4)}
    pa_csv.write_csv(pa.table(columns), tmp_path / "x.csv")
    source = open_source(tmp_path / "x.csv")
    assert source.n_samples is None
    executor = Serial(100)
    _same(draw_pilot(source, executor, 77, seed=5), draw_pilot(open_source(X), Serial(), 77, 5))
    assert executor.passes == 1


def test_single_precision_stays(X: np.ndarray) -> None:
    pilot = draw_pilot(open_source(X.astype(np.float32)), Serial(), 10, seed=0)
    assert pilot.block.X.dtype == np.float32
    assert pilot.minimum.dtype == pilot.maximum.dtype == np.float64


def test_the_sample_is_all_that_is_held() -> None:
    """Merged reservoirs neither pile up rows nor keep whole blocks alive."""
    task = Survey(RowKeys(0, stream=PILOT_STREAM), size=50)
    total = None
    for start in range(0, 100_000, 1000):
        part = task(Block(np.ones((1000, 2)), start=start))
        assert all(chosen.X.base is None for chosen in part.reservoir.parts)
        total = part if total is None else total + part
        assert sum(len(chosen.keys) for chosen in total.reservoir.parts) <= 100
    bounded = Survey(task.keys, size=50, below=0.001)(Block(np.ones((1000, 2))))
    assert sum(len(chosen.keys) for chosen in bounded.reservoir.parts) < 10


def test_the_overview_is_a_monoid(X: np.ndarray) -> None:
    task = Survey(RowKeys(1, stream=PILOT_STREAM), size=20)
    a, b, c = (task(block) for block in open_source(X).blocks(1000))

    def content(value: Any) -> tuple[Any, ...]:
        kept = value.reservoir.trim().parts[0]
        return (value.total_rows, value.total_weight, value.observed, value.minimum,
                value.maximum, kept.rows, kept.X)  # fmt: skip

    pairs = [(a + b, b + a), ((a + b) + c, a + (b + c)), (a + a.zero(), a), (a.zero() + a, a)]
    for left, right in pairs:
        for x, y in zip(content(left), content(right), strict=True):
            np.testing.assert_array_equal(x, y)
    with pytest.raises(TypeError, match="scaled"):
        a.scale(2.0)
    with pytest.raises(TypeError, match="subtracted"):
        a - b


@pytest.mark.parametrize("shape", [(1, 3), (5, 1), (2047, 1), (4097, 3), (999, 4000), (0, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_column_extremes(shape: tuple[int, int], order: Any, rng: np.random.Generator) -> None:
    X = np.asarray(rng.normal(size=shape), order=order)
    X[rng.random(shape) < 0.3] = np.nan
    for ufunc in (np.fmin, np.fmax):
        expected = ufunc.reduce(X, axis=0, initial=np.nan)
        np.testing.assert_array_equal(reduce_columns(ufunc, X), expected)
    observed, _, _ = column_summary(X, complete=False)
    np.testing.assert_array_equal(observed, (~np.isnan(X)).sum(axis=0))


def test_size_must_be_positive(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        draw_pilot(open_source(X), Serial(), 0, seed=0)
