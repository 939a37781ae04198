"""Output tables: complete under their name, or not there at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet

from mixfold.cli.tables import TableWriter, check_output


def read(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "T.CSV"])
def test_parts_become_one_table_in_order(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    values = np.linspace(0.1, 1, 7)
    with TableWriter(path) as writer:
        for part in (slice(0, 3), slice(3, 4), slice(4, 7)):
            writer.write({"a b": values[part], "k": np.arange(7)[part]})
        assert not path.exists()
    table = read(path)
    assert table.column_names == ["a b", "k"]
    np.testing.assert_array_equal(table["a b"].to_numpy(), values)
    np.testing.assert_array_equal(table["k"].to_numpy(), np.arange(7))
    assert writer.rows == 7
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, name: str, error: type[BaseException]
) -> None:
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(error), TableWriter(path) as writer:
        writer.write({"a": np.arange(3)})
        raise error("in the middle")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_a_part_of_another_type_fails_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="schema"), TableWriter(tmp_path / "t.parquet") as writer:
        writer.write({"a": np.arange(3)})
        writer.write({"a": np.array(["x"])})
    assert os.listdir(tmp_path) == []


def test_no_rows_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No rows"), TableWriter(tmp_path / "t.csv"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write({"a": np.arange(3)})
    modes = [(tmp_path / name).stat().st_mode for name in ("plain", "t.csv")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.xlsx", r"must end in \.parquet or \.csv"),
        ("t", r"must end in \.parquet or \.csv"),
        ("nowhere/t.csv", "does not exist; create it"),
        ("folder.csv", "is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_a_usage_error(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(typer.BadParameter, match=message):
        check_output(tmp_path / name)
