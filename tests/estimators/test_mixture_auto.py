"""Mixtures of tables as people write them: words in, words out, densities in their units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import Mixture, MixtureSearch, Schema
from mixfold.engine.sources import open_source
from mixfold.schema.coding import SchemaWarning

N = 300


def table(missing: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    g = rng.integers(0, 2, N)
    frame = pd.DataFrame({
        "id": np.arange(N) + 100,
        "age": rng.normal(40 + 12 * g, 8).round(),
        "income": np.exp(rng.normal(10 + g, 0.6)).round(2),
        "visits": rng.poisson(2 + 4 * g),
        "smoker": np.where(rng.random(N) < 0.2 + 0.5 * g, "yes", "no"),
        "city": np.array(["Rome", "Paris", "Oslo"])[np.where(rng.random(N) < 0.7, g, 2)],
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
    })  # fmt: skip
    for name in frame.columns[1:]:
        hidden = rng.random(N) < missing
        if hidden.any():
            frame[name] = frame[name].astype(object).where(~hidden, None)
    return frame, g


def auto(**settings: Any) -> Mixture:
    return Mixture("auto", 2, random_state=0, **settings)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_planted_groups_are_found(missing: float, tmp_path: Path) -> None:
    frame, g = table(missing)
    fitted = auto().fit(frame)
    assert adjusted_rand_score(g, fitted.predict(frame)) > 0.85
    frame.to_csv(tmp_path / "t.csv", index=False)
    again = auto().fit(tmp_path / "t.csv")
    assert adjusted_rand_score(again.predict(tmp_path / "t.csv"), fitted.predict(frame)) > 0.98
    assert [c.name for c in fitted.schema_.set_aside] == ["id"]


def test_the_density_is_one_of_the_table() -> None:
    """Over incomes, whose logarithms the model sees, the marginal density integrates to one."""
    frame, _ = table()
    fitted = auto().fit(frame)
    row = {name: [None] for name in fitted.schema_.names}

    def density(income: float) -> float:
        return float(np.exp(fitted.score_samples({**row, "income": [income]})[0]))

    total = quad(density, 1.0, 60_000, limit=100)[0] + quad(density, 60_000, 3e6, limit=100)[0]
    assert total == pytest.approx(1, abs=1e-3)


def test_criteria_are_those_of_the_density() -> None:
    frame, _ = table(0.1)
    fitted = auto().fit(frame)
    total = fitted.score_samples(frame).sum()
    assert fitted.score(frame) == pytest.approx(total / N, rel=1e-9)
    assert fitted.lower_bound_ == pytest.approx(total / N, rel=1e-6)
    assert fitted.bic() == pytest.approx(fitted.bic(frame), rel=1e-9)
    assert fitted.bic(frame) == pytest.approx(
        -2 * total + fitted._n_parameters() * np.log(N), rel=1e-9
    )
    weight = np.arange(N) % 3 + 1.0
    weighted = float(weight @ fitted.score_samples(frame) / weight.sum())
    assert fitted.score(frame, sample_weight=weight) == pytest.approx(weighted, rel=1e-9)


def test_two_schemas_are_compared_in_the_same_units() -> None:
    """Logarithms of incomes are right for log-normal incomes, and BIC says so."""
    frame, _ = table()
    plain = Schema.infer(frame).set("income", scale="plain")
    one, other = Mixture("auto", 2, random_state=0), Mixture(plain, 2, random_state=0)
    assert one.fit(frame).bic() < other.fit(frame).bic() - 50


def test_answers_have_the_words_and_types_that_came_in() -> None:
    frame, _ = table(0.1)
    fitted = auto().fit(frame)
    complete = fitted.impute(frame)
    assert isinstance(complete, pd.DataFrame) and list(complete.columns) == list(frame.columns)
    assert complete.notna().all().all() and (complete["id"] == frame["id"]).all()
    seen = frame.notna()
    for name in ("age", "visits", "smoker", "city"):
        assert (complete[name][seen[name]] == frame[name][seen[name]]).all(), name
    assert set(complete["city"]) == {"Rome", "Paris", "Oslo"}
    assert str(complete["joined"].dtype).startswith("datetime64")
    as_polars = pl.from_pandas(frame.convert_dtypes())
    assert isinstance(auto().fit(as_polars).impute(as_polars), pl.DataFrame)
    drawn, labels = fitted.sample(50, random_state=1)
    assert isinstance(drawn, pa.Table) and len(labels) == 50
    assert drawn.column_names == fitted.schema_.names
    assert set(drawn.column("smoker").to_pylist()) <= {"yes", "no"}
    assert min(drawn.column("visits").to_pylist()) >= 0


def test_a_file_remembers_the_schema(tmp_path: Path) -> None:
    frame, _ = table(0.1)
    fitted = auto().fit(frame)
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    assert back.family == "auto" and back.schema_ == fitted.schema_
    np.testing.assert_array_equal(back.predict_proba(frame), fitted.predict_proba(frame))
    pd.testing.assert_frame_equal(back.impute(frame), fitted.impute(frame))
    given = Mixture(fitted.schema_, 2, random_state=0).fit(frame)
    given.save(tmp_path / "m.mixfold")
    assert mixfold.load(tmp_path / "m.mixfold").schema_ == fitted.schema_


def test_known_entries_are_given_in_words() -> None:
    frame, _ = table()
    fitted = auto().fit(frame)
    rest = fitted.condition(["city", "smoker"], ["Paris", "yes"])
    other = fitted.condition(["city", "smoker"], ["Rome", "no"])
    assert rest.weights_.argmax() != other.weights_.argmax()
    assert list(rest.feature_names_in_) == ["age", "income", "visits", "joined"]
    with pytest.raises(ValueError, match="column 'city' cannot be 'Bonn'; it has 'Oslo', 'Paris'"):
        fitted.condition("city", "Bonn")
    with pytest.raises(ValueError, match="unknown column 'id'"):
        fitted.condition("id", 3)


def test_a_search_reads_the_table_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, g = table()
    search = MixtureSearch(Mixture("auto"), n_components=range(1, 4), random_state=0).fit(frame)
    assert search.best_estimator_.n_components == 2
    assert adjusted_rand_score(g, search.predict(frame)) > 0.85


def test_weights_and_known_components_may_be_columns() -> None:
    frame, g = table()
    weight = np.arange(N) % 3 + 1.0
    beside = frame.assign(w=weight)
    schema = Schema.infer(frame)
    one = Mixture(schema, 2, random_state=0).fit(beside, sample_weight="w")
    two = Mixture(schema, 2, random_state=0).fit(frame, sample_weight=weight)
    np.testing.assert_allclose(one.weights_, two.weights_)
    known = np.where(np.arange(N) < 50, g, -1)
    fitted = auto().fit(frame, component_labels=known)
    assert (fitted.predict(frame[50:]) == g[50:]).mean() > 0.9


def test_new_rows_that_differ() -> None:
    frame, _ = table()
    fitted = auto().fit(frame)
    turned = frame[frame.columns[::-1]].assign(more=1)
    np.testing.assert_array_equal(fitted.predict(turned), fitted.predict(frame))
    with pytest.warns(SchemaWarning, match="column 'city' has values that it did not have before"):
        fitted.predict(frame.assign(city="Bonn"))
    with pytest.raises(ValueError, match="the table has no column 'age'"):
        fitted.predict(frame.drop(columns="age"))


def test_what_auto_needs() -> None:
    frame, _ = table()
    numbers = open_source(frame[["age", "income"]].to_numpy())
    with pytest.raises(ValueError, match=r"give the table itself, or family=Schema.infer\(table\)"):
        auto().fit(numbers)
    with pytest.raises(ValueError, match="no column that a model can see"):
        auto().fit(frame[["id"]])


def test_another_fit_forgets_the_schema() -> None:
    frame, _ = table()
    fitted = auto().fit(frame)
    fitted.set_params(family="full").fit(frame[["age", "income"]])
    assert not hasattr(fitted, "schema_")
    assert fitted.impute(frame[["age", "income"]]).shape == (N, 2)
    assert clone(Mixture(Schema.infer(frame))).family == Schema.infer(frame)


def test_an_array_has_columns_of_its_own_kinds() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=N), rng.poisson(2, N), rng.integers(0, 2, N)])
    fitted = auto().fit(X)
    assert list(fitted.schema_.families()) == ["full", "negative-binomial", "bernoulli"]
    assert fitted.predict(X).shape == (N,)


def test_the_report_speaks_the_words_of_the_table(tmp_path: Path) -> None:
    frame, _ = table(0.1)
    auto().fit(frame).report(frame, path=tmp_path / "r.html")
    text = Path(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "city = Paris in" in text and "smoker: yes" in text
    assert "2020-" in text or "2021-" in text


def test_what_is_known_stays_to_the_last_bit() -> None:
    # one column is modelled by its logarithm, the other recorded in steps far below its level
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "income": np.exp(2 * rng.normal(size=N)) * 1e3,
        "moment": rng.normal(size=N) + 1e12,
        "small": rng.normal(size=N).astype(np.float32),
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**15, N), unit="ns"),
    })  # fmt: skip
    holed = frame.mask(rng.random(frame.shape) < 0.1)
    holed["small"] = frame["small"]
    complete = auto().fit(holed).impute(holed)
    known = holed.notna()
    pd.testing.assert_frame_equal(complete.where(known), holed, check_exact=True)
    assert complete.notna().all().all()
    table = holed[["income", "moment", "small"]].to_numpy()
    filled = np.asarray(auto().fit(table).impute(table))
    np.testing.assert_array_equal(filled[~np.isnan(table)], table[~np.isnan(table)])


def test_hours_and_shares_have_laws_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    g = rng.integers(0, 2, N)
    frame = pd.DataFrame({
        "hour": np.mod(np.round(rng.normal(np.array([0, 11])[g], 1.5)), 24).astype(int),
        "share": np.round(rng.beta(np.array([1.5, 6])[g], 3), 3).clip(0, 1),
        "area": np.round(rng.normal(np.array([6, 7])[g], 1).clip(0.5) ** 3, 1),
    })  # fmt: skip
    frame.loc[::10, "hour"] = np.nan
    frame.loc[::7, "share"] = np.nan
    fitted = auto().fit(frame)
    assert fitted.schema_.families() == {
        "von-mises": ["hour"], "beta": ["share"], "full": ["area"]
    }  # fmt: skip
    assert fitted.schema_["area"].scale in ("log", "cbrt")
    assert adjusted_rand_score(g, fitted.predict(frame)) > 0.75
    complete = fitted.impute(frame)
    assert set(complete["hour"]) <= set(range(24)) and complete["share"].between(0, 1).all()
    total = fitted.score_samples(frame).sum()
    assert fitted.bic() == pytest.approx(fitted.bic(frame), rel=1e-9)
    assert fitted.lower_bound_ == pytest.approx(total / N, rel=1e-6)

    def density(share: float) -> float:
        row = {"hour": [None], "share": [share], "area": [None]}
        return float(np.exp(fitted.score_samples(row)[0]))

    assert quad(density, 0, 1, limit=200)[0] == pytest.approx(1, abs=1e-3)
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(back.predict_proba(frame), fitted.predict_proba(frame))
    assert fitted.condition("hour", 23).weights_.argmax() == fitted.predict(frame)[g == 0][0]
    posterior = Mixture("auto", 2, inference="vb", random_state=0).fit(frame)
    assert posterior.schema_.families(posterior=True) == {"full": ["hour", "share", "area"]}
    assert posterior.predict(frame).shape == (N,)


def test_files_of_earlier_schemas_keep_their_families(tmp_path: Path) -> None:
    # hours and shares were normal there, and so are the parameters in such files
    rng = np.random.default_rng(3)
    g = rng.integers(0, 2, N)
    frame = pd.DataFrame({
        "hour": np.mod(np.round(rng.normal(np.array([0, 11])[g], 1.5)), 24).astype(int),
        "share": np.round(rng.beta(np.array([1.5, 6])[g], 3), 3).clip(0.001, 0.999),
    })  # fmt: skip
    schema = Schema.infer(frame)
    assert set(schema.families()) == {"von-mises", "beta"}
    earlier = Schema.from_text(schema.to_text().replace("mixfold-schema/2", "mixfold-schema/1"))
    assert earlier.families() == {"full": ["hour", "share"]}
    assert earlier.with_covariance("diag").families() == {"diag": ["hour", "share"]}
    fitted = Mixture(earlier, 2, random_state=0).fit(frame)
    fitted.save(tmp_path / "m.mixfold")
    same = mixfold.load(tmp_path / "m.mixfold")
    assert "mixfold-schema/1" in same.schema_.to_text()
    np.testing.assert_array_equal(same.score_samples(frame), fitted.score_samples(frame))
    full = mixfold.GaussianMixture(2, random_state=0).fit(frame)
    assert fitted.score(frame) == pytest.approx(full.score(frame), abs=1e-3)
