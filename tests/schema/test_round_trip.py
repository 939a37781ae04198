"""A table with holes comes back whole: what was there as it stood, what is filled like the rest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import mixfold
from mixfold import Mixture, Schema
from mixfold.schema.readers import read_table

N = 40
START = date(2020, 2, 27)

# how a column of each kind is written, from whole numbers 0 to 9 in which all of them occur
WRITTEN: dict[str, Callable[[np.ndarray], list[Any]]] = {
    "number": lambda v: [f"{1.5 * x - 3.25:.2f}" for x in v],
    "number, comma": lambda v: [f"{1.5 * x - 3.25:.2f}".replace(".", ",") for x in v],
    "money": lambda v: [f"${1000 * x + 93_817:,}" for x in v],
    "percent": lambda v: [f"{x + 0.5:.1f} %" for x in v],
    "in parentheses": lambda v: [
        f"({1200 * x + 1:,})" if x % 2 else f"{1200 * x + 1:,}" for x in v
    ],
    "exponent": lambda v: [f"{x + 1}e{x}" for x in v],
    "footnote": lambda v: [f"{x + 0.25}{'*' if x == 3 else ''}" for x in v],
    "count": lambda v: [f"{x}" for x in v],
    "yes/no": lambda v: ["ja" if x % 2 else "nein" for x in v],
    "category": lambda v: [("Rome", "Oslo", "Köln, Süd", "Paris")[x % 4] for x in v],
    "spellings": lambda v: [("Rome", "rome", "Oslo", "OSLO", "Oslo")[x % 5] for x in v],
    "ordered": lambda v: [("low", "medium", "high")[x % 3] for x in v],
    "grades": lambda v: [f"{x % 5 + 1}" for x in v],
    "weekday": lambda v: [("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[x % 7] for x in v],
    "date": lambda v: [f"{START + timedelta(days=31 * int(x)):%d.%m.%Y}" for x in v],
    "american date": lambda v: [f"{START + timedelta(days=31 * int(x)):%m/%d/%y}" for x in v],
    "clock": lambda v: [f"{x + 3:02d}:30" for x in v],
    "zip": lambda v: [f"0{x % 5}139" for x in v],
}  # fmt: skip


def holed(values: list[Any], holes: np.ndarray) -> list[Any]:
    return [None if hole else value for value, hole in zip(values, holes, strict=True)]


@pytest.mark.parametrize("kind", WRITTEN)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_entries_stay_and_holes_are_filled_in_their_style(kind: str, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.concatenate([np.arange(10), rng.integers(0, 10, N - 10)]))
    written = WRITTEN[kind](values)
    holes = rng.random(N) < 0.2
    table = pa.table({"x": holed(written, holes), "id": [f"A{i}" for i in range(N)]})
    schema = Schema.infer(pa.table({"x": written}))
    numbers = schema.encode(table)
    assert np.array_equal(np.isnan(numbers[:, 0]), holes)
    whole = schema.encode({"x": written})
    back = schema.decode_rows(np.where(np.isnan(numbers), whole, numbers), table)
    assert back.column_names == ["x", "id"] and back.column("x").type == pa.string()
    found = back.column("x").to_pylist()
    assert [one for one, hole in zip(found, holes, strict=True) if not hole] == [
        one for one, hole in zip(written, holes, strict=True) if not hole
    ]
    np.testing.assert_allclose(schema.encode(back), whole, rtol=1e-9)
    again = Schema.from_text(schema.to_text())
    np.testing.assert_array_equal(again.encode(table), numbers)


TYPED: dict[str, Any] = {
    "Int64": lambda v: pd.array(3 * v, dtype="Int64"),
    "int8": lambda v: pd.array(v.astype("int8"), dtype="Int8"),
    "float": lambda v: v * 0.37,
    "boolean": lambda v: pd.array(v % 2 == 0, dtype="boolean"),
    "category": lambda v: pd.Categorical(np.array(["b", "a", "c"])[v % 3]),
    "ordered": lambda v: pd.Categorical(
        np.array(["S", "M", "L"])[v % 3], categories=["S", "M", "L"], ordered=True
    ),
    "datetime": lambda v: pd.Timestamp("2021-05-05") + pd.to_timedelta(v * 7, unit="h"),
    "string": lambda v: pd.array(np.array(["x", "y", "z"])[v % 3], dtype="string"),
}


@pytest.mark.parametrize("kind", TYPED)
def test_types_of_a_frame_stay(kind: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.permutation(np.concatenate([np.arange(10), rng.integers(0, 10, N - 10)]))
    whole = pd.DataFrame({"x": TYPED[kind](values)}, index=np.arange(N) + 7)
    holed = whole.copy()
    holes = rng.random(N) < 0.2
    holed.loc[holes, "x"] = None
    schema = Schema.infer(whole)
    numbers = schema.encode(whole)
    back = schema.decode_rows(numbers, holed)
    pd.testing.assert_frame_equal(back, whole)
    if kind not in ("boolean", "string"):
        as_polars = pl.from_pandas(holed.reset_index(drop=True))
        found = schema.decode_rows(numbers, as_polars)
        assert found.schema == as_polars.schema and found["x"].null_count() == 0


def _save(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".gz":
        frame.to_csv(path, index=False, sep=";", decimal=",")
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, date_format="iso")
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'mixfold[dev]'")
        pytest.importorskip("python_calamine", reason="needs it: pip install 'mixfold[tables]'")
        frame.to_excel(path, index=False)
    elif path.suffix == ".dta":
        frame.to_stata(path, write_index=False)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "parquet", "feather", "xlsx",
                                    "dta"])  # fmt: skip
def test_every_reader_goes_all_the_way(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n = 120
    g = rng.integers(0, 2, n)
    frame = pd.DataFrame({
        "id": [f"K-{i:03d}" for i in range(n)],
        "height": (170 + 14 * g + rng.normal(0, 4, n)).round(1),
        "city": np.where(rng.random(n) < 0.85, np.array(["Rome", "Oslo"])[g], "Bonn"),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n) + 100 * g, "D"),
    })  # fmt: skip
    frame.loc[::9, "height"] = np.nan
    if ending != "dta":  # which has no missing strings
        frame.loc[::11, "city"] = None
    path = tmp_path / f"t.{ending}"
    _save(frame, path)
    fitted = Mixture("auto", 2, random_state=0).fit(path)
    fitted.save(tmp_path / "m.mixfold")
    model = mixfold.load(tmp_path / "m.mixfold")
    labels = model.predict(path)
    assert max((labels == g).mean(), (labels != g).mean()) > 0.95
    complete, came = model.impute(path), read_table(path).table
    assert complete.column_names == came.column_names == list(frame.columns)
    assert complete.schema.types == came.schema.types
    assert complete.column("id").to_pylist() == frame["id"].tolist()
    for name in ("height", "city", "day"):
        pairs = zip(came.column(name).to_pylist(), complete.column(name).to_pylist(), strict=True)
        assert all(new == old for old, new in pairs if old not in (None, "") and old == old), name
        assert not set(complete.column(name).to_pylist()) & {None, ""}, name
    drawn, _ = model.sample(20, random_state=0)
    assert set(drawn.column("city").to_pylist()) <= {"Rome", "Oslo", "Bonn"}
    again = Schema.infer(drawn)
    assert again["height"].kind == "number" and again["day"].kind == "date"
