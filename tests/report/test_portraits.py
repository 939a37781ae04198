"""Pages about tables of words: groups in sentences, and what the columns were taken for."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from mixfold import Mixture

N = 300


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(0)
    g = rng.integers(0, 2, N)
    frame = pd.DataFrame({
        "id": [f"K{i:04d}" for i in range(N)],
        "age": rng.normal(40 + 20 * g, 6).round(),
        "income": [f"${v:,.0f}" for v in np.exp(rng.normal(10 + g, 0.3))],
        "visits": rng.poisson(2 + 8 * g),
        "smoker": np.where(rng.random(N) < 0.1 + 0.7 * g, "yes", "no"),
        "city": np.where(rng.random(N) < 0.9, np.array(["Rome", "Oslo"])[g], "Bonn"),
        "hour": np.mod(rng.normal(23.5 - 11 * g, 1.0).round(), 24).astype(int),
        "joined": pd.Timestamp("2020-01-01")
        + pd.to_timedelta(rng.integers(0, 300, N) + 500 * g, "D"),
        "same": ["x"] * N,
    })  # fmt: skip
    frame.loc[::9, "age"] = np.nan
    path = tmp_path_factory.mktemp("page") / "r.html"
    Mixture("auto", 2, random_state=0).fit(frame).report(frame, path=path)
    return path.read_text(encoding="utf-8")


def section(page: str, key: str) -> str:
    found = re.search(rf'<section id="{key}".*?</section>', page, re.DOTALL)
    assert found is not None
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[0])).split())


def test_groups_are_told_in_words_that_are_true(page: str) -> None:
    lines = section(page, "portraits").split("component ")[1:]
    assert len(lines) == 2
    old = next(line for line in lines if "older" in line)
    young = next(line for line in lines if "younger" in line)
    for words in (
        "more visits (",
        "higher income ($",
        "joined later (2021-",
        "more often from Oslo",
    ):
        assert words in old, old
    for words in ("fewer visits (", "lower income ($", "more often from Rome", "joined earlier"):
        assert words in young, young
    own, usual = map(float, re.findall(r"older \(([\d.]+) against ([\d.]+)\)", old)[0])
    assert own == pytest.approx(60, abs=2) and usual == pytest.approx(50, abs=2)
    examples = re.findall(r"For example (.*?)\.", old)[0].split(", ")
    assert len(examples) == 4 and all(re.fullmatch(r"K\d{4}", one) for one in examples)


def test_columns_are_listed_with_what_was_set_aside(page: str) -> None:
    told = section(page, "columns")
    assert "7 columns of 9 were modelled. Set aside, and not lost: id and same." in told
    for words in ("set aside: identifier", "category of 3 Bonn, Oslo and Rome", "11.3%", "cyclic"):
        assert words in told, told
    assert page.index('id="portraits"') < page.index('id="components"')
    assert page.index('id="columns"') < page.index('id="settings"')
    assert "a schema of 9 columns, 7 used" in section(page, "settings") or "auto" in page


def test_rows_have_the_names_of_the_table(page: str) -> None:
    assert re.search(r"K\d{4}", section(page, "novelty"))
