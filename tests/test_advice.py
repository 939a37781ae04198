"""What messages advise is done here as it stands, and works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import mixfold
from mixfold.cli import main

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (30, 2)), RNG.normal(6, 1, (30, 2))])
TABLE = {"a": X[:, 0], "b": X[:, 1], "word": ["x", "y"] * 30}


def refusal(given: Any, **settings: Any) -> str:
    """What a fit says of X."""
    with pytest.raises((ValueError, TypeError)) as caught:
        mixfold.GaussianMixture(2, random_state=0).fit(given, **settings)
    return str(caught.value)


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Exit code and what was written to the terminal, in one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    said = capsys.readouterr()
    text = re.sub(r"[│╭╮╰╯─]", " ", said.err + said.out)
    return int(end.value.code or 0), " ".join(text.split())


# ------------------------------------------------ in Python


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_a_column_of_words_is_left_out_of_a_table(make: Any) -> None:
    given = make(TABLE)
    advice = re.search(r"Leave it out: (X\.drop\(.*?\))\. ", refusal(given))
    assert advice is not None
    kept = eval(advice.group(1), {"X": given})
    assert list(mixfold.GaussianMixture(2).fit(kept).feature_names_in_) == ["a", "b"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_column_of_words_is_left_out_of_a_file(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"rows{suffix}"
    (parquet.write_table if suffix == ".parquet" else csv.write_csv)(pa.table(TABLE), file)
    advice = re.search(r"Leave it out: give fit the rows (\S+\(.*?\))\. ", refusal(str(file)))
    assert advice is not None
    text = advice.group(1).replace("[...]", "['a', 'b']")
    kept = eval(text, {"mixfold": mixfold})
    assert mixfold.GaussianMixture(2).fit(kept).n_features_in_ == 2


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_that_all_files_have_are_chosen(suffix: str, tmp_path: Path) -> None:
    write = parquet.write_table if suffix == ".parquet" else csv.write_csv
    write(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / f"one{suffix}")
    write(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 0]}), tmp_path / f"two{suffix}")
    advice = re.search(r"all files have: give fit the rows (\S+\(.*?\))\.", refusal(str(tmp_path)))
    assert advice is not None
    kept = eval(advice.group(1).replace("[...]", "['a', 'b']"), {"mixfold": mixfold})
    assert mixfold.GaussianMixture(2).fit(kept).n_features_in_ == 2
    assert sum(block.n_rows for block in kept.blocks()) == 120


def test_rows_and_columns_of_one_dimension_are_reshaped() -> None:
    said = refusal(X[:, 0])
    assert "X.reshape(-1, 1)" in said or "array.reshape(-1, 1)" in said
    mixfold.GaussianMixture(2).fit(X[:, 0].reshape(-1, 1))
    said = refusal(pd.Series(X[:, 0]))
    assert "DataFrame containing" in said and "a single column" in said
    mixfold.GaussianMixture(2).fit(pd.Series(X[:, 0], name="a").to_frame())


def test_complex_numbers_become_columns() -> None:
    assert "np.hstack([X.real, X.imag])" in refusal(X + 1j)
    Z = X + 1j * X[::-1]
    mixfold.GaussianMixture(2).fit(np.hstack([Z.real, Z.imag]))


def test_huge_entries_are_divided_or_missing() -> None:
    far = X * [1.0, 1e200]
    assert "Divide the column by a constant, or replace the entry by NaN" in refusal(far)
    mixfold.GaussianMixture(2).fit(far / [1.0, 1e200])
    one = X.copy()
    one[0, 0] = 1e200
    refusal(one)
    one[0, 0] = np.nan
    mixfold.GaussianMixture(2).fit(one)


def test_weights_are_divided() -> None:
    weight = np.full(60, 1e120)
    assert "divide all weights" in refusal(X, sample_weight=weight)
    mixfold.GaussianMixture(2).fit(X, sample_weight=weight / 1e120)


def test_a_lazy_frame_is_collected() -> None:
    lazy = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).lazy()
    assert "X.collect()" in refusal(lazy)
    mixfold.GaussianMixture(2).fit(lazy.collect())


def test_a_ragged_row_is_filled_with_nan() -> None:
    rows = X.tolist()
    rows[3] = [1.0]
    assert "Put NaN where an entry is missing" in refusal(rows)
    rows[3] = [1.0, np.nan]
    mixfold.GaussianMixture(2).fit(rows)


def test_a_client_of_dask_is_made() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="needs Dask: pip install 'mixfold[dask]'"
    )
    with pytest.raises(RuntimeError, match=r"Client\(\)"):
        mixfold.GaussianMixture(2, executor="dask").fit(X)
    with distributed.Client(n_workers=1, processes=False, dashboard_address=None):
        mixfold.GaussianMixture(2, executor="dask").fit(X)


# ------------------------------------------------ in a terminal


def advised_options(said: str) -> list[str]:
    """The words of ``--columns ...`` that a message tells to type."""
    advice = re.search(r"To use the others: (--columns .*?)\. Categories", said)
    assert advice is not None, said
    return shlex.split(advice.group(1))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_columns_that_a_terminal_advises_can_be_typed(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a column without a name, nor an empty one, nor the number of the row."""
    file, out = tmp_path / f"rows.{suffix}", tmp_path / "m.mixfold"
    table = {"": np.arange(60), "id": np.arange(60), **TABLE, "nothing": pa.nulls(60)}
    (parquet.write_table if suffix == "parquet" else csv.write_csv)(pa.table(table), file)
    code, said = run(capsys, "fit", file, "-k", 2, "--out", out)
    assert code == 1
    words = advised_options(said)
    assert words == ["--columns", "a,b"]
    assert run(capsys, "fit", file, "-k", 2, "--out", out, *words)[0] == 0


def test_a_name_of_rows_is_not_advised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.csv"
    csv.write_csv(pa.table({"id": np.arange(60), "word": TABLE["word"]}), file)
    code, said = run(capsys, "fit", file, "-k", 2, "--out", tmp_path / "m")
    assert code == 1 and "--columns id" not in said and "only names the rows" in said


def test_shared_columns_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1]}), data / "one.csv")
    csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 0]}), data / "two.csv")
    code, said = run(capsys, "fit", data, "-k", 2, "--out", tmp_path / "m")
    assert code == 1 and "--columns" in said and "columns=" not in said
    words = ["--columns", "a,b", "--out", tmp_path / "m"]
    assert run(capsys, "fit", data, "-k", 2, *words)[0] == 0


@pytest.mark.filterwarnings("default")
def test_events_are_read_where_a_terminal_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Thirty equal rows bring a component to the floor."""
    file, out, page = tmp_path / "rows.csv", tmp_path / "m.mixfold", tmp_path / "page.html"
    rows = np.vstack([X, np.full((30, 2), 20.0), np.full((30, 2), -20.0)])
    csv.write_csv(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), file)
    code, said = run(capsys, "fit", file, "-k", 4, "--seed", 0, "--out", out)
    assert code == 0 and "see events_" not in said
    assert "mixfold report lists them all" in said
    assert run(capsys, "report", out, file, "--out", page)[0] == 0
    text = page.read_text()
    events = mixfold.load(out).events_
    assert events and all(event.message.split("(")[0].strip() in text for event in events[:3])


def test_the_help_that_messages_name_exists(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, "fit", "--help")
    assert code == 0
    for option in ("--columns", "--set", "--model", "--target", "--encoding", "--scheduler"):
        assert option in said
