"""The page as a document: whole, safe, bounded, and honest about what it shows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixfold import (
    PCP,
    PPCA,
    FactorAnalysis,
    GaussianMixture,
    LatentDirichletAllocation,
    Mixture,
    MixtureClassifier,
    MixtureOfPPCA,
    MixtureSearch,
)
from mixfold.report import write_report
from mixfold.report.charts.lines import Curve, line_chart
from mixfold.report.page import asset
from mixfold.report.write import MOST_BYTES

NASTY = ['<script>alert("x")</script>', "a\"b'c & d", "высота ü 身長 \u202e", "</script><!--"]


def data_of(text: str) -> dict:
    found = re.search(r'id="map-data">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found.group(1))


def test_structure(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    found = page(mixture, holed)
    assert found.text.startswith('<!doctype html>\n<html lang="en">')
    assert found.count("h1") == 1 and found.count("main") == 1 and found.count("title") >= 1
    assert len(set(found.ids)) == len(found.ids)
    links = [v["href"][1:] for t, v in found.tags if t == "a"]
    assert set(links) <= set(found.ids) and set(found.sections) <= set(links)
    for tag, values in found.tags:
        if tag == "svg" and values.get("aria-hidden") != "true":
            assert values.get("aria-label")
        if tag == "img":
            assert values.get("alt")
        if tag == "th":
            assert values.get("scope") in ("row", "col")
        if tag in ("select", "input"):
            assert values.get("id")
        assert "style" not in values  # the policy forbids it
    headings = [t for t, _ in found.tags if re.fullmatch("h[1-6]", t)]
    assert headings[0] == "h1" and set(headings) <= {"h1", "h2", "h3"}


def test_sections_in_their_order(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    sections = ["components", "profiles", "map", "novelty", "missing", "fit", "settings"]
    assert page(mixture, holed).sections == sections
    assert page(mixture).sections == ["components", "profiles", "fit", "settings", "left-out"]


def test_the_first_sentence(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    words = page(mixture, holed).words["head"]
    assert "3 components for 240 rows and 4 columns; converged after" in words
    missing = np.isnan(holed).mean()
    assert f"{missing:.1%} of the entries are missing; no warnings." in words


def test_nothing_is_fetched(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    found = page(mixture, holed)
    policy = next(v["content"] for _, v in found.tags if v.get("http-equiv"))
    for name in ("report.js", "report.css"):
        digest = base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()
        assert f"sha256-{digest}" in policy
        assert asset(name) in found.text
    assert policy.startswith("default-src 'none'")
    for tag, values in found.tags:
        for key in ("src", "href", "action", "srcset", "data"):
            value = values.get(key) or "#"
            assert value.startswith(("#", "data:")), (tag, key, value)
    assert "@import" not in asset("report.css") and "url(" not in asset("report.css")
    assert not re.search(r"fetch\(|XMLHttp|WebSocket|import\(|eval\(|innerHTML", asset("report.js"))
    assert len(asset("report.js").encode()) < 20_000


def test_names_cannot_become_markup(page, holed: np.ndarray, tmp_path: Path) -> None:
    table = pd.DataFrame(holed, columns=NASTY)
    labels = np.array(["<img src=x onerror=alert(1)>", "b", "c"])[np.arange(len(holed)) % 3]
    model = GaussianMixture(3, random_state=0).fit(table)
    found = page(model, table, labels)
    assert found.count("img") == 0 and "alert(1)>" not in found.text
    # the page's own script and the data: none of the names opened another
    assert found.count("script") == 2 and "<!--" not in found.text
    for name in NASTY:
        assert name.strip() in found.words["profiles"] or name in found.words["profiles"]
    names = [c["name"] for c in data_of(found.text)["colours"]]
    assert set(NASTY) <= set(names)
    assert any(
        "<img src=x" in n for c in data_of(found.text)["colours"] for n in c.get("names", ())
    )


def test_names_of_classes_and_settings_are_escaped(page, holed: np.ndarray) -> None:
    y = np.where(np.arange(len(holed)) % 2, "<b>one</b>", 'two & "three"')
    model = MixtureClassifier(GaussianMixture(1), priors={"<b>one</b>": 0.5, 'two & "three"': 0.5})
    found = page(model.fit(holed, y), holed, y)
    assert found.count("b") == 0
    assert "<b>one</b>" in found.words["classes"]


def test_a_sample_is_said_to_be_one(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    found = page(mixture, holed, max_rows=50, random_state=3)
    assert "A sample of 50 of 240 rows" in found.words["map"]
    assert "a sample of 50 of 240 rows" in found.words["left-out"]
    data = data_of(found.text)
    assert len(data["rows"]) == 50 == found.text.count("<circle cx=") - _dots(found)
    again = data_of(page(mixture, holed, max_rows=50, random_state=3).text)
    assert again["rows"] == data["rows"]
    assert data_of(page(mixture, holed, max_rows=50).text)["rows"] != data["rows"]
    whole = page(mixture, holed)
    assert "All 240 rows" in whole.words["map"] and "left-out" not in whole.sections


def _dots(found) -> int:
    return found.text.count('class="dot"') + found.text.count('class="ring"')


def test_the_file_is_bounded(tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.normal(size=(6000, 12)) + 4 * (np.arange(6000) % 2)[:, None]
    model = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X[:1000])
    path = model.report(X, path=tmp_path / "r.html", max_rows=6000)
    assert path.stat().st_size < MOST_BYTES
    small = model.report(X, path=tmp_path / "s.html", max_rows=500)
    assert small.stat().st_size < 200_000


def test_too_large_a_page_shows_fewer_points(page, mixture, holed, monkeypatch) -> None:
    monkeypatch.setattr("mixfold.report.write.MOST_BYTES", 95_000)
    found = page(mixture, np.tile(holed, (10, 1)))
    assert len(found.text.encode()) < 95_000
    shown = len(data_of(found.text)["rows"])
    assert shown < 2400 and f"A sample of {shown} of 2,400 rows" in found.words["map"]


def test_images(page, rng: np.random.Generator) -> None:
    X = rng.random((80, 12))
    model = MixtureOfPPCA(2, 1, random_state=0).fit(X)
    given = page(model, X, image_shape=(3, 4))
    assert "3 \u00d7 4 pixels" in given.words["pictures"] and "guess" not in given.words["pictures"]
    assert given.count("img") > 10
    assert "pixel (1, 2)" in given.words["profiles"]
    assert "pictures" not in page(model, X).sections
    with pytest.raises(ValueError, match="makes 9 pixels, but the model has 12 columns"):
        page(model, X, image_shape=(3, 3))
    with pytest.raises(ValueError, match=r"\(height, width\), two whole numbers; got 12"):
        page(model, X, image_shape=12)


def test_a_guess_is_told(page, rng: np.random.Generator) -> None:
    X = rng.random((90, 64))
    found = page(PPCA(2).fit(X), X)
    assert "taken for images of 8 \u00d7 8 pixels, which is a guess." in found.words["head"]
    named = pd.DataFrame(X, columns=[f"c{j}" for j in range(64)])
    assert "pictures" not in page(PPCA(2).fit(named), named).sections


def test_search(page, holed: np.ndarray) -> None:
    search = MixtureSearch(GaussianMixture(), n_components=[1, 2, 3], random_state=0).fit(holed)
    found = page(search, holed)
    assert found.sections[:2] == ["search", "components"]
    best = search.results_["bic"][search.best_index_]
    assert f"{best:,.3f}".replace("-", "\u2212") in found.words["search"]
    assert "is the largest that was tried" in found.words["head"]
    assert "MixtureSearch" in found.words["head"]


def test_events_are_told_with_a_remedy(page) -> None:
    X = np.random.default_rng(0).normal(size=(30, 8))  # too few rows for such components
    with pytest.warns(UserWarning):
        model = GaussianMixture(4, random_state=0, max_iter=2, tol=0).fit(X)
    found = page(model, X)
    assert (
        "fell to its lower bound (floor)" in found.words["head"]
        and "Use fewer components" in found.words["head"]
    )
    assert "max_iter was reached" in found.words["head"]
    assert model.events_[0].message in found.words["fit"]


def test_samplers_and_learned_numbers_of_components(page, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 2)) + 8 * (np.arange(60) % 2)[:, None]
    model = Mixture("full", 8, inference="vb", random_state=0).fit(X)
    used, learned = model.effective_components_, page(model, X)
    assert f"{used} components in use (of at most 8)" in learned.words["components"]
    assert used < 8 and f"Mixture: {used} components" in learned.words["head"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws have not mixed
        drawn = Mixture("diag", 3, inference="gibbs", n_chains=2, n_draws=60, burn_in=20,
                        random_state=0).fit(X)  # fmt: skip
    found = page(drawn, X)
    assert "chain 1" in found.words["fit"] and "effective draws" in found.words["fit"]


def test_a_useless_classifier_is_told(page, rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    model = MixtureClassifier(GaussianMixture(1), priors=[1.0, 0.0]).fit(X, y)
    head = page(model, X, y).words["head"]
    assert "correct as often (50.0%)" in head


def test_mistakes(mixture: GaussianMixture, holed: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give X as well"):
        mixture.report(y=[1, 2], path=tmp_path / "r.html")
    with pytest.raises(ValueError, match="max_rows must be a whole number from 1 to 20000; got 0"):
        mixture.report(holed, path=tmp_path / "r.html", max_rows=0)
    with pytest.raises(ValueError, match="is a folder"):
        mixture.report(path=tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        mixture.report(path=tmp_path / "none" / "r.html")
    with pytest.raises(ValueError, match="y has 3 entries, the data have 240 rows"):
        mixture.report(holed, [1, 2, 3], path=tmp_path / "r.html")
    with pytest.raises(ValueError, match="X has 3 features, but GaussianMixture is expecting 4"):
        mixture.report(holed[:, :3], path=tmp_path / "r.html")
    with pytest.raises(ValueError, match="weight is zero in every row"):
        mixture.report(holed, sample_weight=np.zeros(240), path=tmp_path / "r.html")
    with pytest.raises(ValueError, match="not fitted yet"):
        write_report(GaussianMixture(2), path=tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_columns_that_never_vary_are_named(page, holed: np.ndarray) -> None:
    table = pd.DataFrame(holed, columns=list("abcd")).assign(always=1.0)
    with pytest.warns(UserWarning):
        model = GaussianMixture(3, random_state=0).fit(table)
    found = page(model, table)
    assert "('always' is 1, in all rows)" in found.words["head"]
    assert "holds the same value" not in found.words["head"]
    assert "single value" not in page(model, table.assign(always=table["a"])).words["head"]


@pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning")
@pytest.mark.parametrize(("factor", "told"), [(100.0, True), (1.0, False)])
def test_a_column_that_drowns_the_others_is_named(page, holed, factor: float, told: bool) -> None:
    table = pd.DataFrame(holed, columns=list("abcd"))
    table["b"] *= factor
    for model, units in ((PPCA(1), True), (FactorAnalysis(1), False)):
        words = page(model.fit(table), table).words["head"]
        assert ("'b' has " in words and "Divide each column" in words) == (told and units)


def test_labels_that_name_rows_are_told(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    found = page(mixture, holed, np.array([f"id{i}" for i in range(len(holed))]))
    assert "240 different labels were given for 240 rows." in found.words["head"]
    assert "the first 40 of 240 labels" in found.words["labels"]
    few = page(mixture, holed, mixture.predict(holed))
    assert "different labels" not in few.words["head"] and "the first" not in few.words["labels"]


def test_two_groups_are_apart_in_one_direction(page, holed: np.ndarray) -> None:
    found = page(GaussianMixture(2, random_state=0).fit(holed), holed).words["map"]
    assert "variation within groups" in found and "separating direction 2" not in found
    found = page(GaussianMixture(3, random_state=0).fit(holed), holed).words["map"]
    assert "separating direction 2" in found and "variation within groups" not in found


def test_numbers_beside_an_axis_are_not_cut_off() -> None:
    steps = np.arange(1.0, 5.0)
    values = -2.043042252 + 1e-9 * steps
    text = line_chart([Curve("objective", steps, values)], "a", "b", "c")
    ticks = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="tick end">([^<]+)<', text)
    assert len(ticks) >= 2 and len({words for _, words in ticks}) == len(ticks)
    # the texts end at x; a letter has at most 10 units where the screen is narrow
    assert all(float(x) >= 10 * len(words) for x, words in ticks)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_has_its_unit(page, rng: np.random.Generator) -> None:
    X = rng.poisson(1.0, (60, 12)).astype(float)
    words = X.sum(axis=1).mean()
    for model, unit in ((LatentDirichletAllocation(2, random_state=0, max_iter=20), "word"),
                        (PCP(2, 2, random_state=0, max_iter=20), "row")):  # fmt: skip
        told = page(model.fit(X), X).words["fit"]
        assert f"objective per {unit} at the end" in told
        # a word of twelve has a log probability of about -2.5
        assert -model.lower_bound_ == pytest.approx(2.4 if unit == "word" else 2.4 * words, rel=0.2)


def test_a_full_disk_leaves_the_earlier_report(mixture: GaussianMixture, tmp_path: Path) -> None:
    # a limit on file sizes is as good as a full disk
    resource = pytest.importorskip("resource", reason="needs POSIX: limits of a process")
    path = tmp_path / "r.html"
    path.write_text("earlier")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match=r"the report .* could not be written: File too large"):
            mixture.report(path=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "earlier" and list(tmp_path.iterdir()) == [path]
    mixture.report(path=path)
    assert "</html>" in path.read_text()
