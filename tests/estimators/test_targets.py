"""What y is, and how it is encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from mixfold.estimators.shell.targets import learn_target, make_target

NAN = np.nan


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0, 1, -1, 2], "classification"),
        (["a", "b", "a"], "classification"),
        (np.array(["a", None, "b"], dtype=object), "classification"),
        ([0.0, NAN, 1.0, 5.0], "classification"),
        ([True, False, True], "classification"),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), "classification"),
        (pd.Series(["a", "b", None], dtype="category"), "classification"),
        ([0.5, 1.0, NAN], "regression"),
        ([[0.5, 1.0], [2.0, NAN]], "regression"),
        ([[3, 1], [2, 0]], "regression"),
        ([[0, 1], [1, 1]], "multilabel"),
        ([[0.0, 1.0], [NAN, 1.0]], "multilabel"),
        (sparse.csr_array([[0, 1], [1, 0]]), "multilabel"),
        ([[0, -1], [1, 1]], "multilabel"),
        ([[5, -1], [1, 1]], "regression"),
        ([[0, None], [1, 1]], "multilabel"),
        ([[0.5, None], [1, 1]], "regression"),
        (pd.DataFrame({"a": [0, None], "b": [1, 1]}, dtype="Int64"), "multilabel"),
    ],
)
def test_the_task_is_seen_in_the_known_entries(y: Any, task: str) -> None:
    assert make_target(y).task == task


def test_classes_are_numbered_in_order_and_back() -> None:
    y = np.array(["b", None, "a", "c"], dtype=object)
    target = make_target(y)
    assert target.encode(y).tolist() == [1, -1, 0, 2]
    assert target.decode(np.array([2, 0])).tolist() == ["c", "a"]
    numbers = make_target(np.array([7, -1, 3]))
    assert numbers.encode([3, 7, -1]).tolist() == [0, 1, -1]
    assert numbers.decode(np.array([0, 1])).dtype.kind == "i"


@pytest.mark.parametrize(
    "y",
    [
        ["b", NAN, "a", None],
        np.ma.masked_array(["b", "x", "a", "x"], [False, True, False, True]),
        pd.Series(["b", NAN, "a", None]),
        pd.Categorical(["b", None, "a", None]),
        pd.Series([1, None, 0, -1], dtype="Int64"),
        np.ma.masked_array([1, 7, 0, -1], [False, True, False, False]),
        np.array([1, -1, 0, None], dtype=object),
        np.array([1, -1, 0, pd.NA], dtype=object),
        np.array([True, None, False, None], dtype=object),
        pd.Series([1, None, 0, -1], dtype="int64[pyarrow]"),
        pd.Series([True, None, False, None], dtype="boolean"),
        pa.array([1, None, 0, -1]),
        pa.chunked_array([[1, None], [0, -1]]),
        pa.array(["b", None, "a", None]).dictionary_encode(),
        pl.Series([1, None, 0, -1]),
        pl.Series(["b", None, "a", None]),
        pl.Series(["b", None, "a", None], dtype=pl.Categorical),
    ],
)
def test_marks_of_the_unknown_are_no_classes(y: Any) -> None:
    target = make_target(y)
    assert len(target.classes) == 2
    assert target.classes.dtype.kind in "Uib"
    assert target.encode(y).tolist() == [1, -1, 0, -1]


def test_minus_one_is_unknown_among_labels_but_a_number_in_regression() -> None:
    y = np.array([[0, -1], [1, 1]])
    np.testing.assert_array_equal(make_target(y).encode(y), [[0, NAN], [1, 1]])
    assert make_target(y, "regression").encode(y).tolist() == [[0, -1], [1, 1]]
    objects = y.astype(object)
    assert make_target(objects, "regression").encode(objects).tolist() == [[0, -1], [1, 1]]


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, pd.DataFrame])
def test_tables_of_labels_and_numbers(make: Any) -> None:
    numbers = make({"a": [0.5, None], "b": [1.0, 2.0]})
    np.testing.assert_array_equal(make_target(numbers).encode(numbers), [[0.5, 1], [NAN, 2]])
    if make is pd.DataFrame:
        labels = pd.DataFrame({"a": [0, None, 1], "b": [1, -1, 0]}, dtype="Int64")
    else:
        labels = make({"a": [0, None, 1], "b": [1, -1, 0]})
    target = make_target(labels)
    assert target.task == "multilabel"
    np.testing.assert_array_equal(target.encode(labels), [[0, 1], [NAN, NAN], [1, 0]])


def test_text_that_numpy_made_of_nan_is_told_of() -> None:
    with pytest.warns(UserWarning, match="the text 'nan', which is taken for a class"):
        assert len(make_target(np.array(["a", "b", NAN])).classes) == 3


def test_outputs_are_columns_with_nan() -> None:
    flat = make_target([0.5, NAN, 2.5])
    assert (flat.n_outputs, flat.flat) == (1, True)
    np.testing.assert_array_equal(flat.encode([0.5, NAN, 2.5]), [[0.5], [NAN], [2.5]])
    assert flat.decode(np.ones((3, 1))).shape == (3,)
    column = make_target([[0.5], [2.5]])
    assert column.decode(np.ones((3, 1))).shape == (3, 1)
    masked = np.ma.masked_array([[1.0, 2.5]], [[True, False]])
    np.testing.assert_array_equal(make_target(masked).encode(masked), [[NAN, 2.5]])
    with pytest.raises(ValueError, match="y must have 1 columns, as in the fit; got 2"):
        flat.encode([[1.0, 2.0]])


def test_rows_of_no_weight_say_nothing() -> None:
    y, weight = np.array(["a", "b", "only here"]), np.array([1.0, 2.0, 0.0])
    target, encoded = learn_target(y, "auto", weight)
    assert target.classes.tolist() == ["a", "b"]
    assert encoded.tolist() == [0, 1, -1]
    _, encoded = learn_target([1.5, 2.5, 9.0], "auto", weight)
    np.testing.assert_array_equal(encoded[:, 0], [1.5, 2.5, NAN])
    with pytest.raises(ValueError, match="1 class only"):
        learn_target(y, "auto", np.array([1.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match="zero in every row"):
        learn_target(y, "auto", np.zeros(3))


def test_a_column_of_classes_is_told_of_once() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector") as told:
        learn_target(np.array([["a"], ["b"]]), "auto", None)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((2, 2, 2)), "1d array"),
        (5.0, "1d array"),
        ([1j, 2.0], "Complex data not supported"),
        ([1.0, np.inf], "infinity"),
        ([-1, -1], "no known entry"),
        ([None, None], "no known entry"),
        ([[NAN, NAN], [NAN, NAN]], "no known entry"),
        (np.array(["a", 1, "b"], dtype=object), "mixes text, such as 'a', and other values.* 1;"),
    ],
)
def test_what_y_cannot_be(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_target(y)
