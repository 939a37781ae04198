"""pandas, polars and Arrow tables: types, missing values, text."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mixfold.engine.sources import open_source

pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
pl = pytest.importorskip("polars", reason="needs polars: pip install 'mixfold[tables]'")


def test_arrow_types_become_numbers_and_nulls_become_nan() -> None:
    table = pa.table(
        {
            "int": pa.array([1, None, 2**60], pa.int64()),
            "flag": pa.array([True, False, None]),
            "money": pa.array([Decimal("1.25"), None, Decimal("-3")]),
            "half": pa.array(np.array([1, 2, 3], dtype=np.float16)),
            "nothing": pa.nulls(3),
            "gap": pa.array([np.nan, 1.0, None]),
        }
    )
    nan = np.nan
    expected = [
        [1, 1, 1.25, 1, nan, nan],
        [nan, 0, nan, 2, nan, 1],
        [2**60, nan, -3, 3, nan, nan],
    ]
    for data in (table, table.combine_chunks().to_batches()[0]):
        (block,) = open_source(data).blocks()
        np.testing.assert_array_equal(block.X, expected)
        assert not block.complete and block.X.flags.c_contiguous


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_single_precision_stays(make: Any) -> None:
    small = {"a": np.ones(3, np.float32), "b": np.zeros(3, np.float32)}
    source = open_source(make(small))
    assert source.dtype == np.float32
    assert {block.X.dtype for block in source.blocks()} == {np.dtype(np.float32)}
    assert open_source(make(small | {"c": np.arange(3)})).dtype == np.float64


def test_pandas_types() -> None:
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "arrow": pd.array([1.5, None, 2.5], dtype="float64[pyarrow]"),
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "object": np.array([1, None, 2.5], dtype=object),
            4: [7, 8, 9],
        },
        index=["x", "y", "z"],
    )
    nan = np.nan
    source = open_source(frame)
    assert source.feature_names == ("nullable", "arrow", "flag", "maybe", "object", "4")
    rows = np.concatenate([block.X for block in source.blocks(2)])
    np.testing.assert_array_equal(
        rows, [[1, 1.5, 1, 1, 1, 7], [nan, nan, 0, nan, nan, 8], [3, 2.5, 1, 0, 2.5, 9]]
    )
    assert open_source(frame, columns=["4"]).feature_names == ("4",)
    single = pd.DataFrame({"a": pd.array([1, None], dtype="Float32")})
    assert open_source(single).dtype == np.float32


def test_a_frame_of_floats_is_not_copied() -> None:
    frame = pd.DataFrame(np.ones((3000, 3)))
    for block in open_source(frame).blocks():
        assert np.shares_memory(block.X, frame.to_numpy())


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_labels_keep_their_kind(make: Any) -> None:
    table = make({"x": [1.0, 2.0, 3.0], "k": [1, 0, 2], "real": [0.5, np.nan, 1.0]})
    (block,) = open_source(table, y="k", columns=["x"]).blocks()
    assert block.y is not None and block.y.dtype == np.int64
    assert block.y.tolist() == [1, 0, 2]
    (block,) = open_source(table, y="real", columns=["x"]).blocks()
    np.testing.assert_array_equal(block.y, [0.5, np.nan, 1.0])


def test_missing_integer_labels_become_minus_one() -> None:
    arrow = pa.table({"x": [1.0, 2.0], "k": pa.array([3, None], pa.int32())})
    frame = pd.DataFrame({"x": [1.0, 2.0], "k": pd.array([3, None], dtype="Int32")})
    for table in (arrow, pl.from_arrow(arrow), frame):
        (block,) = open_source(table, y="k").blocks()
        assert block.y is not None and block.y.tolist() == [3, -1]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([None, "tall", "small"], "'tall'"),
        ([b"ab", b"c", b"d"], "b'ab'"),
    ],
)
@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_text_is_refused_with_an_example_and_a_remedy(
    make: Any, values: list[Any], shown: str
) -> None:
    table = make({"x": [1.0, 2.0, 3.0], "size": values})
    text = f"column 'size' has type .*such as {shown}; it must hold numbers.*Leave it out"
    for options in ({}, {"weight": "size"}, {"y": "size"}):
        with pytest.raises(ValueError, match=text):
            open_source(table, **options)
    assert open_source(table, columns=["x"]).n_features == 1


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]"),
        pd.Series([1, 2], dtype="category"),
        pd.Series([1 + 2j, 2j]),
        pd.Series(["1.5", 2.0], dtype=object),
    ],
    ids=["date", "category", "complex", "number as text"],
)
def test_other_pandas_columns_are_refused(column: Any) -> None:
    with pytest.raises(ValueError, match="column 'odd' has type"):
        open_source(pd.DataFrame({"x": [1.0, 2.0], "odd": column}))


def test_what_is_no_frame() -> None:
    with pytest.raises(TypeError, match=r"polars LazyFrame.*X.collect\(\)"):
        open_source(pl.LazyFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="one polars Series"):
        open_source(pl.Series([1.0]))
    with pytest.raises(ValueError, match=r"one pandas Series.*Reshape your data"):
        open_source(pd.Series([1.0]))
    with pytest.raises(ValueError, match="0 sample"):
        open_source(pa.table({"a": pa.array([], pa.float64())}))
    with pytest.raises(ValueError, match="0 feature"):
        open_source(pd.DataFrame(index=[1, 2]))
    twice = pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="column 'a' occurs twice"):
        open_source(twice)
    assert open_source(twice, columns=["b"]).n_features == 1
    with pytest.raises(ValueError, match="'a' belongs to several columns"):
        open_source(twice, columns=["a"])


def test_arrays_do_not_import_table_libraries() -> None:
    # pandas is left out: scikit-learn imports it by itself where it is installed.
    code = (
        "import sys, numpy as np; from mixfold.engine.sources import open_source; "
        "list(open_source(np.ones((3, 2))).blocks()); "
        "print(sorted({'polars', 'dask'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "[]"
