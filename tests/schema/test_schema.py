"""A schema is kept, changed, and gives back what came in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold.schema import Schema
from tests.schema.test_judge import CITIES, DAYS, IDS, KINDS, RNG, N

TABLE: dict[str, Any] = {
    "id": list(range(N)),
    "height": [f"{x:.1f}".replace(".", ",") for x in RNG.normal(170, 10, N)],
    "price": [f"${x:,.2f}" for x in RNG.normal(5000, 900, N)],
    "visits": RNG.poisson(3, N),
    "smoker": RNG.choice(["yes", "no"], N),
    "city": RNG.choice(CITIES, N),
    "rating": RNG.integers(1, 6, N),
    "joined": [d.strftime("%d.%m.%Y") for d in DAYS],
    "income": np.round(np.exp(RNG.normal(10, 0.8, N)), 2),
    "day": RNG.choice(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], N),
}


def test_entries_come_back_as_they_came_in() -> None:
    schema = Schema.infer(TABLE)
    assert [c.name for c in schema.set_aside] == ["id"]
    back = schema.decode(schema.encode(TABLE)).to_pydict()
    for name in schema.names:
        assert back[name] == pytest.approx(list(TABLE[name])), name


@pytest.mark.parametrize(("kind", "name", "values"), KINDS, ids=IDS)
def test_every_kind_comes_back(kind: str, name: str, values: Any) -> None:
    schema = Schema.infer({name: list(values)})
    if not schema.used:
        return
    once = schema.decode(schema.encode({name: list(values)}))
    again = schema.encode(once)
    np.testing.assert_allclose(again, schema.encode({name: list(values)}), atol=1e-9)
    missing = schema.decode(np.full((2, 1), np.nan)).to_pydict()[name]
    assert missing == [None, None]


def test_a_schema_is_kept_in_a_file(tmp_path: Path) -> None:
    schema = Schema.infer(TABLE).set("rating", kind="category")
    schema.save(tmp_path / "s.json")
    back = Schema.load(tmp_path / "s.json")
    assert back == schema and str(back) == str(schema)
    np.testing.assert_array_equal(back.encode(TABLE), schema.encode(TABLE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", 'begins with "format"'),
        ("nothing", "is no schema"),
        ('{"format": "mixfold-schema/2", "columns": [{"name": "a", "kind": "odd", "used": true}]}',
         "unknown kind 'odd'"),
        ('{"format": "mixfold-schema/2", "columns": [{"name": "a", "kind": "text", "used": true}]}',
         "kind 'text' is for none"),
        ('{"format": "mixfold-schema/2", "columns": [{"nam": "a"}]}', "unknown entry 'nam'"),
    ],
)  # fmt: skip
def test_files_that_are_none(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Schema.load(tmp_path / "s.json")


def test_what_is_said_of_a_column_is_done() -> None:
    schema = Schema.infer(TABLE)
    schema.set("city", kind="ordered", order=["Oslo", "Berlin", "Paris", "Rome"])
    X = schema.encode({**TABLE, "city": ["Oslo", "Rome"] * (N // 2)})
    assert X[:2, schema.names.index("city")].tolist() == [0, 3]
    assert schema.set("visits", used=False).names.count("visits") == 0
    schema.set("rating", kind="number")
    assert schema.encode(TABLE)[:, schema.names.index("rating")].max() == 5
    schema.set("smoker", missing="no")
    assert not schema["smoker"].used  # always yes
    schema.set("id", kind="number")
    assert "id" in schema.names


def test_what_cannot_be_is_refused() -> None:
    schema = Schema.infer(TABLE)
    with pytest.raises(ValueError, match="the table has no column 'x'; it has 'id'"):
        schema.set("x", kind="number")
    with pytest.raises(ValueError, match="kind must be one of number, count"):
        schema.set("city", kind="numeric")
    with pytest.raises(ValueError, match="leaves out 'Berlin'"):
        schema.set("city", kind="ordered", order=["Rome", "Paris", "Oslo"])
    with pytest.raises(ValueError, match="has 4 values; kind='yes/no' needs two"):
        schema.set("city", kind="yes/no")
    with pytest.raises(ValueError, match="holds entries that are no numbers"):
        schema.set("city", kind="number")
    with pytest.raises(ValueError, match="which no model takes"):
        schema.set("id", used=True)
    with pytest.raises(ValueError, match="numbers must have 9 columns"):
        schema.decode(np.zeros((2, 3)))


def test_families_are_those_of_the_kinds() -> None:
    found = Schema.infer(TABLE).families()
    assert found == {
        "full": ["height", "price", "joined", "income"], "negative-binomial": ["visits"],
        "bernoulli": ["smoker"], "categorical": ["city", "rating", "day"],
    }  # fmt: skip


def test_it_can_be_read() -> None:
    said = str(Schema.infer(TABLE))
    assert "height  number" in said and "positive number, skewed" in said
    assert "id      identifier, set aside" in said
    assert repr(Schema.infer(TABLE)) == "<Schema of 10 columns, 9 used>"


def test_drawn_numbers_become_entries_that_could_be() -> None:
    schema = Schema.infer(TABLE)
    rows = np.array([[171.234, 5000.126, -0.7, 0.4, 7.2, -3.0, 18000.6, 9.2, 6.4]])
    drawn = schema.decode(rows).to_pydict()
    assert drawn["height"] == ["171,2"] and drawn["price"] == ["$5,000.13"]
    assert drawn["visits"] == [0] and drawn["city"] == ["Rome"] and drawn["rating"] == [1]
    assert drawn["joined"] == ["15.04.2019"] and drawn["day"] == ["Sun"]
    raw = schema.decode(rows, round=False).to_pydict()
    assert raw["visits"] == [pytest.approx(-0.7)]


def test_indicators_are_numbers_whose_distances_mean_something() -> None:
    schema = Schema.infer(TABLE)
    holed = {**TABLE, "city": [None, *list(TABLE["city"])[1:]], "day": [None, *TABLE["day"][1:]]}
    found = schema.indicators(holed).to_pandas()
    cities = schema["city"].levels
    ones = found[[f"city = {level}" for level in cities[1:]]]
    assert ones.iloc[0].isna().all() and (ones[1:].sum(axis=1) <= 1).all()
    for level in cities[1:]:
        assert (ones[f"city = {level}"][1:] == (np.array(TABLE["city"])[1:] == level)).all()
    assert (found["day (cos)"][1:] ** 2 + found["day (sin)"][1:] ** 2).sub(1).abs().max() < 1e-12
    assert np.isnan(found["day (sin)"][0])
    np.testing.assert_array_equal(found["visits"], TABLE["visits"])
    assert not schema.indicators(TABLE).to_pandas().isna().any().any()


def test_a_simpler_covariance_is_part_of_the_schema(tmp_path: Any) -> None:
    schema = Schema.infer(TABLE)
    diag = schema.with_covariance("diag")
    assert diag.families()["diag"] == schema.families()["full"] and diag != schema
    diag.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == diag and "diag" in repr(diag)
    assert f"{diag}" == "diag covariances"
    with pytest.raises(ValueError, match="covariance must be one of full, diag"):
        schema.with_covariance("none")
