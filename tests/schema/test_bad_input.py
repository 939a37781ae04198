"""Tables that are not as they should be: an answer that says where, or what was made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import Mixture, Schema
from mixfold.schema.readers import read_table

N = 60
HEAD = "age,city,score"
ROWS = [f"{20 + i % 40},{('Rome', 'Oslo', 'Bonn')[i % 3]},{i * 1.5}" for i in range(N)]


@pytest.fixture
def save(tmp_path: Path) -> Any:
    def write(lines: list[str] | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(lines if isinstance(lines, bytes) else "\n".join(lines).encode())
        return path

    return write


REFUSED = [
    ([HEAD, *ROWS[:30], "1,2", *ROWS[30:], "4,5,6,7"], "t.csv",
     r"2 of 62 rows do not have 3 entries; the first, near line 32, has 2: '1,2'. Correct them"),
    ([HEAD, *ROWS[:9], '3,"Rome,4', *ROWS[9:]], "t.csv", "has 2: .*Correct them: text that holds"),
    ("\n".join([HEAD, *ROWS]).replace("Rome", "Ro\0me").encode(), "t.csv", "it holds NUL bytes"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "t.csv", "is no text"),
    ([""], "t.csv", "is empty: it has no line with names of columns"),
    (["<html><body><table>", "<tr><td>1</td></tr>", "</table>"], "t.csv", "is a page .* browser"),
    (b"PAR1 and no more", "t.parquet", "cannot be read as a file of Parquet: .*save it again"),
    ([b'{"a": 1}'.decode(), '{"a":'], "t.jsonl", "is no JSON: "),
    (["[1, 2]"], "t.json", "each row must be an object"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "name", "message"), REFUSED)
def test_what_cannot_be_read_says_why(lines: Any, name: str, message: str, save: Any) -> None:
    with pytest.raises(ValueError, match=message):
        Schema.infer(save(lines, name))


def test_a_broken_workbook(save: Any) -> None:
    pytest.importorskip("python_calamine", reason="needs it: pip install 'mixfold[tables]'")
    with pytest.raises(ValueError, match=r"cannot be read as a file of .xlsx: .*save it again"):
        Schema.infer(save(b"PK\x03\x04 and no more", "t.xlsx"))


def test_headers_and_totals_are_left_out_and_said(save: Any) -> None:
    schema = Schema.infer(save([HEAD, "years,name,points", *ROWS, "Total,,5000"]))
    assert schema.notes == (
        "the line below the names (years, name, points) is left out: it holds no entries",
        "the last row begins with 'Total' and is left out",
    )
    assert schema.n_rows == N and schema["age"].kind == "number"


def test_two_columns_of_one_name(save: Any) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal():.2f},{rng.normal():.2f}" for _ in range(N)]
    schema = Schema.infer(save(["a,a", *rows]))
    assert schema.names == ["a", "a (2)"]
    assert schema.notes == ("the name 'a' belongs to several columns: one is called 'a (2)'",)


def test_an_encoding_that_changes_midway(save: Any) -> None:
    text = "\n".join([HEAD, *ROWS]).encode() + "\n30,Köln,4\n".encode("latin-1") * 5
    schema = Schema.infer(save(text))
    assert "the file is read as cp1252" in schema.notes and "Köln" in schema["city"].levels


@pytest.mark.parametrize("n", [0, 1])
def test_no_rows_and_one(n: int, save: Any) -> None:
    path = save([HEAD, *ROWS[:n]])
    schema = Schema.infer(path)
    assert len(schema) == 3 and not schema.used and schema.n_rows == n
    with pytest.raises(ValueError, match="no column that a model can see: 'age' is"):
        Mixture("auto").fit(path)


def test_a_column_that_is_nearly_empty_is_said(save: Any) -> None:
    rows = [f"{i * 0.7:.2f},{'3.5' if i in (7, 900) else ''}" for i in range(2000)]
    column = Schema.infer(save(["a,b", *rows]))["b"]
    assert column.kind == "constant" and not column.used


def test_very_many_categories_and_columns(save: Any) -> None:
    rng = np.random.default_rng(0)
    rows = [f"user{rng.integers(100_000)},{i * 0.1:.1f}" for i in range(30_000)]
    schema = Schema.infer(save(["u,x", *rows]))
    assert schema["u"].kind == "text" and "rows each" in schema["u"].reason
    many = rng.normal(size=(30, 600)).round(2)
    many[:, 599] = 3 * many[:, 17] + 1  # a copy among them, in another unit
    lines = [",".join(map(str, row)) for row in many]
    found = Schema.infer(save([",".join(f"c{j}" for j in range(600)), *lines]))
    assert found["c599"].copy_of == "c17" and len(found.used) == 599


def test_dates_at_the_ends_of_time_and_numbers_beyond_floats(save: Any) -> None:
    ends = ("0001-01-01", "9999-12-31")
    days = [ends[i % 2] if i < 6 else f"20{10 + i % 10}-03-{1 + i % 28:02d}" for i in range(N)]
    big = [2**53 + 1 + 3 * i for i in range(N)]
    rows = [f"{day},{number}" for day, number in zip(days, big, strict=True)]
    path = save(["d,code", *rows])
    schema = Schema.infer(path)
    assert set(schema["d"].missing) == set(ends)
    assert schema["code"].kind == "identifier"
    assert read_table(path).column("code").to_pylist()[0] == str(2**53 + 1)  # digit for digit


def test_entries_with_line_breaks(save: Any) -> None:
    schema = Schema.infer(save([HEAD, *[row.replace("Rome", '"Ro\nme"') for row in ROWS]]))
    assert schema.n_rows == N and schema["city"].levels == ("Bonn", "Oslo", "Ro\nme")


def test_mixed_types_in_one_column_are_set_aside(save: Any) -> None:
    mixed = [(f"{i * 1.1:.1f}", "red", f"2020-01-{1 + i % 28:02d}")[i % 3] for i in range(N)]
    column = Schema.infer(save(["b,x", *[f"{one},{i % 7}" for i, one in enumerate(mixed)]]))["b"]
    assert column.kind == "text" and "to model it anyway" in column.remarks[0]
