"""Folders whose files are governed by a log, and folders whose names are a column."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import mixfold
from mixfold.engine.sources import open_source


def _write(path: Path, n_rows: int = 20, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    X = np.random.default_rng(seed).normal(size=(n_rows, 2))
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), path)


def _delta(root: Path) -> Path:
    """A table of one file, beside an old version of it that is no longer part of the table."""
    _write(root / "old.parquet")
    _write(root / "new.parquet", seed=1)
    (root / "_delta_log").mkdir()
    for version, action in enumerate(({"add": {"path": "old.parquet"}},
                                      {"remove": {"path": "old.parquet"}})):  # fmt: skip
        (root / "_delta_log" / f"{version:020}.json").write_text(json.dumps(action))
    return root


def _iceberg(root: Path) -> Path:
    _write(root / "data" / "one.parquet")
    (root / "metadata").mkdir()
    (root / "metadata" / "v1.metadata.json").write_text("{}")
    return root


def _hudi(root: Path) -> Path:
    _write(root / "one.parquet")
    (root / ".hoodie").mkdir()
    (root / ".hoodie" / "hoodie.properties").write_text("")
    return root


MAKERS = {"Delta": _delta, "Iceberg": _iceberg, "Hudi": _hudi}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_folder_governed_by_a_log_is_refused_with_the_way_to_read_it(
    kind: str, tmp_path: Path
) -> None:
    root = MAKERS[kind](tmp_path / "table")
    with pytest.raises(ValueError, match=f"{kind} table") as caught:
        mixfold.KMeans(2).fit(str(root))
    assert {"Delta": "deltalake", "Iceberg": "pyiceberg", "Hudi": "hudi"}[kind] in str(caught.value)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_table_below_or_above_the_named_folder_is_found(kind: str, tmp_path: Path) -> None:
    root = MAKERS[kind](tmp_path / "lake" / "table")
    with pytest.raises(ValueError, match=f"{kind} table"):
        open_source(tmp_path / "lake")
    _write(root / "year=2020" / "part.parquet")
    with pytest.raises(ValueError, match=f"{kind} table"):
        open_source(root / "year=2020")


def test_files_of_such_a_table_that_are_named_one_by_one_are_read(tmp_path: Path) -> None:
    root = _delta(tmp_path / "table")  # what DeltaTable(...).file_uris() gives
    assert open_source([str(root / "new.parquet")]).n_samples == 20


def test_a_folder_called_metadata_is_no_iceberg_table(tmp_path: Path) -> None:
    _write(tmp_path / "one.parquet")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "readme.json").write_text("{}")
    assert open_source(tmp_path).n_samples == 20


def test_partition_folders_say_that_their_column_is_left_out(tmp_path: Path) -> None:
    for year in (2020, 2021):
        for month in (1, 2):
            _write(tmp_path / f"year={year}" / f"month={month}" / "part.parquet")
    with pytest.warns(UserWarning, match="'year', 'month'") as caught:
        source = open_source(tmp_path)
    assert (source.n_samples, source.feature_names) == (80, ("a", "b"))
    # The remedy of the message works as it stands.
    assert "partitioning='hive').to_table()" in str(caught[0].message)
    table = ds.dataset(str(tmp_path), partitioning="hive").to_table()
    assert mixfold.KMeans(2).fit(table).feature_names_in_.tolist() == ["a", "b", "year", "month"]


def test_partition_folders_whose_files_hold_the_column_are_silent(tmp_path: Path) -> None:
    for value in (0, 1):
        _write(tmp_path / f"a={value}" / "part.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source(tmp_path).n_features == 2


def test_an_equals_sign_above_the_named_folder_is_no_partition(tmp_path: Path) -> None:
    _write(tmp_path / "run=3" / "rows.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source(tmp_path / "run=3").n_features == 2
