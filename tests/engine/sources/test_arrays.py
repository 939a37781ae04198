"""Arrays: types, copies, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.engine.sources import open_source


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float_arrays_are_not_copied(dtype: Any, order: Any, rng: np.random.Generator) -> None:
    X = rng.normal(size=(3000, 4)).astype(dtype, order=order)
    source = open_source(X)
    assert source.dtype == dtype
    for block in source.blocks():
        assert block.X.dtype == dtype
        assert np.shares_memory(block.X, X)


def test_column_slices_of_an_array_are_not_copied(rng: np.random.Generator) -> None:
    X = rng.normal(size=(3000, 6))
    for view in (X[:, 1:4], X[::3], np.asfortranarray(X)[5:]):
        assert all(np.shares_memory(block.X, view) for block in open_source(view).blocks())


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (bool, np.float64),
        (np.float16, np.float32),
        (">f4", np.float32),
        (np.longdouble, np.float64),
    ],
)
def test_other_numbers_are_converted_block_by_block(dtype: Any, expected: Any) -> None:
    X = np.arange(12).reshape(6, 2).astype(dtype)
    source = open_source(X)
    assert source.dtype == expected and source.dtype.isnative
    (block,) = source.blocks()
    assert block.X.dtype == expected and block.X.dtype.isnative
    np.testing.assert_array_equal(block.X, X.astype(expected))


def test_unaligned_and_repeated_rows_are_copied() -> None:
    raw = np.zeros(1 + 8 * 6, dtype=np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(3, 2)
    assert not unaligned.flags.aligned
    for X in (unaligned, np.broadcast_to(np.ones(2), (3, 2))):
        (block,) = open_source(X).blocks()
        assert block.X.flags.aligned and min(block.X.strides) > 0


def test_entries_are_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from mixfold.engine.sources import rows

    visits: list[int] = []
    real = rows.is_complete

    def counting(X: Any, start: int, *rest: Any) -> bool:
        visits.append(start)
        return real(X, start, *rest)

    monkeypatch.setattr(rows, "is_complete", counting)
    X = np.ones((50, 2))
    holed = X.copy()
    holed[3, 1] = np.nan
    for data, later in ((X, []), (holed, [0, 25])):
        source = open_source(data)
        list(source.blocks(10)), list(source.blocks(10))
        assert visits == [0, 10, 20, 30, 40]
        visits.clear()
        list(source.blocks(25))  # other blocks: known only if there was no gap at all
        assert visits == later
        visits.clear()
    list(open_source(X, complete=True).blocks())
    assert not visits


def test_large_finite_numbers_are_neither_missing_nor_infinite() -> None:
    for dtype in (np.float32, np.float64):
        X = np.full((2000, 3), min(float(np.finfo(dtype).max), 1e150), dtype=dtype)
        assert all(block.complete for block in open_source(X).blocks())
        X[1999, 2] = np.nan
        assert [block.complete for block in open_source(X).blocks(1000)] == [True, False]


@pytest.mark.parametrize(
    ("X", "error", "text"),
    [
        (np.ones(3), ValueError, "Expected 2D array, got 1D array instead.*Reshape your data"),
        (np.ones((2, 2, 2)), ValueError, "Expected 2D array, got 3D"),
        (np.float64(1), ValueError, "got 0D array"),
        (np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is"),
        (np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is"),
        (np.ones((2, 2), dtype=complex), ValueError, "Complex data not supported"),
        (np.array([["1.5", "x"]]), ValueError, "text such as '1.5'.*astype"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "type datetime64"),
        (np.ones((1, 1)).view(np.matrix), TypeError, "np.matrix is not supported"),
        (sparse.csr_matrix(np.ones((2, 2), dtype=complex)), ValueError, "Complex data not"),
        (sparse.csr_matrix((0, 3)), ValueError, "0 sample"),
        ([[1.0, 2.0], [3.0]], ValueError, "cannot be read as a table"),
    ],
)
def test_what_is_no_table_of_numbers(X: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        open_source(X)


def test_objects_that_are_no_numbers() -> None:
    X = np.ones((4, 2), dtype=object)
    X[0, 0] = None
    (block,) = open_source(X).blocks()
    assert np.isnan(block.X[0, 0]) and not block.complete
    X[2, 1] = "7"
    with pytest.raises(ValueError, match="column 1 row 2 of X is the text '7'"):
        list(open_source(X).blocks())
    X[2, 1] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        list(open_source(X).blocks())


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (np.zeros(4), "y has 4 entries, the data have 5 rows"),
        (3, "y must have one entry per row, got the single value 3"),
        (np.array([0, 1, np.inf, 0, 0]), "y is infinite in row 2"),
    ],
)
def test_bad_labels(y: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        open_source(np.ones((5, 2)), y=y)


def test_weights_must_be_numbers() -> None:
    for weight in (["a"] * 5, np.ones(5, dtype=complex), [None, {}, 1, 1, 1]):
        with pytest.raises(TypeError, match="weight must hold numbers"):
            open_source(np.ones((5, 2)), weight=weight)
