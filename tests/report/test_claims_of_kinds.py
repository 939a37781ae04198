"""Pages of tables as they are, of independent sources and of combined clusters: each number of some
sections is computed again."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mixfold import ICA, Mixture, MixtureClustering
from mixfold.report.formatting import number, share

from .claims import check_fit, sections

N = 300
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def customers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, N)
    table = pd.DataFrame({
        "income": np.exp(rng.normal(10 + group, 0.5)),
        "city": np.array(["Rome", "Oslo"])[np.where(rng.random(N) < 0.9, group, 1 - group)],
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
        "key": [f"c{i:05d}" for i in range(N)],
    })  # fmt: skip
    table.loc[rng.random(N) < 0.1, "income"] = np.nan
    return table


def test_a_table_as_it_is(tmp_path) -> None:
    table = customers()
    model = Mixture("auto", 2, random_state=0).fit(table)
    found = sections(model, tmp_path, table)
    missing = found.words["missing"]
    assert "'key' (identifier) is no column of the model: set aside by the schema." in " ".join(
        found.words.values()
    )
    logs = np.log(table["income"])
    lacks = share(table["income"].isna().mean())
    assert re.search(
        rf"income {lacks} \S+ {number(np.exp(logs.mean()))} "
        rf"times or divided by {number(np.exp(logs.std(ddof=0)))} "
        rf"{number(table['income'].min())} {number(table['income'].max())}",
        missing,
    ), missing
    days = (table["joined"] - pd.Timestamp("2020-01-01")).dt.days
    assert f"{number(days.std(ddof=0))} days 2020-01-01" in missing
    # groups: means and deviations by shares of rows
    proba = model.predict_proba(table)
    seen = ~table["income"].isna().to_numpy()
    line = found.words["profiles"].split(" income ")[-1]
    pairs = re.findall(r"(\S+) times or divided by (\S+)", line)
    for k, (mean, factor) in enumerate(pairs):
        w = proba[seen, k]
        middle = np.average(logs[seen], weights=w)
        spread = np.sqrt(np.average((logs[seen] - middle) ** 2, weights=w))
        # (rows without an income count by what their date says of it, which is next to nothing)
        assert float(mean.replace(",", "")) == pytest.approx(np.exp(middle), rel=5e-3)
        assert float(factor) == pytest.approx(np.exp(spread), rel=0.04)  # two digits
    assert len(pairs) == 2
    for k in range(2):
        rome = share(np.average(table["city"] == "Rome", weights=proba[:, k]))
        assert rome in found.words["categories"]


def test_independent_sources(tmp_path) -> None:
    rng = np.random.default_rng(1)
    mixed = rng.laplace(size=(N, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(N, 4))
    X = pd.DataFrame(mixed, columns=list("abcd"))
    model = ICA(2, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    words = found.words["novelty"]
    assert "In brackets after an entry: the mean of the column in all rows." in words
    logs = model.score_samples(X)
    rows = np.argsort(logs, kind="stable")[:15]
    told = re.split(r"row (?=\d+ )", words.split("because of log density")[1])[1:]
    assert [int(line.split()[0]) for line in told] == rows.tolist()
    for row, line in zip(rows, told, strict=True):
        assert line.split()[-1] == number(logs[row], 4)
        for name, value, mean in re.findall(r"(\w) (\S+) \(expected ([^)]*)\)", line):
            assert (value, mean) == (number(X[name][row]), number(X[name].mean()))
    check_fit(found, model, float(logs.mean()), rtol=1e-6)


def test_clusters_of_components(tmp_path) -> None:
    rng = np.random.default_rng(2)
    angle = rng.uniform(0, 2 * np.pi, N)
    ring = 3 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(N, 2))
    X = np.vstack([ring, 0.2 * rng.normal(size=(N // 2, 2))])
    model = MixtureClustering(2, max_components=10, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    proba, mixture = model.predict_proba(X), model.mixture_
    parts = mixture.predict_proba(X)
    words = found.words["clusters"]
    assert f"2 clusters made of {len(mixture.weights_)} components." in words
    labels = model.predict(X)
    together = 0
    for k in range(2):
        which = [
            j for j in range(parts.shape[1])
            if np.allclose(np.minimum(parts[:, j], proba[:, k]), parts[:, j], atol=1e-9)
        ]  # fmt: skip
        together += len(which)
        weight = mixture.weights_[which].sum()
        listed = ", ".join(map(str, which))
        assert f"cluster {k} {share(weight)} {len(which)} {listed}" in words, words
        mean = share(proba[labels == k].max(axis=1).mean())
        assert re.search(rf"{k} {share(weight)} {(labels == k).sum()} {mean}",
                         found.words["components"]), found.words["components"]  # fmt: skip
    assert together == len(mixture.weights_)
    spread = [X[labels == k].std(axis=0) for k in range(2)]
    for k in range(2):
        assert f"± {number(spread[k][0], 2)}" in found.words["profiles"]
