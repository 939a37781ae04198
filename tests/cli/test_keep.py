"""``--keep``: columns of the table that stand beside the answers, as they were written."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixfold.engine.sources import passthrough_columns

from .conftest import Outcome, read_table

Run = Callable[..., Outcome]
HEIGHTS = ["1.5", "", "1.7", "4.0", "4.1", "", "4.4", "1.4"]
IDS = ["007", "008", "x,9", "010", "", "012", '0"13', "014"]
DAYS = [f"2020-01-{d:02}" for d in range(1, 9)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "height", "day", "weight"])
        weights = ["60", "61", "", "90", "91", "92", "93", "64"]
        lines.writerows(zip(IDS, HEIGHTS, DAYS, weights, strict=True))
    return path


@pytest.fixture
def model(run: Run, table: Path, tmp_path: Path) -> Path:
    out = tmp_path / "m.mixfold"
    words = ("fit", table, "--columns", "height,weight", "-m", "ppca", "-k", 1, "--out", out, "-q")
    outcome = run(*words)
    assert outcome.code == 0, outcome.err
    return out


def kept(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("command", "answers"),
    [("impute", ["height", "weight"]), ("score", ["log_density", "oddness"]),
     ("transform", ["factor_1"]), ("reconstruct", ["height", "weight"])],
)  # fmt: skip
def test_kept_columns_stand_before_the_answers(
    run: Run, table: Path, model: Path, tmp_path: Path, command: str, answers: list[str]
) -> None:
    out = tmp_path / "out.csv"
    outcome = run(command, model, table, "--keep", "day, id", "--out", out)
    assert outcome.code == 0, outcome.err
    lines = kept(out)
    assert list(lines[0]) == ["day", "id", *answers]
    assert [line["id"] for line in lines] == IDS  # text, to the letter
    assert [line["day"] for line in lines] == DAYS


def test_rows_of_several_files_stay_together(
    run: Run, table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces and batches of other sizes than the files."""
    monkeypatch.setattr("mixfold.cli.data._PIECE", 6)
    monkeypatch.setattr("mixfold.cli.data._LEAST_ROWS", 3)
    folder = tmp_path / "parts"
    folder.mkdir()
    heights = [float(h) if h else None for h in HEIGHTS]
    for part, rows in enumerate([slice(0, 5), slice(5, 8)]):
        columns = {"weight": np.arange(8.0)[rows], "height": heights[rows], "n": np.arange(8)[rows]}
        pq.write_table(pa.table(columns), folder / f"{part}.parquet", row_group_size=2)
    out = tmp_path / "out.parquet"
    outcome = run("impute", model, folder, "--keep", "n", "--out", out)
    assert outcome.code == 0, outcome.err
    found = read_table(out)
    np.testing.assert_array_equal(found["n"], np.arange(8))
    np.testing.assert_array_equal(found["weight"], np.arange(8.0))


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ("name", ("no column 'name' to keep", "id, height, day, weight")),
        ("id,id", ("--keep", "more than once: id")),
        ("weight", ("--keep", "'weight' is written anyway")),
    ],
)
def test_what_cannot_be_kept(
    run: Run, table: Path, model: Path, tmp_path: Path, keep: str, words: tuple[str, ...]
) -> None:
    out = tmp_path / "out.csv"
    outcome = run("impute", model, table, "--keep", keep, "--out", out)
    assert outcome.code != 0
    assert not out.exists()
    for word in words:
        assert word in " ".join(outcome.err.split()), outcome.err


def test_arrays_and_texts_have_nothing_to_keep(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    with pytest.raises(ValueError, match="no column names"):
        passthrough_columns.Beside(tmp_path / "X.npy", ["id"])
    (tmp_path / "texts.txt").write_text("red blue red\nblue green\nred red green\n" * 5)
    out = tmp_path / "topics.mixfold"
    fitted = run("fit", tmp_path / "texts.txt", "-m", "plsi", "-k", 2, "--out", out, "-q")
    assert fitted.code == 0, fitted.err
    outcome = run("transform", out, tmp_path / "texts.txt", "--keep", "id", "--out",
                  tmp_path / "t.csv")  # fmt: skip
    assert outcome.code == 2 and "holds documents" in " ".join(outcome.err.split())
