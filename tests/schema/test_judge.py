"""What columns are taken for: dirt of every kind, and why."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixfold.schema import Schema
from mixfold.schema.coding import SchemaWarning
from mixfold.schema.judge import Entries, judge
from mixfold.schema.words import find_scale

N = 120
RNG = np.random.default_rng(0)
DAYS = [date(2020, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 900, N)]
CITIES = ["Rome", "Paris", "Berlin", "Oslo"]


def of(values: Any, name: str = "v") -> Any:
    return Schema.infer({name: list(values)})[name]


def text_of(values: Any) -> list[str]:
    return [str(value) for value in values]


KINDS: list[tuple[str, str, Any]] = [
    ("number", "height", text_of(np.round(RNG.normal(170, 10, N), 1))),
    ("number", "price", [f"{x:,.2f} \u20ac" for x in RNG.normal(5000, 900, N)]),
    ("number", "age", text_of(RNG.integers(18, 90, N))),
    ("number", "built", text_of(RNG.integers(1900, 2020, N))),
    ("count", "visits", text_of(RNG.poisson(3, N))),
    ("count", "n_children", text_of(RNG.poisson(2, N))),
    ("yes/no", "smoker", RNG.choice(["yes", "no", "Yes ", "NO"], N)),
    ("yes/no", "sex", RNG.choice(["m", "f"], N)),
    ("yes/no", "flag", RNG.integers(0, 2, N).astype(bool)),
    ("yes/no", "coded", text_of(RNG.integers(1, 3, N))),
    ("category", "city", RNG.choice(CITIES, N)),
    ("category", "zip", [f"0{z}" for z in RNG.choice([4109, 4229, 1067], N)]),
    ("ordered", "rating", text_of(RNG.integers(1, 6, N))),
    ("ordered", "opinion", RNG.choice(["disagree", "neutral", "agree"], N)),
    ("ordered", "ages", RNG.choice(["18-24", "25-34", "35-64", "65+"], N)),
    ("cyclic", "weekday", RNG.choice(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], N)),
    ("cyclic", "hour", text_of(RNG.integers(0, 24, N))),
    ("cyclic", "wind_direction", text_of(np.round(RNG.uniform(0, 360, N), 1))),
    ("cyclic", "at", [f"{h:02d}:{m:02d}" for h, m in RNG.integers(0, 24, (N, 2))]),
    ("date", "joined", [d.isoformat() for d in DAYS]),
    ("date", "joined", [d.strftime("%d.%m.%Y") for d in DAYS]),
    ("date", "joined", [d.strftime("%b %d, %Y") for d in DAYS]),
    ("date", "seen", [f"{d.isoformat()} 12:{i % 60:02d}:07" for i, d in enumerate(DAYS)]),
    ("date", "typed", DAYS),
    ("identifier", "id", text_of(range(1000, 1000 + N))),
    ("identifier", "customerID", text_of(RNG.permutation(10**6)[:N])),
    ("identifier", "row", text_of(range(N))),
    ("identifier", "code", [f"AB-{i:05d}" for i in RNG.permutation(10**5)[:N]]),
    ("text", "name", ["".join(RNG.choice(list("abcdefg"), 6)) + " Smith" for _ in range(N)]),
    ("text", "remark", [f"said that {w} was nice" for w in RNG.permutation(N) + 10**6]),
    ("constant", "country", ["Italy"] * N),
    ("constant", "k", text_of(np.full(N, 7))),
    ("empty", "nothing", ["", "NA", None] * (N // 3)),
]  # fmt: skip


IDS = [f"{kind}-{name}-{i}" for i, (kind, name, _) in enumerate(KINDS)]


@pytest.mark.parametrize(("kind", "name", "values"), KINDS, ids=IDS)
def test_kinds(kind: str, name: str, values: Any) -> None:
    column = of(values, name)
    assert (column.kind, column.reason != "") == (kind, True), column
    assert column.used == (kind not in ("identifier", "text", "constant", "empty"))


def test_incomes_are_skewed_and_shares_are_shares(rng: np.random.Generator) -> None:
    assert of(text_of(np.round(np.exp(rng.normal(10, 0.8, N)), 2)), "income").scale == "log"
    assert of(text_of(rng.random(N)), "share").scale == "share"
    assert of(text_of(rng.normal(size=N)), "x").scale == "plain"


def test_levels_are_in_their_order() -> None:
    assert of(["high", "low", "medium", "low"] * 9).levels == ("low", "medium", "high")
    assert of(["65+", "<18", "18-64", "18-64"] * 9).levels == ("<18", "18-64", "65+")
    assert of(["Sun", "Mon", "Sat", "Wed"] * 9).levels == ("Mon", "Wed", "Sat", "Sun")
    assert of(["yes", "no"] * 9).levels == ("no", "yes")
    assert of(["male", "female"] * 9).levels == ("female", "male")


def test_spellings_of_a_level_are_one() -> None:
    column = of(["Rome"] * 20 + ["rome ", "ROME"] + ["Paris"] * 20 + ["Oslo"] * 20)
    assert column.levels == ("Oslo", "Paris", "Rome")
    assert "other spellings are read as one" in column.remarks[0]


@pytest.mark.parametrize("stand_in", [-999, 999, -9, 9999])
def test_numbers_that_stand_for_missing(stand_in: int, rng: np.random.Generator) -> None:
    ages = rng.integers(18, 60, N).astype(float)
    ages[:5] = stand_in
    if stand_in == -9:
        ages[5:] = 100 + ages[5:] / 100
    for values in (ages, text_of(ages.astype(int) if stand_in != -9 else ages)):
        schema = Schema.infer({"age": list(values)})
        assert "counts as missing" in schema["age"].remarks[0]
        assert np.isnan(schema.encode({"age": list(values)})[:5]).all()
        assert not np.isnan(schema.encode({"age": list(values)})[5:]).any()


def test_a_single_far_number_is_an_outlier_and_no_word(rng: np.random.Generator) -> None:
    ages = rng.integers(18, 60, N).astype(float)
    ages[0] = 999
    assert of(ages).missing == () and of(ages).high == 999


def test_words_among_numbers_are_missing_and_said(rng: np.random.Generator) -> None:
    values = text_of(np.round(rng.normal(size=N), 2))
    values[3], values[4], values[5] = "refused", "?", "see below"
    column = of(values)
    assert column.kind == "number"
    assert "1 entries are no numbers and count as missing: 'see below'" in column.remarks[0]
    schema = Schema.infer({"v": values})
    assert np.flatnonzero(np.isnan(schema.encode({"v": values})[:, 0])).tolist() == [3, 4, 5]


def test_ambiguous_dates_are_settled_by_the_column_and_said(rng: np.random.Generator) -> None:
    days = [f"{d}/{m}/2020" for d, m in rng.integers(1, 13, (60, 2))]
    assert "day before month; month before day would be possible" in of(days).remarks[0]
    days[0] = "3/25/2020"
    assert of(days).remarks == () and of(days).dates == "%m/%d/%Y"
    in_order = [f"{m}/{d}/2020" for m in range(1, 13) for d in (2, 9, 11)]
    assert "month before day, in which they are in order" in of(in_order).remarks[0]


def test_dates_that_mean_never() -> None:
    days = [d.isoformat() for d in DAYS]
    days[7] = days[8] = "9999-12-31"
    column = of(days)
    assert column.missing == ("9999-12-31",) and column.high < 30_000
    assert np.isnan(Schema.infer({"v": days}).encode({"v": days})[7:9]).all()


def test_copies_are_set_aside(rng: np.random.Generator) -> None:
    city = rng.choice(CITIES, N)
    x = rng.normal(size=N)
    schema = Schema.infer({
        "city": city, "code": [CITIES.index(c) + 1 for c in city], "x": x, "inches": 2.54 * x,
        "noise": x + 0.01 * rng.normal(size=N), "cube": x**3,
    })  # fmt: skip
    assert {c.name: c.copy_of for c in schema.set_aside} == {"code": "city", "inches": "x"}


def test_many_categories_are_set_aside_with_a_way_to_keep_them(rng: np.random.Generator) -> None:
    values = [f"town {i}" for i in rng.integers(0, 60, N)]
    schema = Schema.infer({"town": values})
    assert not schema["town"].used and "schema.set('town', kind='category')" in str(schema)
    assert len(schema.set("town", kind="category")["town"].levels) == len(set(values))


# ------------------------------------------------ tables with types


def test_types_of_pandas_polars_and_arrow_are_kept(rng: np.random.Generator) -> None:
    city = rng.choice(CITIES, N)
    frame = pd.DataFrame({
        "x": rng.normal(size=N), "n": rng.poisson(3, N), "city": pd.Categorical(city),
        "grade": pd.Categorical(rng.choice(list("abc"), N), list("cba"), ordered=True),
        "when": pd.to_datetime([d.isoformat() for d in DAYS]), "ok": rng.random(N) < 0.5,
    })  # fmt: skip
    wanted = ["number", "count", "category", "ordered", "date", "yes/no"]
    schema = Schema.infer(frame)
    assert [c.kind for c in schema] == wanted
    assert schema["grade"].levels == ("c", "b", "a")
    plain = frame.assign(city=frame.city.astype(str), grade=frame.grade.astype(str))
    found = Schema.infer(pl.from_pandas(plain))
    assert [c.kind for c in found] == ["number", "count", "category", "category", "date", "yes/no"]
    assert [c.kind for c in Schema.infer(pa.Table.from_pandas(frame))] == wanted


def test_an_array_has_columns_that_are_numbered(rng: np.random.Generator) -> None:
    schema = Schema.infer(np.column_stack([rng.normal(size=50), rng.poisson(3, 50)]))
    assert [(c.name, c.kind) for c in schema] == [("x0", "number"), ("x1", "count")]


def test_mixed_types_and_lists() -> None:
    mixed = pd.DataFrame({"m": [1, "2", 3.5, None, "x"] * 20, "l": [[1], [2], [3], None, [4]] * 20})
    schema = Schema.infer(mixed)
    assert not schema["l"].used and schema["m"].kind == "category"
    schema.set("m", kind="number")
    with pytest.warns(SchemaWarning, match="20 entries are none and count as missing: 'x'"):
        X = schema.encode(mixed)
    np.testing.assert_array_equal(X[:5, 0], [1, 2, 3.5, np.nan, np.nan])


# ------------------------------------------------ new rows


def test_new_rows_in_other_clothes() -> None:
    schema = Schema.infer({"a": text_of(np.arange(50) * 1.5), "c": ["u", "v", "w", "u", "v"] * 10})
    X = schema.encode(pd.DataFrame({"c": ["W", "u"], "z": [0, 0], "a": [3, 4.5]}))
    np.testing.assert_array_equal(X, [[3, 2], [4.5, 0]])
    with pytest.warns(
        SchemaWarning, match="column 'c' has values that it did not have before: 'q'"
    ):
        X = schema.encode({"c": ["q", "u"], "a": ["3", "4"]})
    assert np.isnan(X[0, 1])
    with pytest.raises(ValueError, match="the table has no column 'c'"):
        schema.encode({"a": [1]})
    with pytest.raises(ValueError, match="column 'a' should hold numbers, but most of its entries"):
        schema.encode({"a": ["x", "y"], "c": ["u", "u"]})
    with pytest.warns(SchemaWarning, match="1 entries are none and count as missing: 'x'"):
        schema.encode({"a": ["x", "1", "2"], "c": ["u", "u", "u"]})


def test_entries_that_a_logarithm_cannot_take(rng: np.random.Generator) -> None:
    incomes = np.exp(rng.normal(10, 0.9, N))
    schema = Schema.infer({"income": incomes})
    with pytest.raises(
        ValueError, match=r"row 1 .* holds 0; use schema.set\('income', scale='plain'"
    ):
        schema.encode({"income": [5.0, 0.0]})
    schema.set("income", scale="plain")
    np.testing.assert_array_equal(schema.encode({"income": [5.0, 0.0]}), [[5.0], [0.0]])


def test_the_jacobian_is_that_of_differences(rng: np.random.Generator) -> None:
    incomes = np.exp(rng.normal(3, 0.9, N))
    schema = Schema.infer({"income": incomes, "x": rng.normal(size=N)})
    assert schema["income"].scale == "log"
    rows = {"income": incomes[:5], "x": np.arange(5.0)}
    h = 1e-6
    more = {"income": incomes[:5] * (1 + h), "x": np.arange(5.0)}
    slope = (schema.encode(more) - schema.encode(rows))[:, 0] / (incomes[:5] * h)
    np.testing.assert_allclose(schema.log_jacobian(schema.encode(rows)), np.log(slope), atol=1e-5)


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        (
            ["very accurate", "slightly inaccurate", "very inaccurate", "slightly accurate"],
            ["very inaccurate", "slightly inaccurate", "slightly accurate", "very accurate"],
        ),
        (
            ["agree", "strongly disagree", "neutral", "disagree", "strongly agree"],
            ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"],
        ),
        (["very satisfied", "satisfied", "somewhat satisfied"],
         ["somewhat satisfied", "satisfied", "very satisfied"]),
        (["über 64", "unter 30", "30-49"], ["unter 30", "30-49", "über 64"]),
        (["gold", "none", "silver"], ["none", "silver", "gold"]),
        (["very red", "blue", "slightly green"], None),
        (["very red", "red", "blue"], None),
    ],
)  # fmt: skip
def test_grades_are_put_in_their_order(levels: list[str], wanted: list[str] | None) -> None:
    assert find_scale(levels) == wanted


def test_a_word_that_comes_again_among_numbers_is_missing() -> None:
    values = [f"{i * 1.7:.1f}" for i in range(40)] + ["never"] * 12
    column = judge(Entries("days", values, "text"))
    assert column.kind == "number" and column.missing == ("never",)
    assert column.remarks[0] == "12 entries are no numbers and count as missing: 'never'"
    names = [*values[:12], *[f"word {i}" for i in range(30)]]
    assert judge(Entries("days", names, "text")).kind == "text"


def test_categories_of_a_table_have_the_kind_that_their_words_say() -> None:
    def of(levels: tuple[str, ...], ordered: bool = False) -> str:
        return judge(Entries("x", list(levels) * 5, "text", levels, ordered)).kind

    assert of(("male", "female")) == "yes/no" and of(("low", "high", "medium")) == "ordered"
    assert of(("a", "b", "c")) == "category" and of(("a", "b", "c"), True) == "ordered"
    assert of(("a",)) == "constant"
