"""A table of claims: every number that a page says of its rows, recomputed by other means.

Claims are what a reader sees, sentence by sentence and line by line of a table. All of them must be
in the page; what remains of a section when they are taken away may hold no digit, and a page may
have no section without claims. What charts and cells tell when they are pointed at is claimed as
well, and so are the numbers that the map is drawn from. Only the form of numbers (``number``,
``share``) is shared with the page.
"""

from __future__ import annotations

import inspect
import json
import platform
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html.parser import HTMLParser
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, logsumexp
from scipy.stats import entropy, multivariate_normal, norm, poisson
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, adjusted_rand_score, confusion_matrix, log_loss

from mixfold import (
    PPCA,
    CategoricalMixture,
    FactorAnalysis,
    GaussianMixture,
    LatentDirichletAllocation,
    Mixture,
    MixtureClassifier,
    PoissonMixture,
)
from mixfold.contracts import Block
from mixfold.estimators.mixtures.weight_intervals import weight_intervals
from mixfold.report.formatting import add_sign, count, number, share

SKIPPED = ("svg", "script", "style", "select", "nav", "button", "title")


class Sections(HTMLParser):
    """The text of each section, what its charts and cells tell when pointed at, and the map."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: dict[str, str] = {}
        self.charts: dict[str, list[str]] = {}
        self.hovers: dict[str, list[str]] = {}
        self.map: dict = {}
        self._section, self._skip, self._inside = "head", 0, ""
        self._chart = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "section":
            self._section = str(given["id"])
        self._skip += tag in SKIPPED
        self._chart |= tag == "svg" and "chart" in str(given.get("class"))
        if tag == "td" and given.get("title"):
            self.hovers.setdefault(self._section, []).append(str(given["title"]))
        halo = tag == "text" and "halo" in str(given.get("class"))
        self._inside = tag if tag in ("title", "script") or halo else ""

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in SKIPPED
        self._chart &= tag != "svg"
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.words[self._section] = self.words.get(self._section, "") + data + " "
        elif self._chart and self._inside:
            self.charts.setdefault(self._section, []).append(data)
        elif self._inside == "script" and self._section == "map" and not self.map:
            self.map = json.loads(data)


@dataclass
class Seen:
    """A page: text, charts, hovers of each section; those without claims so far."""

    words: dict[str, str]
    charts: dict[str, list[str]]
    hovers: dict[str, list[str]]
    map: dict
    when: datetime
    left: set[str] = field(default_factory=set)

    def check(self, section: str, claims: list[str]) -> None:
        """All claims are in the section, and no number is left when they are taken away."""
        check(self.words[section], claims)
        self.left.discard(section)

    def check_charts(self, section: str, told: list[str]) -> None:
        """What the charts of a section tell when they are pointed at, in their order."""
        assert self.charts.get(section, []) == told
        self.left.discard(f"{section} charts")

    def check_hovers(self, section: str, told: list[str]) -> None:
        """What the cells of a section tell when they are pointed at, in their order."""
        assert self.hovers.get(section, []) == told
        self.left.discard(f"{section} hovers")


def sections(model, tmp_path, *rows, **options) -> Seen:
    when = datetime.now().replace(second=0, microsecond=0)
    path = model.report(*rows, path=tmp_path / "page.html", **options)
    found = Sections(path.read_text(encoding="utf-8"))
    words = {key: " ".join(text.split()) for key, text in found.words.items()}
    left = {*words, *(f"{k} charts" for k in found.charts), *(f"{k} hovers" for k in found.hovers)}
    return Seen(words, found.charts, found.hovers, found.map, when, left)


def check(text: str, claims: list[str]) -> None:
    """All claims are in the text, and no number is left when they are taken away."""
    left = text
    for claim in sorted((" ".join(c.split()) for c in claims), key=len, reverse=True):
        assert claim in left, f"{claim!r} is not in {left!r}"
        left = left.replace(claim, " ", 1)
    assert not re.search(r"\d", left), f"not claimed: {left!r}"


# ------------------------------------------------ what every page says


def settings_of(model) -> tuple[dict[str, str], dict[str, str]]:
    """Settings that differ from their defaults, and the others, as texts."""
    defaults = {k: v.default for k, v in inspect.signature(type(model)).parameters.items()}
    changed, others = {}, {}
    for name, value in model.get_params(deep=False).items():
        text = value if isinstance(value, str) else repr(value)
        same = type(value) is type(defaults[name]) and value == defaults[name]
        (others if same else changed)[name] = " ".join(text.split())
    return changed, others


def check_frame(found: Seen, model, X, parts: str, summary: str, weight=None, asides=()) -> None:
    """The head of a page, its settings and versions; ``summary`` is the rest of its sentence."""
    n, d = np.shape(X)
    topics = hasattr(model, "topics_")
    changed, others = settings_of(model)
    named = {k: v for k, v in changed.items() if k != "random_state"}
    said = ", ".join(f"{k}={v}" if len(v) <= 60 else f"{k} (see Settings)" for k, v in named.items())
    head = found.words["head"]
    made = re.search(r"report made (\d{4}-\d\d-\d\d \d\d:\d\d)", head)
    assert made is not None
    late = datetime.strptime(made.group(1), "%Y-%m-%d %H:%M") - found.when
    assert timedelta(0) <= late <= timedelta(minutes=10)
    many = [] if weight is None else [f"total weight {count(np.sum(weight))}"]
    found.check("head", [
        f"{type(model).__name__}: {parts}",
        f"{parts} for {summary}; no warnings.",
        f"{'different words' if topics else 'columns'} {count(d)}",
        f"{'documents' if topics else 'rows'} in this report {count(n)}",
        *many, *asides,
        f"settings {said}" if said else "",
        f"seed {model.random_state}",
        made.group(0),
    ])  # fmt: skip
    found.check("settings", [
        f"{len(changed)} setting{'s' * (len(changed) != 1)} of {type(model).__name__} differ",
        "setting value " + " ".join(f"{k} {v}" for k, v in changed.items()),
        "Defaults setting value " + " ".join(f"{k} {v}" for k, v in others.items()),
        *(f"{p} {version(p)}" for p in ("mixfold", "numpy", "scipy", "scikit-learn", "numba")),
        f"Python {platform.python_version()}",
    ])  # fmt: skip
    assert not found.left, f"nobody claims {found.left}"


def check_fit(found: Seen, model, objective: float, rtol: float = 1e-9, of="row") -> None:
    """How the fit went: its steps, and the objective by other means."""
    assert model.lower_bounds_[-1] == pytest.approx(objective, rel=rtol)
    assert (np.diff(model.lower_bounds_) > -1e-9).all()
    found.check("fit", [
        f"The fit took {model.n_iter_} iterations and {model.n_passes_} passes over the data; it "
        "converged.",
        f"objective per {of} at the end {number(objective, 6)}",
    ])  # fmt: skip
    trace = model.lower_bounds_
    told = [f"objective per {of}: {i}, {number(v, 6)}" for i, v in enumerate(trace, 1)]
    found.check_charts("fit", [f"The objective per {of} at each iteration", *told])


def four(values) -> list[float | None]:
    """Numbers as the map has them."""
    return [None if np.isnan(v) else float(f"{v:.4g}") for v in np.asarray(values, float)]


def check_map(found: Seen, X, groups=None, names=(), word="component", axes=None, **named) -> None:
    """Rows, groups, axes and columns that the map is drawn from, its legend and its first lines."""
    table, unit = pd.DataFrame(X), "document" if word == "topic" else "row"
    data, n = found.map, len(table)
    assert data["rows"] == list(range(n))
    said = {c["name"]: c for c in data["colours"]}
    by_groups = (
        [] if groups is None else [f"{k} ({(groups == i).sum()})" for i, k in enumerate(names)]
    )
    if groups is not None:
        assert said[word]["names"] == list(names) and said[word]["values"] == list(groups)
    for name in set(said) & {str(c) for c in table.columns}:
        values = table[name].to_numpy(float)
        if "names" in said[name]:  # codes
            shown = [None if i < 0 else said[name]["names"][i] for i in said[name]["values"]]
            assert shown == [None if np.isnan(v) else f"{name} {number(v)}" for v in values]
        else:
            assert said[name]["values"] == four(values)
    assert min(24, table.shape[1]) == len(set(said) & {str(c) for c in table.columns})
    for name, values in named.items():  # oddness, labels
        if "names" in (own := said[name.replace("_", " ")]):
            assert [own["names"][i] for i in own["values"]] == [str(v) for v in values]
        else:
            np.testing.assert_allclose(own["values"], values, rtol=1e-3, atol=1e-6)
    places = {a["name"]: np.array(a["values"], float) for a in data["axes"]}
    first = list(places)[:2]
    if axes is None:  # no single column sets the groups apart as well as the first direction
        filled = table.fillna(table.mean()).to_numpy(float)
        assert separation(places[first[0]], groups) >= max(separation(c, groups) for c in filled.T)
    else:
        for name, values in axes.items():
            np.testing.assert_allclose(places[name], values, rtol=1e-3, atol=1e-6)
    beyond = found.words["map"].split("in other directions.")[1].split(" beyond")[0].split()
    claims = [f"All {count(n)} {unit}s", "0 resets", "name > 2", *by_groups]
    if "beyond the edges" in found.words["map"]:
        outside = np.zeros(n, dtype=bool)
        for name in first:
            low, high = np.quantile(places[name], [0.005, 0.995])
            near = places[name][(places[name] >= low - 1.5 * (high - low))
                                & (places[name] <= high + 1.5 * (high - low))]  # fmt: skip
            room = 0.04 * np.ptp(near)
            outside |= (places[name] < near.min() - room) | (places[name] > near.max() + room)
        claims.append(f"{outside.sum()} {beyond[1]} {beyond[2]} beyond the edges")
    found.check("map", claims)
    found.check_charts("map", [f"{count(n)} {unit}s by {first[0]} and {first[1]}"])


def separation(values: np.ndarray, groups: np.ndarray) -> float:
    """The part of the variance that lies between the groups."""
    means = {g: values[groups == g].mean() for g in np.unique(groups)}
    return float(np.var([means[g] for g in groups]) / np.var(values))


# ------------------------------------------------ what several kinds of pages say


def claims_of_components(model, X, kind: str = "component", weight=None) -> list[str]:
    shares = model.predict_proba(X)
    rows = np.ones(len(shares)) if weight is None else np.asarray(weight, float)
    classes = kind == "class"
    weights = np.asarray(model.priors_ if classes else model.weights_)
    best, top = shares.argmax(axis=1), shares.max(axis=1)
    values = np.asarray(X, float)
    limits = None
    if not classes:  # tested by brute force and simulation beside standard_errors.py
        complete = not np.isnan(values).any()
        limits = weight_intervals(model, Block(values, weight=weight, complete=complete))
    unsure = np.average(top < 0.8, weights=rows)
    how = "clear" if unsure < 0.05 else "fairly clear" if unsure < 0.2 else "blurred"
    claims = [
        f"{len(weights)} {'classes' if classes else 'components'} in use.",
        f"Assignments are {how}: the most probable {kind} of a row has probability "
        f"{share(np.average(top, weights=rows))} on average; for {share(unsure)} of the rows it is "
        "below 80%.",
        "rows below 80%",
    ]
    order = np.argsort(-weights, kind="stable")
    for k in order:
        own = best == k
        interval = "" if limits is None else f"{share(limits.low[k])} to {share(limits.high[k])} "
        claims.append(
            f"{k} {share(weights[k])} {interval}{count(rows[own].sum())} "
            f"{share(np.average(top[own], weights=rows[own]))} "
            f"{share(np.average(top[own] < 0.8, weights=rows[own]))}"
        )
    overlap = (rows[:, None] * shares).T @ shares / (rows @ shares)[:, None]
    claims.append(f"{kind} " + " ".join(str(k) for k in order))
    claims += [f"{k} " + " ".join(share(overlap[k, j]) for j in order) for k in order]
    if limits is not None:
        claims.append("95% interval: confidence interval of the weight by the likelihood")
        claims.append("95% interval")
    claims.append("100% on the diagonal")
    return claims


def bits_of_numbers(means: np.ndarray, sds: np.ndarray, weights: np.ndarray) -> float:
    """Mutual information of one column and the groups, by the trapezium rule."""
    x = np.linspace((means - 9 * sds).min(), (means + 9 * sds).max(), 20_001)
    densities = norm.pdf(x[:, None], means, sds)
    together = densities @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.nan_to_num(densities * np.log2(densities / together[:, None]))
    return float(np.trapezoid(inside @ weights, x))


def claims_of_means(names, means, sds, weights, kind="component") -> list[str]:
    """Lines of the table of means, in the order of what columns tell."""
    bits = [bits_of_numbers(means[:, j], sds[:, j], weights) for j in range(len(names))]
    lines = []
    for j in np.argsort(-np.array(bits), kind="stable"):
        cells = " ".join(
            f"{number(m)} ± {number(s, 2)}" for m, s in zip(means[:, j], sds[:, j], strict=True)
        )
        lines.append(f"{names[j]} {cells}")
    heads = " ".join(f"{kind} {k}" for k in range(len(means)))
    return [f"{heads} {' '.join(lines)}"]


def hovers_of_means(means, sds, apart, weights) -> list[str]:
    """What the cells of the table of means tell, column by column."""
    bits = [bits_of_numbers(means[:, j], sds[:, j], weights) for j in range(means.shape[1])]
    return [
        f"{number(means[k, j], 4)} ± {number(sds[k, j])} sd; {add_sign(apart[k, j])} sd from all "
        "rows"
        for j in np.argsort(-np.array(bits), kind="stable")
        for k in range(len(means))
    ]


def words_of_numbers(names, apart: np.ndarray) -> dict[str, float]:
    """``high income (+1.2 sd)`` by how far it is."""
    return {
        f"{'high' if a > 0 else 'low'} {name} ({add_sign(a)} sd)": abs(a)
        for name, a in zip(names, apart, strict=True)
    }


def words_of_codes(name, shares: np.ndarray, together: np.ndarray) -> dict[str, float]:
    code = int(np.argmax(shares - together))
    text = f"{name} = {code} in {share(shares[code])} (all rows {share(together[code])})"
    return {text: float(np.sqrt((((shares - together) ** 2) / together).sum()))}


def line_of(group: str, words: dict[str, float]) -> str:
    best = sorted(words, key=lambda w: -words[w])[:4]
    named = [w for w in best if words[w] >= 0.5]
    return f"{group} : {', '.join(named) or 'close to all rows in every column'}"


def check_odd_rows(found: Seen, model, X, codes=(), weight=None) -> np.ndarray:
    """The oddest rows and the histogram of all; gives the oddness of every row."""
    found.check("novelty", claims_of_odd_rows(model, X, found.words["novelty"], codes, weight))
    oddness = model.oddness(X, n_draws=1000)
    heights = np.histogram(oddness, bins=20, range=(0, 1))[0]
    told = [f"{number(i / 20)} to {number((i + 1) / 20)}: {n}" for i, n in enumerate(heights)]
    found.check_charts("novelty", ["How many rows have which oddness", *told])
    return oddness


def claims_of_odd_rows(model, X, text: str, codes=(), weight=None) -> list[str]:
    """Every row, entry, expectation and share that the table of odd rows names."""
    table = pd.DataFrame(X).reset_index(drop=True)
    values = table.to_numpy(float)
    oddness = model.oddness(X, n_draws=1000)
    rows = np.argsort(-oddness, kind="stable")[:15]
    claims = [
        f"The oddest of all {len(values)} rows",
        "Odder than 99.8% means", "99.8% have a higher density.",
        f"{share(np.average(oddness > 0.99, weights=weight))} of the rows are odder than 99% of "
        "such rows; if the model were true, it would be 1%.",
    ]  # fmt: skip
    named = re.split(r"row (?=\d+ )", text.split("because of odder than")[1])[1:]
    assert len(named) == 15
    for row, said in zip(rows, named, strict=True):
        assert said.startswith(f"{row} ") and share(min(oddness[row], 0.9999)) in said
        for entry in re.finditer(r"(\S+) (?:= )?(\S+) \(([^)]*)\)", said.partition(" ")[2]):
            name, value, brackets = entry.groups()
            j = [str(c) for c in table.columns].index(name.removeprefix("x") if name not in
                 [str(c) for c in table.columns] else name)  # fmt: skip
            assert value == number(values[row, j])
            hidden = values[[row]].copy()
            hidden[0, j] = np.nan
            frame = pd.DataFrame(hidden, columns=table.columns)
            given = frame if isinstance(X, pd.DataFrame) else hidden
            guess = model.impute(given)[0, j]
            guess = round(guess) if name in codes else guess
            cell = model.oddness(table.iloc[[row]] if isinstance(X, pd.DataFrame) else
                                 values[[row]], by="cell", n_draws=400)[0, j]  # fmt: skip
            assert cell >= 0.9
            word = "most probable" if name in codes else "expected"
            assert brackets == f"{word} {number(guess)}, odder than {share(min(cell, 0.999))}"
        claims.append(f"row {said.strip()}")
    return claims


def claims_of_missing(model, X, codes=(), weight=None) -> list[str]:
    table = pd.DataFrame(X)
    lacks = table.isna()
    names = [c if isinstance(c, str) else f"x{c}" for c in table.columns]
    lines, recovered, common = [], None, None
    if lacks.any(axis=None):
        recovered, common = recovery(model, X, [names.index(c) for c in codes])
    for j in np.argsort(-lacks.sum().to_numpy(), kind="stable"):
        column = table.iloc[:, j]
        there = column.notna().to_numpy()
        rows = None if weight is None else np.asarray(weight)[there]
        mean = np.average(column[there], weights=rows)
        spread = np.sqrt(np.average((column[there] - mean) ** 2, weights=rows))
        told = (mean, spread, column.min(), column.max())
        texts = " ".join(number(v) for v in told)
        texts = f"codes {' '.join(number(v) for v in told[2:])}" if names[j] in codes else texts
        found = "" if recovered is None else f"{share(max(recovered[j], 0.0))} "
        if recovered is not None and names[j] in codes:
            found += f"({share(common[j])}) "
        lines.append(f"{names[j]} {share(lacks.iloc[:, j].mean())} {found}{texts}")
    if recovered is None:
        return [f"No entry is missing in the {len(table)} rows.", " ".join(lines)]
    return [
        f"{share(lacks.to_numpy().mean())} of all entries are missing, in "
        f"{lacks.any(axis=1).sum()} of {len(table)} rows.",
        "10% of the known entries were hidden and filled from the rest of their row, 8 times.",
        "100% is exact, 0% is no better than the mean of the column."
        if len(codes) < len(names)
        else "",
        " ".join(lines),
    ]


def recovery(model, X, codes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """R² of hidden entries, of codes the share that is right; the same entries are hidden.

    And the share of hidden entries that are the most common one of their column.
    """
    values = np.asarray(X, float)
    rng, tried, wrong, common = np.random.default_rng(0), 0, 0.0, 0.0
    most = pd.DataFrame(values).mode().iloc[0].to_numpy()
    for _ in range(8):
        hidden = ~np.isnan(values) & (rng.random(values.shape) < 0.1)
        hidden &= (~np.isnan(values) & ~hidden).any(axis=1)[:, None]
        shown = np.where(hidden, np.nan, values)
        filled = model.impute(pd.DataFrame(shown, columns=X.columns)
                              if isinstance(X, pd.DataFrame) else shown)  # fmt: skip
        error = (values - filled) ** 2 / np.nanvar(values, axis=0)
        error[:, codes] = np.round(filled[:, codes]) != values[:, codes]
        tried, wrong = tried + hidden.sum(axis=0), wrong + np.where(hidden, error, 0).sum(axis=0)
        common = common + (hidden & (values == most)).sum(axis=0)
    return 1 - wrong / tried, common / tried


def spread_of(model) -> np.ndarray:
    return np.sqrt(model.covariances_)


# ------------------------------------------------ numbers, counts, codes, mixed tables


def test_numbers(tmp_path) -> None:
    wine = load_wine(as_frame=True)
    X = wine.data.iloc[:, [0, 6, 9, 12]]
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X)
    found = sections(model, tmp_path, X, wine.target)
    found.check("components", claims_of_components(model, X))
    apart = (model.means_ - X.mean().to_numpy()) / X.std(ddof=0).to_numpy()
    lines = [line_of(f"component {k}", words_of_numbers(X.columns, apart[k])) for k in range(3)]
    means = claims_of_means(X.columns, model.means_, spread_of(model), model.weights_)
    found.check("profiles", [*lines, *means])
    labels = model.predict(X)
    counts = confusion_matrix(wine.target, labels)
    found.check("labels", [
        f"Adjusted Rand index {number(adjusted_rand_score(wine.target, labels))}: 1 is perfect "
        "agreement, 0 is what chance gives.",
        "component 0 component 1 component 2",
        *(f"{k} " + " ".join(count(v) for v in counts[k]) for k in range(3)),
    ])  # fmt: skip
    odd = check_odd_rows(found, model, X)
    found.check("missing", claims_of_missing(model, X))
    found.check_hovers(
        "profiles", hovers_of_means(model.means_, spread_of(model), apart, model.weights_)
    )
    check_map(found, X, labels, components(3), oddness=odd, label_given=wine.target)
    terms = norm.logpdf(X.to_numpy()[:, None], model.means_, spread_of(model))
    joint = np.nansum(terms, axis=2) + np.log(model.weights_)
    check_fit(found, model, logsumexp(joint, axis=1).mean())
    lacks = share(X.isna().to_numpy().mean())
    rest = f"178 rows and 4 columns; {end_of(model)}; {lacks} of the entries are missing"
    check_frame(found, model, X, "3 components", rest)


def components(n: int) -> list[str]:
    return [f"component {k}" for k in range(n)]


def end_of(model) -> str:
    return f"converged after {model.n_iter_} iterations"


def test_weights(tmp_path) -> None:
    """Weights that are one on average are weights as well."""
    wine = load_wine(as_frame=True)
    X = wine.data.iloc[:, [0, 6, 9, 12]]
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 178)
    weight /= weight.mean()
    model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X, sample_weight=weight)
    found = sections(model, tmp_path, X, wine.target, sample_weight=weight)
    found.check("components", claims_of_components(model, X, weight=weight))
    assert "95% interval weight of its rows mean probability" in found.words["components"]
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    apart = (model.means_ - mean) / spread
    lines = [line_of(f"component {k}", words_of_numbers(X.columns, apart[k])) for k in range(3)]
    means = claims_of_means(X.columns, model.means_, spread_of(model), model.weights_)
    found.check("profiles", [*lines, *means])
    found.check_hovers(
        "profiles", hovers_of_means(model.means_, spread_of(model), apart, model.weights_)
    )
    labels = model.predict(X)
    counts = confusion_matrix(wine.target, labels, sample_weight=weight)
    n, a, b = (v * (v - 1) / 2 for v in (counts, counts.sum(axis=1), counts.sum(axis=0)))
    chance = a.sum() * b.sum() / (178 * 177 / 2)
    rand = (n.sum() - chance) / ((a.sum() + b.sum()) / 2 - chance)
    found.check("labels", [
        f"Adjusted Rand index {number(rand)}: 1 is perfect agreement, 0 is what chance gives.",
        "Weight of the rows with each label", "component 0 component 1 component 2",
        *(f"{k} " + " ".join(count(v) for v in counts[k]) for k in range(3)),
    ])  # fmt: skip
    odd = check_odd_rows(found, model, X, weight=weight)
    found.check("missing", claims_of_missing(model, X, weight=weight))
    check_map(found, X, labels, components(3), oddness=odd, label_given=wine.target)
    joint = norm.logpdf(X.to_numpy()[:, None], model.means_, spread_of(model)).sum(axis=2)
    found_by = logsumexp(joint + np.log(model.weights_), axis=1)
    check_fit(found, model, np.average(found_by, weights=weight))
    check_frame(found, model, X, "3 components", f"178 rows of weight 178 and 4 columns; "
                f"{end_of(model)}", weight)  # fmt: skip


def test_a_sample(tmp_path) -> None:
    """What is said of a part of the rows says so; rows in order are no reason to try the first."""
    rng = np.random.default_rng(5)
    X = np.sort(rng.normal(size=(3000, 2)), axis=0)
    X[rng.random(3000) < 0.1, 0] = np.nan
    model = GaussianMixture(1, random_state=0).fit(X)
    found = sections(model, tmp_path, X, max_rows=1500)
    assert "A sample of 1,500 of 3,000 rows, drawn at random (seed 0)" in found.words["map"]
    assert "The map shows a sample of 1,500 of 3,000 rows." in found.words["left-out"]
    assert "10% of the known entries of 1,000 rows were hidden" in found.words["missing"]
    # both columns rise with the number of the row: each tells the other
    r = model.covariances_[0, 0, 1] ** 2 / np.prod(np.diag(model.covariances_[0]))
    recovered = re.search(r"x0 \S+ (\S+)% ", found.words["missing"])
    assert recovered is not None and float(recovered.group(1)) / 100 == pytest.approx(r, abs=0.01)
    rows = np.array(found.map["rows"])
    assert len(rows) == 1500 and abs(rows.mean() - 1500) < 100


def test_counts(tmp_path) -> None:
    rng = np.random.default_rng(1)
    group = rng.random(300) < 0.3
    rates = np.where(group[:, None], [2.0, 12.0, 4.0], [8.0, 3.0, 4.0])
    X = pd.DataFrame(rng.poisson(rates), columns=["visits", "calls", "mails"])
    model = PoissonMixture(2, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    found.check("components", claims_of_components(model, X))
    shares = model.predict_proba(X)
    values = X.to_numpy(float)
    # deviations are those of the rows, which the parameters of counts do not tell apart
    second = shares.T @ values**2 / shares.sum(axis=0)[:, None]
    sds = np.sqrt(second - (shares.T @ values / shares.sum(axis=0)[:, None]) ** 2)
    apart = (model.means_ - values.mean(axis=0)) / values.std(axis=0)
    lines = [line_of(f"component {k}", words_of_numbers(X.columns, apart[k])) for k in range(2)]
    means = claims_of_means(X.columns, model.means_, sds, model.weights_)
    found.check("profiles", [*lines, *means])
    odd = check_odd_rows(found, model, X)
    found.check("missing", claims_of_missing(model, X))
    found.check_hovers("profiles", hovers_of_means(model.means_, sds, apart, model.weights_))
    check_map(found, X, model.predict(X), components(2), oddness=odd, axes={})
    joint = poisson.logpmf(values[:, None], model.means_).sum(axis=2) + np.log(model.weights_)
    check_fit(found, model, logsumexp(joint, axis=1).mean())
    check_frame(found, model, X, "2 components", f"300 rows and 3 columns; {end_of(model)}")


def bits_of_codes(shares: np.ndarray, weights: np.ndarray) -> float:
    return float(
        sum(w * entropy(p, weights @ shares, base=2) for w, p in zip(weights, shares, strict=True))
    )


def claims_of_codes(name: str, shares: np.ndarray, weights: np.ndarray) -> str:
    together = weights @ shares
    lines = [f"{c} {' '.join(share(p) for p in shares[:, c])} {share(together[c])}"
             for c in range(shares.shape[1])]  # fmt: skip
    heads = " ".join(f"component {k}" for k in range(len(shares)))
    bits = number(bits_of_codes(shares, weights), 2)
    return f"{name}: {bits} bits code {heads} all rows {' '.join(lines)}"


def table_of_codes() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    group = rng.random(500) < 0.4
    colour = np.where(group, rng.choice([0, 3], 500), rng.choice([1, 2], 500))
    colour[:40] = rng.integers(0, 4, 40)
    shape = np.where(rng.random(500) < 0.7, group * 2, rng.integers(0, 3, 500))
    size = np.where(rng.random(500) < 0.7, group, rng.integers(0, 3, 500))
    return pd.DataFrame({"shape": shape, "colour": colour, "size": size}), group


def test_codes(tmp_path) -> None:
    X, _ = table_of_codes()
    model = CategoricalMixture(2, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    found.check("components", claims_of_components(model, X))
    weights = model.weights_
    probabilities = dict(zip(X.columns, model.probabilities_, strict=True))
    lines = []
    for k in range(2):
        words: dict[str, float] = {}
        for name, p in probabilities.items():
            words |= words_of_codes(name, p[k], weights @ p)
        lines.append(line_of(f"component {k}", words))
    found.check("profiles", lines)
    found.check("categories", [claims_of_codes(n, p, weights) for n, p in probabilities.items()])
    odd = check_odd_rows(found, model, X, tuple(X.columns))
    found.check("missing", claims_of_missing(model, X, tuple(X.columns)))
    check_map(found, X, model.predict(X), components(2), oddness=odd, axes={})
    joint = np.log(weights) + sum(
        np.log(p[:, X[name].to_numpy(int)].T) for name, p in probabilities.items()
    )
    check_fit(found, model, logsumexp(joint, axis=1).mean(), rtol=1e-6)
    check_frame(found, model, X, "2 components", f"500 rows and 3 columns; {end_of(model)}")


def test_mixed(tmp_path) -> None:
    X, group = table_of_codes()
    rng = np.random.default_rng(2)
    X["big"] = np.where(rng.random(500) < 0.8, group, ~group).astype(int)
    X["length"] = rng.normal(size=500) + 2 * group
    X["visits"] = rng.poisson(3 + 5 * group)
    X = X.drop(columns=["shape", "size"]).astype(float)
    X = X.mask(rng.random(X.shape) < 0.05)
    families = {"categorical": ["colour"], "bernoulli": ["big"], "diag": ["length"],
                "poisson": ["visits"]}  # fmt: skip
    model = Mixture(families, 2, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    found.check("components", claims_of_components(model, X))
    weights, p = model.weights_, model.parameters_["categorical"]["probabilities"][0]
    ones = model.means_[:, 1]
    numbers = ["length", "visits"]
    own = (model.means_[:, 2:] - X[numbers].mean().to_numpy()) / X[numbers].std(ddof=0).to_numpy()
    lines = []
    for k in range(2):
        q = np.array([1 - ones[k], ones[k]])
        together = np.array([1 - weights @ ones, weights @ ones])
        words = words_of_codes("colour", p[k], weights @ p) | words_of_codes("big", q, together)
        lines.append(line_of(f"component {k}", words | words_of_numbers(numbers, own[k])))
    shares = model.predict_proba(X)
    seen = X[numbers].notna().to_numpy()
    values = X[numbers].fillna(0).to_numpy()
    mass = shares.T @ seen
    sds = np.sqrt(shares.T @ values**2 / mass - (shares.T @ values / mass) ** 2)
    means = claims_of_means(numbers, model.means_[:, 2:], sds, weights)
    found.check("profiles", [*lines, *means])
    big = np.column_stack([1 - ones, ones])
    found.check("categories", [
        claims_of_codes("colour", p, weights),
        "component 0 component 1 all rows bits",
        f"big {' '.join(share(v) for v in ones)} {share(weights @ ones)} "
        f"{number(bits_of_codes(big, weights), 2)}",
    ])  # fmt: skip
    odd = check_odd_rows(found, model, X, ("colour", "big"))
    found.check("missing", claims_of_missing(model, X, ("colour", "big")))
    found.check_hovers("profiles", hovers_of_means(model.means_[:, 2:], sds, own, weights))
    check_map(found, X, model.predict(X), components(2), oddness=odd, axes={})
    colour, one = X["colour"].to_numpy(), X["big"].to_numpy()
    told = np.where(np.isnan(colour), 0, np.log(p[:, np.nan_to_num(colour).astype(int)])).T
    told = (
        told
        + np.where(np.isnan(one), 0, np.log(np.where(one == 1, ones[:, None], 1 - ones[:, None]))).T
    )
    sd = np.sqrt(np.ravel(model.parameters_["diag"]["covariances"]))
    told = told + np.nan_to_num(norm.logpdf(X[["length"]].to_numpy(), model.means_[:, 2], sd))
    told = told + np.nan_to_num(poisson.logpmf(X[["visits"]].to_numpy(), model.means_[:, 3]))
    check_fit(found, model, logsumexp(told + np.log(weights), axis=1).mean(), rtol=1e-6)
    lacks = share(X.isna().to_numpy().mean())
    rest = f"500 rows and 4 columns; {end_of(model)}; {lacks} of the entries are missing"
    check_frame(found, model, X, "2 components", rest)


# ------------------------------------------------ topics, factors, classes


def test_topics(tmp_path) -> None:
    rng = np.random.default_rng(3)
    words = np.array([f"word{chr(97 + j // 5)}{chr(97 + j % 5)}" for j in range(40)])
    topics, mixed = rng.dirichlet(np.full(40, 0.1), 3), rng.dirichlet(np.full(3, 0.4), 150)
    length = np.where(mixed[:, 0] > 0.5, 200, 30)
    X = pd.DataFrame(
        [rng.multinomial(n, p @ topics) for n, p in zip(length, mixed, strict=True)], columns=words
    )
    model = LatentDirichletAllocation(3, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    length = X.sum(axis=1).to_numpy()
    shares = shares_of_words(model, X)
    common = length @ shares / length.sum()
    claims = [
        f"3 topics in 150 documents with {count(length.sum())} words: {number(length.mean())} "
        f"words each on average, from {length.min()} to {length.max()}.",
        f"A document mixes {number(np.exp(entropy(shares, axis=1)).mean(), 2)} topics on average",
        f"its largest topic has {share(shares.max(axis=1).mean())} of its words on average.",
        "if the topic has 10% of its words or more.",
    ]
    for k in range(3):
        best = words[np.argsort(-model.topics_[k], kind="stable")[:10]]
        claims.append(
            f"{k} {share(common[k])} {(shares[:, k] >= 0.1).sum()} "
            f"{(shares.argmax(axis=1) == k).sum()} {', '.join(best)}"
        )
    found.check("topics", claims)
    scores = model.score_samples(X) / length
    rows = np.argsort(scores, kind="stable")[:15]
    named = re.split(
        r"document (?=\d+ )", found.words["novelty"].split("per word largest topic")[1]
    )[1:]
    expected = length[:, None] * (model.transform(X) @ model.topics_)
    for row, said in zip(rows, named, strict=True):
        assert said.startswith(f"{row} ")
        assert said.strip().endswith(f"{number(scores[row], 4)} {shares[row].argmax()}")
        for word, value, guess in re.findall(r"(word\w+) (\S+) \(expected ([^)]*)\)", said):
            assert value == number(X.loc[row, word])
            assert guess == number(expected[row, list(words).index(word)])
    found.check("novelty", ["of all 150", *(f"document {said.strip()}" for said in named)])
    low = np.quantile(scores, 0.005)
    low -= 0.1 * (scores.max() - low)
    heights, edges = np.histogram(np.clip(scores, low, None), bins=40)
    told = [
        f"{number(a)} to {number(b)}: {n}"
        for a, b, n in zip(edges, edges[1:], heights, strict=False)
    ]
    found.check_charts("novelty", ["How many documents have which log probability per word", *told])
    check_map(found, X, shares.argmax(axis=1), [f"topic {k}" for k in range(3)], "topic", {},
              log_probability_per_word=scores)  # fmt: skip
    assert "arrows move" in found.words["map"]
    check_fit(found, model, model.lower_bound_, of="word")
    never = f"Note: {(X.sum() == 0).sum()} words of the vocabulary occur in none"
    rest = f"150 documents and 40 different words; {end_of(model)}"
    check_frame(found, model, X, "3 topics", rest, asides=[never])


def test_factors(tmp_path) -> None:
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 400)
    W = np.zeros((6, 2))
    W[:3, 0] = W[3:, 1] = [0.9, 0.8, 0.7]
    names = list("abcdef")
    X = pd.DataFrame(z @ W.T + 0.6 * rng.normal(size=(400, 6)), columns=names)
    model = FactorAnalysis(2, rotation="oblimin", random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    L, related, noise = model.loadings_, model.factor_correlations_, model.noise_variance_
    covariance = L @ related @ L.T + np.diag(noise)
    communality = 1 - noise / np.diag(covariance)
    standard = L / np.sqrt(np.diag(covariance))[:, None]

    claims = [
        f"2 factors explain {share(communality.mean())} of the variance of a column on average,",
        "column factor 1 factor 2 communality",
        *(f"{n} {two(standard[j, 0])} {two(standard[j, 1])} {share(communality[j])}"
          for j, n in enumerate(names)),
        f"factor 1 factor 2 factor 1 1.00 {two(related[0, 1])} factor 2 {two(related[0, 1])} 1.00",
    ]  # fmt: skip
    found.check("factors", claims)
    # rebuilt rows by algebra: the expected common part is L related L' covariance^-1 (x - mean)
    apart = X.to_numpy() - model.mean_
    rebuilt = apart @ np.linalg.solve(covariance, L @ related @ L.T) + model.mean_
    error = X.to_numpy() - rebuilt
    kept = 1 - (error**2).mean(axis=0) / X.var(ddof=0).to_numpy()
    claims = [f"keep {share(kept.mean())} of the variance of a column on average"]
    claims += [f"{n} {share(kept[j])} {share(communality[j])}" for j, n in enumerate(names)]
    typical = np.sqrt(((error / X.std(ddof=0).to_numpy()) ** 2).mean(axis=1))
    rows = np.argsort(-typical, kind="stable")[:10]
    relative = np.abs(error) / X.std(ddof=0).to_numpy()
    for row in rows:
        worst = np.argsort(-relative[row], kind="stable")[:3]
        said = "; ".join(
            f"{names[j]} {number(X.iloc[row, j])} (reconstructed {number(rebuilt[row, j])})"
            for j in worst
        )
        claims.append(f"row {row} {said} {number(typical[row])}")
    found.check("residuals", claims)
    odd = check_odd_rows(found, model, X)
    found.check("missing", claims_of_missing(model, X))
    parts = 100 * (L * (L @ related) / np.diag(covariance)[:, None]).mean(axis=0)
    found.check_charts("factors", [
        "Share of the variance that each factor explains",
        *(f"factor {j + 1}: {number(v, 4)}" for j, v in enumerate(parts)),
    ])  # fmt: skip
    order = np.argsort(-np.abs(standard).max(axis=1), kind="stable")
    found.check_hovers(
        "factors", [f"{number(v, 4)} in units of the column" for j in order for v in L[j]]
    )
    scores = apart @ np.linalg.solve(covariance, L @ related)
    check_map(found, X, axes={"factor 1": scores[:, 0], "factor 2": scores[:, 1]}, oddness=odd)
    check_fit(found, model, multivariate_normal(model.mean_, covariance).logpdf(X).mean())
    check_frame(found, model, X, "2 factors", f"400 rows and 6 columns; {end_of(model)}")


def test_ppca(tmp_path) -> None:
    """One noise for all columns: what the axes have, what factors explain, what rows keep."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) * 2 + rng.normal(size=(300, 5))
    model = PPCA(2).fit(X)
    found = sections(model, tmp_path, X)
    L, noise = model.loadings_, float(model.noise_variance_)
    values = np.linalg.eigvalsh(np.cov(X.T, ddof=0))[::-1]
    np.testing.assert_allclose(noise, values[2:].mean())
    common, total = (L**2).sum(), values.sum()
    sd = np.sqrt((L**2).sum(axis=1) + noise)
    lines = [
        f"x{j} {two(L[j, 0] / sd[j])} {two(L[j, 1] / sd[j])} {share(1 - noise / sd[j] ** 2)}"
        for j in range(5)
    ]
    found.check("factors", [
        f"The first 2 principal axes have {share(values[:2].sum() / total)} of the total variance "
        "of all columns", f"without it, the factors explain {share(common / total)}",
        "column factor 1 factor 2 communality", *lines,
    ])  # fmt: skip
    found.check_charts("factors", [
        "Share of the total variance along the axis of each factor",
        *(f"factor {j + 1}: {number(100 * v, 4)}" for j, v in enumerate(values[:2] / total)),
    ])  # fmt: skip
    covariance = L @ L.T + noise * np.eye(5)
    rebuilt = (X - X.mean(axis=0)) @ np.linalg.solve(covariance, L @ L.T) + X.mean(axis=0)
    kept = 1 - ((X - rebuilt) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert (
        f"Reconstructed rows keep {share(kept)} of the total variance of all columns"
        in (found.words["residuals"])
    )


def shares_of_words(model, table: pd.DataFrame) -> np.ndarray:
    """Word by word: p(topic | word, document) with the posterior of the document's shares."""
    X = table.to_numpy(float)
    prior = np.broadcast_to(model.doc_topic_prior_, len(model.topics_))
    posterior = model.transform(table) * (prior.sum() + X.sum(axis=1, keepdims=True))
    chances = np.exp(digamma(posterior))[:, :, None] * model.topics_
    chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
    return np.einsum("nkd,nd->nk", chances, X) / X.sum(axis=1, keepdims=True)


def two(v: float) -> str:
    return f"{v:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")


def test_classes(tmp_path) -> None:
    wine = load_wine(as_frame=True)
    X, y = wine.data.iloc[:, [0, 6, 9]], wine.target
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X, y)
    found = sections(model, tmp_path, X, y)
    found.check("components", claims_of_components(model, X, "class"))
    p, predicted = model.predict_proba(X), model.predict(X)
    accuracy, top = accuracy_score(y, predicted), p.max(axis=1)
    truth = np.eye(3)[y]
    place = np.minimum((top * 10).astype(int), 9)
    bins = [b for b in range(10) if (place == b).any()]
    gap = sum(abs((top - (predicted == y))[place == b].sum()) for b in bins) / len(y)
    table = confusion_matrix(y, predicted)
    found.check("classes", [
        f"{share(accuracy)} of 178 rows are classified correctly.",
        f"accuracy {share(accuracy)}",
        f"log loss {number(log_loss(y, p), 4)}",
        f"Brier score {number(((p - truth) ** 2).sum(axis=1).mean(), 4)}",
        f"calibration error {share(gap)}",
        "true class 0 1 2",
        *(f"{k} " + " ".join(count(v) for v in table[k]) for k in range(3)),
        *(f"{b / 10:.0%} to {(b + 1) / 10:.0%} {(place == b).sum()} "
          f"{share(top[place == b].mean())} {share((predicted == y)[place == b].mean())}"
          for b in bins),
    ])  # fmt: skip
    shares = p / p.sum(axis=0)
    means = shares.T @ X.to_numpy()
    sds = np.sqrt(shares.T @ X.to_numpy() ** 2 - means**2)
    apart = (means - X.mean().to_numpy()) / X.std(ddof=0).to_numpy()
    lines = [line_of(f"class {k}", words_of_numbers(X.columns, apart[k])) for k in range(3)]
    weights = np.bincount(y) / len(y)
    table = claims_of_means(X.columns, means, sds, weights, "class")
    found.check("profiles", [*lines, *table])
    found.check_hovers("profiles", hovers_of_means(means, sds, apart, weights))
    dots = []
    for b in bins:
        own = place == b
        right = share((predicted == y)[own].mean())
        said = f"probability {share(top[own].mean())}, correct {right}, rows {own.sum()}"
        dots += [said, str(own.sum())]
    title = "Reliability diagram: share of correct classes by predicted probability"
    found.check_charts("classes", [title, *dots])
    check_odd_rows_of_classes(found, model, X)
    check_map(found, X, np.asarray(predicted), [f"class {k}" for k in range(3)], "class",
              label_given=y)  # fmt: skip
    found.check("missing", claims_of_missing(model, X))
    check_frame(found, model, X, "3 classes", f"178 rows and 3 columns; {share(accuracy)} of the "
                "178 rows of this report are classified correctly",
                asides=["predicts 3 classes: 0, 1 and 2"])  # fmt: skip


def check_odd_rows_of_classes(found: Seen, model, X) -> None:
    """Rows by the density of all classes together; draws of our own, so within their error."""
    parts = [multivariate_normal(e.means_[0], e.covariances_[0], seed=7) for e in model.estimators_]
    drawn = np.vstack([
        p.rvs(round(60_000 * w)) for p, w in zip(parts, model.priors_, strict=True)
    ])  # fmt: skip

    def density(rows) -> np.ndarray:
        return logsumexp([p.logpdf(rows) for p in parts], b=model.priors_[:, None], axis=0)

    own, ordered = density(X), np.sort(density(drawn))
    oddness = 1 - np.searchsorted(ordered, own) / len(ordered)
    text = found.words["novelty"]
    named = re.findall(r"row (\d+) (.*?) >?([\d.]+)% (\d)(?= row|$)", text.split("than class")[1])
    order = list(np.argsort(own, kind="stable"))  # that of rows close to each other is of the draws
    assert len(named) == 15 and set(order[:8]) <= {int(row) for row, *_ in named} <= set(order[:20])
    for row, because, said, label in named:
        assert float(said) / 100 == pytest.approx(oddness[int(row)], abs=0.01)
        assert int(label) == model.predict(X)[int(row)]
        for name, value in re.findall(r"(\S+) (\S+) \(expected", because):
            assert value == number(X.loc[int(row), name])
    beyond = re.search(r"higher density\. (\S+)% of the rows", text)
    assert beyond is not None
    assert float(beyond.group(1)) / 100 == pytest.approx((oddness > 0.99).mean(), abs=0.012)
    heights = np.histogram(oddness, bins=20, range=(0, 1))[0]
    told = [int(bar.split(": ")[1]) for bar in found.charts["novelty"][1:]]
    assert sum(told) == len(X) and np.abs(np.cumsum(told) - np.cumsum(heights)).max() <= 6
    found.left -= {"novelty", "novelty charts"}


def test_the_table_of_claims_can_fail() -> None:
    check("12.3% of 7 rows", ["12.3% of", "7 rows"])
    with pytest.raises(AssertionError, match="not claimed"):
        check("12.3% of 7 rows", ["12.3% of"])
    with pytest.raises(AssertionError, match="is not in"):
        check("12.4% of 7 rows", ["12.3% of"])
