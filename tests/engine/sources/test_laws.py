"""Laws that hold for every kind of source."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Source
from mixfold.engine.sources import open_source

N = 2600  # rows of the table


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _rows(source: Source, max_rows: int | None = None) -> np.ndarray:
    return np.concatenate([_dense(block.X) for block in source.blocks(max_rows)])


@pytest.mark.parametrize("max_rows", [None, 1, 97, 10**6])
def test_blocks_are_the_rows_in_order(
    kind: str, max_rows: int | None, X: np.ndarray, build: Any, names_of: Any
) -> None:
    if max_rows == 1:
        X = X[:40]
    source = open_source(build(kind, X))
    for _ in range(2):  # the second pass relies on what the first one found out
        start = 0
        for block in source.blocks(max_rows):
            values = _dense(block.X)
            assert block.start == start
            assert block.X.dtype == source.dtype == np.float64
            assert block.complete == (not np.isnan(X[block.rows]).any())
            assert block.weight is None and block.y is None
            np.testing.assert_array_equal(values, X[block.rows])
            start += block.n_rows
            if max_rows is not None and not kind.startswith("dask"):
                assert block.n_rows == min(max_rows, len(X) - block.start)
        assert start == len(X) == source.n_samples
    assert source.n_features == 3
    assert source.feature_names == names_of(kind)
    assert isinstance(source, Source)


def test_weights_and_labels_go_along(
    kind: str, X: np.ndarray, build: Any, rng: np.random.Generator
) -> None:
    weight, y = rng.random(N), rng.integers(-1, 4, size=(N, 2))
    source = open_source(build(kind, X), weight=weight, y=y)
    seen = 0
    for block in source.blocks(333):
        np.testing.assert_array_equal(block.weight, weight[block.rows])
        np.testing.assert_array_equal(block.y, y[block.rows])
        seen += block.n_rows
    assert seen == N


def test_pickled_sources_give_the_same_blocks(kind: str, X: np.ndarray, build: Any) -> None:
    source = open_source(build(kind, X))
    copy = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(_rows(copy, 500), _rows(source, 500))


def test_iterators_are_independent(kind: str, X: np.ndarray, build: Any) -> None:
    source = open_source(build(kind, X))
    first, second = source.blocks(1000), source.blocks(700)
    starts = [next(first).start, next(second).start, next(first).start, next(second).start]
    assert starts[0] == starts[1] == 0 and starts[2] > 0 and starts[3] > 0
    del first, second
    np.testing.assert_array_equal(_rows(source), X)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_with_its_place(
    kind: str, value: float, X: np.ndarray, build: Any, names_of: Any
) -> None:
    X[1700, 1] = value
    column = "'b'" if names_of(kind) else "1"
    row = {"parquet folder": 1700 - 999, "csv list": 700}.get(kind, 1700)
    text = rf"column {column} row {row} of .* is {value} .*NaN if it means missing"
    source = open_source(build(kind, X))
    with pytest.raises(ValueError, match=text):
        _rows(source)
    with pytest.raises(ValueError, match=text):
        _rows(source)


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (np.ones(N - 1), f"weight has {N - 1} entries, the data have .* rows"),
        (np.ones(N + 1), f"weight has {N + 1} entries, the data have {N} rows"),
        (np.ones((N, 1)), "Sample weights must be 1D array.*shape"),
        (np.where(np.arange(N) == 17, -0.5, 1.0), "the weight of row 17 of X is -0.5"),
        (np.where(np.arange(N) == 18, np.nan, 1.0), "the weight of row 18 of X is nan"),
        (np.where(np.arange(N) == 19, np.inf, 1.0), "the weight of row 19 of X is inf"),
        (np.zeros(N), "weight is zero in every row"),
    ],
    ids=["short", "long", "2d", "negative", "nan", "inf", "zero"],
)
def test_bad_weights(kind: str, weight: np.ndarray, text: str, X: np.ndarray, build: Any) -> None:
    with pytest.raises(ValueError, match=text):
        list(open_source(build(kind, X), weight=weight).blocks())


def test_a_source_passes_through(X: np.ndarray) -> None:
    source = open_source(X)
    assert open_source(source) is source
    with pytest.raises(ValueError, match="already"):
        open_source(source, weight=np.ones(N))


@pytest.mark.parametrize("kind", ["C", "csr", "parquet", "csv", "dask array"])
def test_max_rows_must_be_a_size(kind: str, X: np.ndarray, build: Any) -> None:
    with pytest.raises(ValueError, match="max_rows must be at least 1, got 0"):
        open_source(build(kind, X)).blocks(0)
