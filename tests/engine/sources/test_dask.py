"""Dask collections: partitions, unknown sizes, weights that live on the cluster too."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.engine.sources import DaskSource, open_source

dask = pytest.importorskip("dask", reason="needs Dask: pip install 'mixfold[dask]'")
da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="needs Dask: pip install 'mixfold[dask]'")
pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(4000, 3))


def _source(*args: Any, **options: Any) -> DaskSource:
    source = open_source(*args, **options)
    assert isinstance(source, DaskSource)
    return source


def _rows(source: Any) -> np.ndarray:
    return np.concatenate([block.X for block in source.blocks()])


def test_partitions_cut_elsewhere_are_the_blocks(X: np.ndarray) -> None:
    weight = np.arange(1.0, 4001.0)
    data = da.from_array(X, chunks=(1500, 2))
    source = _source(data, weight=da.from_array(weight, chunks=900), y=np.arange(4000) % 3)
    here = list(source.blocks())
    partitions = source.partitions()
    assert [part.n_rows for part in partitions] == [1500, 1500, 1000]
    there = []
    for part in partitions:
        cut = pickle.loads(pickle.dumps(part.cut))
        blocks = list(cut(part.data.compute()))
        assert len(blocks) == part.n_blocks
        there += blocks
    assert [block.rows for block in there] == [block.rows for block in here]
    for block, other in zip(here, there, strict=True):
        for values in (block, other):
            np.testing.assert_array_equal(values.X, X[block.rows])
            np.testing.assert_array_equal(values.weight, weight[block.rows])
            np.testing.assert_array_equal(values.y, np.arange(4000)[block.rows] % 3)


def test_only_columns_are_rechunked(X: np.ndarray) -> None:
    source = _source(da.from_array(X, chunks=(700, 1)))
    assert [part.n_rows for part in source.partitions()] == [700] * 5 + [500]


def test_unknown_sizes_are_computed_once(X: np.ndarray) -> None:
    calls: list[int] = []

    def load(part: Any) -> Any:
        calls.append(len(part))
        return part

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    lazy = dd.from_pandas(frame, npartitions=4)
    unknown = lazy[lazy["a"] > 0].to_dask_array()
    assert np.isnan(unknown.shape[0])
    expected = X[X[:, 0] > 0]
    source = _source(unknown)
    assert source.n_samples == len(expected)
    np.testing.assert_array_equal(_rows(source), expected)

    with dask.config.set(scheduler="synchronous"):
        source = _source(lazy.map_partitions(load, meta=lazy._meta))
        counted = len(calls)
        assert source.n_samples == 4000 and source.n_samples == 4000
        source.partitions()
        assert len(calls) == counted


def test_empty_partitions_are_left_out(X: np.ndarray) -> None:
    frame = pd.DataFrame(np.sort(X, axis=0), columns=["a", "b", "c"])
    lazy = dd.from_pandas(frame, npartitions=4, sort=False)
    lazy = lazy[lazy["a"] > 0]
    weight = np.arange(1.0, 1.0 + (frame["a"] > 0).sum())
    source = _source(lazy, weight=weight)
    assert 0 < len(source.partitions()) < 4
    assert np.concatenate([block.weight for block in source.blocks()]).tolist() == weight.tolist()
    np.testing.assert_array_equal(_rows(source), frame[frame["a"] > 0].to_numpy())


def test_weights_and_labels_as_columns_or_series(X: np.ndarray) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["w"], frame["k"] = np.abs(X[:, 0]), np.arange(4000) % 5
    lazy = dd.from_pandas(frame, npartitions=3)
    named = _source(lazy, weight="w", y="k")
    given = _source(lazy[["a", "b", "c"]], weight=lazy["w"], y=lazy["k"])
    for source in (named, given):
        assert source.feature_names == ("a", "b", "c")
        for block in source.blocks():
            np.testing.assert_array_equal(block.weight, frame["w"][block.rows])
            np.testing.assert_array_equal(block.y, frame["k"][block.rows])


def test_types(X: np.ndarray) -> None:
    assert _source(da.from_array(X.astype(np.float32), chunks=1000)).dtype == np.float32
    whole = _source(da.ones((10, 2), dtype=int, chunks=4))
    assert whole.dtype == np.float64 and _rows(whole).dtype == np.float64
    pieces = da.from_array(X, chunks=(1000, 3)).map_blocks(sparse.csr_array)
    blocks = list(_source(pieces).blocks())
    assert all(sparse.issparse(block.X) for block in blocks)
    np.testing.assert_array_equal(np.concatenate([b.X.toarray() for b in blocks]), X)


def test_a_partition_may_weigh_nothing_but_not_all_of_them(X: np.ndarray) -> None:
    data = da.from_array(X, chunks=(1000, 3))
    weight = np.zeros(4000)
    with pytest.raises(ValueError, match="zero in every row"):
        list(_source(data, weight=da.from_array(weight, chunks=500)).blocks())
    weight[3999] = 1.0
    assert len(list(_source(data, weight=da.from_array(weight, chunks=500)).blocks())) == 4


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: open_source(da.ones(5)), ValueError, "got 1D array"),
        (lambda: open_source(da.ones((0, 2))), ValueError, "0 sample"),
        (
            lambda: open_source(da.ones((5, 2)), columns=["a"]),
            ValueError,
            "columns chooses by name",
        ),
        (lambda: open_source(da.ones((5, 2)), weight=da.ones(4)), ValueError, "weight has 4 ent"),
        (lambda: open_source(da.ones((5, 2)), weight=da.ones((5, 1))), ValueError, "one dimension"),
        (lambda: open_source(da.ones((5, 2), dtype=complex)), ValueError, "Complex data not"),
        (lambda: open_source(dask.delayed(np.ones)((3, 2))), TypeError, "X is a Dask Delayed"),
    ],
)
def test_mistakes(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_rows_of_bad_entries_are_global(X: np.ndarray) -> None:
    weight = np.ones(4000)
    weight[3100] = -1
    data = da.from_array(X, chunks=(1000, 3))
    with pytest.raises(ValueError, match="weight of row 3100"):
        list(_source(data, weight=da.from_array(weight, chunks=1000)).blocks())


def test_frames_of_text_and_partitions_that_change() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "s": ["x", "y"]})
    with pytest.raises(ValueError, match=r"column 's' has type [^,]*; it must hold numbers"):
        open_source(dd.from_pandas(frame, npartitions=1))
    source = _source(da.ones((6, 2), chunks=3))
    with pytest.raises(ValueError, match="has 2 rows when computed, but 3 were announced"):
        list(source.partitions()[1].cut((np.ones((2, 2)), None, None)))
