"""Targets by the name of a column, and outputs beside a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import OutputSource, sides_beside, split_target

FRAME = pd.DataFrame(
    {
        "a": [1.0, 2.0, 3.0, 4.0],
        "kind": ["x", None, "y", "x"],
        "whole": pd.array([1, None, 3, 4], dtype="Int64"),
        "part": [0.5, np.nan, 1.5, 2.0],
        "b": [4.0, 3.0, 2.0, 1.0],
    }
)


def forms(folder: Path) -> dict[str, Any]:
    FRAME.to_csv(folder / "t.csv", index=False)
    FRAME.to_csv(folder / "t.tsv", index=False, sep="\t")
    FRAME.to_parquet(folder / "t.parquet")
    return {
        "pandas": FRAME,
        "polars": pl.from_pandas(FRAME),
        "arrow": pa.Table.from_pandas(FRAME),
        "csv": folder / "t.csv",
        "tsv": str(folder / "t.tsv"),
        "parquet": folder / "t.parquet",
        "list": [folder / "t.parquet"],
    }


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "csv", "tsv", "parquet", "list"])
def test_a_column_of_anything_that_has_names(tmp_path: Path, form: str) -> None:
    X = forms(tmp_path)[form]
    kind, features = split_target(X, "kind", "part")
    assert kind.tolist() == ["x", None, "y", "x"]
    assert features == ["a", "whole", "b"]
    whole, features = split_target(X, "whole")
    assert whole.tolist() == [1, None, 3, 4]
    assert all(isinstance(value, int) for value in whole[[0, 2, 3]])
    part, _ = split_target(X, "part")
    np.testing.assert_array_equal(part.astype(float), [0.5, np.nan, 1.5, 2.0])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_in_a_file_are_integers_however_they_are_written(
    tmp_path: Path, kind: str
) -> None:
    columns = {
        "holes": [1.0, np.nan, -1.0],
        "full": [1.0, 0.0, -1.0],
        "parts": [1.5, np.nan, -1.0],
        "huge": [2.0**60, np.nan, 1.0],
        "none": [np.nan] * 3,
    }
    frame, file = pd.DataFrame(columns), tmp_path / f"t.{kind}"
    getattr(frame, f"to_{kind}")(file, index=False)
    holes, _ = split_target(file, "holes")
    assert holes.tolist() == [1, None, -1] and isinstance(holes[2], int)
    for name in ("full", "parts", "huge"):
        values, _ = split_target(file, name)
        assert values.dtype == float
        np.testing.assert_array_equal(values, columns[name])
    assert not any(value == value and value is not None for value in split_target(file, "none")[0])
    # in memory a float is one
    assert split_target(frame, "holes")[0].dtype == float


def test_names_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no column 'kin'\. Did you mean 'kind'"):
        split_target(FRAME, "kin")
    with pytest.raises(ValueError, match="a ndarray, has no column names; give an array instead"):
        split_target(np.ones((3, 2)), "kind")
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"t\.npy has no column names"):
        split_target(tmp_path / "t.npy", "kind")


def test_outputs_beside_a_source_go_with_the_rows() -> None:
    X = np.arange(14.0).reshape(7, 2)
    outputs = np.arange(7.0)[:, None] * [1.0, np.nan]
    source = OutputSource(open_source(X, weight=np.ones(7)), outputs)
    assert (source.n_samples, source.n_features) == (7, 2)
    blocks = list(source.blocks(max_rows=3))
    assert [block.n_rows for block in blocks] == [3, 3, 1]
    for block in blocks:
        np.testing.assert_array_equal(block.y, outputs[block.rows])
    beside = sides_beside(source)
    np.testing.assert_array_equal(beside.y, outputs)
    np.testing.assert_array_equal(beside.weight, np.ones(7))
    assert sides_beside(open_source(X)).y is None


@pytest.mark.parametrize("n", [5, 9])
def test_outputs_of_another_length_are_told(n: int) -> None:
    source = OutputSource(open_source(np.ones((7, 2))), np.ones(n))
    with pytest.raises(ValueError, match=f"y has {n} entries"):
        list(source.blocks(max_rows=3))
