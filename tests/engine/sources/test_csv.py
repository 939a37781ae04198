"""CSV: types, late surprises, mistakes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold.engine.sources import open_source


def _rows(source: Any, max_rows: int | None = None) -> np.ndarray:
    return np.concatenate([block.X for block in source.blocks(max_rows)])


def test_csv_counts_its_rows_and_keeps_its_blocks(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2.5\n" * 40_000)
    source = open_source(path)
    assert source.n_samples is None
    next(source.blocks())
    assert source.n_samples is None  # not read to its end
    first = [block.n_rows for block in source.blocks()]
    assert source.n_samples == 40_000
    assert [block.n_rows for block in source.blocks()] == first == [16_384, 16_384, 7232]


def test_csv_values(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,flag,label,real\n1,true,0,0.5\n,false,,\nNA,true,2,1e3\n")
    (block,) = open_source(path, y="label").blocks()
    nan = np.nan
    np.testing.assert_array_equal(block.X, [[1, 1, 0.5], [nan, 0, nan], [nan, 1, 1000]])
    assert block.y is not None and block.y.tolist() == [0, -1, 2]


def test_integers_that_go_on_as_decimals_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,\n" * 400_000 + "2.5,7\n")  # over a megabyte of integers
    last = _rows(open_source(path))[-1]
    np.testing.assert_array_equal(last, [2.5, 7.0])


def test_text_that_comes_late_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("skip,a,b\n" + "t,1,2\n" * 400_000 + "t,1,many\n")
    source = open_source(path, columns=["a", "b"])
    text = r"x.csv: column 'b' holds 'many' in row 400000 .*numbers \(double\) before"
    with pytest.raises(ValueError, match=text):
        list(source.blocks())


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a,b\n1,2\n3,x\n", r"x.csv: column 'b' has type string, such as 'x' in row 1"),
        ("a,b\n1,2020-01-01\n", "column 'b' has type date32"),
        ("1.0,2.0\n3.0,4.0\n", "must hold the names of the columns, but .* 1.0, 2.0. Add a header"),
        ("a;b\n1;2\n", "x.csv is not separated by commas: its first line is 'a;b'"),
        ("a,b\n1,2\n3\n", "x.csv cannot be read as CSV: .*Row #3: Expected 2 columns, got 1"),
        ("", "x.csv cannot be read as CSV: Empty CSV file"),
        ("a,b\n", "x.csv has 0 sample"),
        ("a,a\n1,2\n", "column 'a' occurs twice"),
        ("a,b\n1,inf\n", "column 'b' row 0 of .*x.csv is inf"),
    ],
)
def test_bad_csv(content: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(ValueError, match=text):
        list(open_source(tmp_path / "x.csv").blocks())


def test_csv_files_that_disagree(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"2.csv and .*1.csv differ in column 'b'"):
        open_source(tmp_path)
    with pytest.raises(ValueError, match=r"2.csv has no column 'b'"):
        open_source(tmp_path, columns=["a", "b"])
    np.testing.assert_array_equal(_rows(open_source(tmp_path, columns=["a"])), [[1], [1]])
    (tmp_path / "2.csv").write_text("a,b\n1,tall\n")
    with pytest.raises(ValueError, match=r"2.csv: column 'b' has type string, such as 'tall'"):
        open_source(tmp_path)


def test_tabs_and_compression(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n")
    np.testing.assert_array_equal(_rows(open_source(tmp_path / "x.tsv")), [[1, 2]])
    with gzip.open(tmp_path / "y.csv.gz", "wt") as file:
        file.write("a,b\n3,4\n")
    np.testing.assert_array_equal(_rows(open_source(str(tmp_path / "y.csv.gz"))), [[3, 4]])


def test_a_real_csv(shared_data: Any) -> None:
    source = open_source(shared_data("old_faithful.csv"))
    assert _rows(source).shape == (source.n_samples, source.n_features)
    assert source.n_samples == 272
