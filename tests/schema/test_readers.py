"""Files as people send them: dialects, encodings, headers, footers, and what cannot be read."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from mixfold.schema import Schema
from mixfold.schema.numbers import find_format
from mixfold.schema.readers import read_table

ROWS = [("Müller", "1,5", "3"), ("Ångström", "2,25", "4"), ("O'Hara; Jr", "-0,5", "5")] * 4


def written(delimiter: str = ";", header: str = "name;größe;n", end: str = "\n") -> str:
    def quoted(cell: str) -> str:
        return f'"{cell}"' if delimiter in cell else cell

    lines = [header.replace(";", delimiter)]
    lines += [delimiter.join(quoted(cell) for cell in row) for row in ROWS]
    return end.join(lines) + end


def columns(path: Path) -> dict[str, list[Any]]:
    return read_table(path).table.to_pydict()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_and_encodings(delimiter: str, encoding: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = written(delimiter, end=end)
    path.write_bytes(text.encode(encoding))
    found = columns(path)
    assert list(found) == ["name", "größe", "n"]
    assert [*zip(*found.values(), strict=True)] == ROWS
    style = find_format(found["größe"])
    assert style is not None
    assert [style.format.parse(text) for text in found["größe"][:3]] == [1.5, 2.25, -0.5]


def test_packed_files(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "t.csv.gz", "wt", encoding="utf-8") as file:
        file.write(written())
    assert columns(tmp_path / "t.csv.gz")["n"] == [row[2] for row in ROWS]


@pytest.mark.parametrize(
    ("above", "note"),
    [
        ("sep=;\n", None),
        ("Survey of 2021\n\n", "2 lines above the names"),
        ("# made by hand\n# twice\n", "2 lines above the names"),
    ],
)
def test_lines_above_the_names(above: str, note: str | None, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(above + written(), encoding="utf-8")
    found = read_table(tmp_path / "t.csv")
    assert found.names == ["name", "größe", "n"] and found.n_rows == len(ROWS)
    assert (not found.notes) if note is None else any(note in one for one in found.notes)


def test_totals_units_and_footers(tmp_path: Path) -> None:
    table = "a,b,c\n[cm],[kg],\n" + "".join(f"{i},{i * 2},x{i}\n" for i in range(9))
    (tmp_path / "t.csv").write_text(table + "Total,72,\n")
    found = read_table(tmp_path / "t.csv")
    assert found.table.column("a").to_pylist() == [str(i) for i in range(9)]
    said = " ".join(found.notes)
    assert "([cm], [kg]) is left out" in said and "begins with 'Total' and is left out" in said
    (tmp_path / "t.csv").write_text(table + "Source: somebody\n")
    assert "1 lines without columns are left out: 'Source" in " ".join(
        read_table(tmp_path / "t.csv").notes
    )


def test_names_that_are_none_or_occur_twice(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,,a\n1,2,x\n3,4,y\n")
    found = read_table(tmp_path / "t.csv")
    assert found.names == ["a", "column 2", "a (2)"]
    assert "is called 'column 2' and 1 others" in found.notes[0]
    (tmp_path / "t.csv").write_text("1.5,2\n3,4\n5,6\n")
    found = read_table(tmp_path / "t.csv")
    assert found.names == ["column 1", "column 2"] and found.n_rows == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n1,2,3\n4,5\n", "1 of 3 rows .* 2 entries; the first, near line 3, has 3"),
        (b"\x00\x01\x02" * 100, "is no text"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


def test_no_rows_and_one_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    assert [c.kind for c in Schema.infer(tmp_path / "t.csv")] == ["empty", "empty"]
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    assert [c.kind for c in Schema.infer(tmp_path / "t.csv")] == ["constant", "constant"]


def test_text_with_newlines_and_an_encoding_that_changes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n"two\nlines",1\n"x",2\n')
    assert columns(tmp_path / "t.csv")["a"] == ["two\nlines", "x"]
    long = "a,b\n" + "é,1\n" * 100_000
    (tmp_path / "t.csv").write_bytes(long.encode("utf-8") + "ü,2\n".encode("cp1252"))
    found = read_table(tmp_path / "t.csv")
    assert found.n_rows == 100_001 and "read as cp1252" in found.notes[0]


def test_other_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None], "c": [True, False, True]})
    table = pa.Table.from_pandas(frame)
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    pq.write_table(table, tmp_path / "noname")
    rows = frame.to_dict("records")
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "t.json").write_text(json.dumps(rows))
    for name in ("t.parquet", "t.feather", "noname", "t.jsonl", "t.json"):
        found = columns(tmp_path / name)
        assert found["a"] == [1, 2, 3] and found["c"] == [True, False, True], name
        assert read_table(tmp_path / name, 2).n_rows == 2, name
    assert read_table(pl.from_pandas(frame)).table.column("a").to_pylist() == [1, 2, 3]
    assert read_table(pl.from_pandas(frame).lazy()).n_rows == 3
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(ValueError, match="is no JSON"):
        read_table(tmp_path / "bad.jsonl")


def test_spreadsheets(tmp_path: Path) -> None:
    pytest.importorskip(
        "python_calamine", reason="needs python-calamine: pip install 'mixfold[tables]'"
    )
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'mixfold[dev]'")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Sales by town"])
    sheet.append([])
    sheet.append(["town", "sales", "since"])
    for i in range(6):
        sheet.append([f"t{i % 3}", 10.5 * i**2, pd.Timestamp(2020, 1, 1 + i).to_pydatetime()])
    sheet.append(["Total", 577.5, None])
    book.create_sheet("notes").append(["nothing"])
    book.save(tmp_path / "t.xlsx")
    found = read_table(tmp_path / "t.xlsx")
    assert found.names == ["town", "sales", "since"] and found.n_rows == 6
    assert "Total" in " ".join(found.notes) and "read is the sheet" in found.notes[0]
    assert [c.kind for c in Schema.infer(tmp_path / "t.xlsx")][1:] == ["number", "date"]


def test_statistics_files(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat", reason="needs pyreadstat: pip install 'mixfold[tables]'")
    frame = pd.DataFrame({"a": np.arange(5.0), "b": list("uvwuv")})
    frame.to_stata(tmp_path / "t.dta", write_index=False)
    assert columns(tmp_path / "t.dta")["b"] == list("uvwuv")


def test_what_is_needed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(ImportError, match=r"pip install 'mixfold\[tables\]'"):
        read_table(tmp_path / "t.xlsx")


def test_encodings_of_marks_are_those_of_codecs() -> None:
    assert codecs.BOM_UTF16_LE.decode("utf-16") == ""


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    relation = duckdb.sql("select 1 as a, 'x' as b")
    assert read_table(relation).table.to_pydict() == {"a": [1], "b": ["x"]}


def test_midnights_of_a_workbook_are_moments_like_the_others(tmp_path: Path) -> None:
    from datetime import datetime, timedelta

    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'mixfold[dev]'")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["seen", "x"])
    for i in range(60):  # every fourth has no clock
        sheet.append([datetime(2020, 1, 1) + timedelta(hours=6 * i), i % 7])
    book.save(tmp_path / "t.xlsx")
    schema = Schema.infer(tmp_path / "t.xlsx")
    assert schema["seen"].kind == "date" and not schema["seen"].remarks
    assert np.isfinite(schema.encode(tmp_path / "t.xlsx")).all()


def test_value_labels_are_in_the_order_of_their_codes(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip(
        "pyreadstat", reason="needs pyreadstat: pip install 'mixfold[tables]'"
    )
    frame = pd.DataFrame(
        {"mood": [1.0, 2.0, 3.0] * 10, "place": [1.0] * 5 + [2.0, 3.0] * 10 + [1.0] * 5}
    )
    labels = {"mood": {1.0: "zz", 2.0: "mm", 3.0: "aa"}, "place": {1.0: "z", 2.0: "m", 3.0: "a"}}
    pyreadstat.write_sav(
        frame, str(tmp_path / "t.sav"), variable_value_labels=labels,
        variable_measure={"mood": "ordinal", "place": "nominal"},
    )  # fmt: skip
    schema = Schema.infer(tmp_path / "t.sav")
    assert schema["mood"].kind == "ordered" and schema["mood"].levels == ("zz", "mm", "aa")
    assert schema["place"].kind == "category"
