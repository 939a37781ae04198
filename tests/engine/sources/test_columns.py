"""Columns by name: features, weights, labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixfold.engine.sources import open_source


def test_unknown_columns_are_named_with_close_matches(
    named: str, X: np.ndarray, build: Any
) -> None:
    data = build(named, X)
    for options in ({"columns": ["a", "bb"]}, {"weight": "bb"}, {"y": "bb"}):
        with pytest.raises(ValueError, match=r"has no column 'bb'. Did you mean 'b'\?"):
            open_source(data, **options)


def test_columns_are_chosen_by_name_and_order(named: str, X: np.ndarray, build: Any) -> None:
    source = open_source(build(named, X), columns=["c", "a"])
    assert source.feature_names == ("c", "a") and source.n_features == 2
    np.testing.assert_array_equal(
        np.concatenate([block.X for block in source.blocks()]), X[:, [2, 0]]
    )


def test_weight_and_label_columns_are_no_features(named: str, X: np.ndarray, build: Any) -> None:
    X[:, 2] = np.abs(np.nan_to_num(X[:, 2]))
    source = open_source(build(named, X), weight="c", y="a")
    assert source.feature_names == ("b",)
    for block in source.blocks(777):
        np.testing.assert_array_equal(block.X[:, 0], X[block.rows, 1])
        np.testing.assert_array_equal(block.weight, X[block.rows, 2])
        np.testing.assert_array_equal(block.y, X[block.rows, 0])


@pytest.mark.parametrize("value", [-2.0, np.nan, 0.0])
def test_bad_weight_columns(named: str, value: float, X: np.ndarray, build: Any) -> None:
    X[:, 2] = 0.0
    X[17, 2] = value
    text = "zero in every row" if value == 0 else f"weight of row 17 of .* is {value}"
    with pytest.raises(ValueError, match=text):
        list(open_source(build(named, X), weight="c").blocks())


def test_arrays_have_no_names_to_choose_by(unnamed: str, X: np.ndarray, build: Any) -> None:
    data = build(unnamed, X)
    for name in ("columns", "weight", "y"):
        with pytest.raises(ValueError, match=f"{name} chooses by name, but .* has no column"):
            open_source(data, **{name: "a"})


def test_a_feature_cannot_be_the_weight_too(X: np.ndarray, build: Any) -> None:
    table = build("arrow", X)
    with pytest.raises(ValueError, match="weight='c' is also listed in columns"):
        open_source(table, columns=["a", "c"], weight="c")
    with pytest.raises(ValueError, match="column 'a' occurs twice"):
        open_source(table, columns=["a", "a"])
    with pytest.raises(ValueError, match="0 feature"):
        open_source(table.select(["a"]), y="a")
