"""Claims that several pages have in common, and the reader that takes a page apart."""

from __future__ import annotations

import base64
import inspect
import io
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
from matplotlib.image import imread
from scipy.stats import norm

from mixfold.contracts import Block
from mixfold.estimators.mixtures.weight_intervals import weight_intervals
from mixfold.report.formatting import add_sign, count, number, share

SKIPPED = ("svg", "script", "style", "select", "nav", "button", "title")


class Sections(HTMLParser):
    """The text of each section, what its charts and cells tell when pointed at, images, the map."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: dict[str, str] = {}
        self.charts: dict[str, list[str]] = {}
        self.hovers: dict[str, list[str]] = {}
        self.images: dict[str, list[tuple[str, str]]] = {}
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
        if tag == "img":
            found = (str(given["alt"]), str(given["src"]))
            self.images.setdefault(self._section, []).append(found)
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
    """A page: text, charts, hovers, images of each section; those without claims so far."""

    words: dict[str, str]
    charts: dict[str, list[str]]
    hovers: dict[str, list[str]]
    images: dict[str, list[tuple[str, str]]]
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

    def check_images(self, section: str, shown: dict[str, np.ndarray]) -> None:
        """Images of a section in their order: what they are called, and their pixels (h, w, 3)."""
        found = self.images.get(section, [])
        assert [alt for alt, _ in found] == list(shown)
        for alt, source in found:
            kind, _, body = source.partition(",")
            assert kind == "data:image/png;base64"
            pixels = np.round(255 * imread(io.BytesIO(base64.b64decode(body))))
            np.testing.assert_allclose(pixels, np.round(shown[alt]), atol=1, err_msg=alt)
        self.left.discard(f"{section} images")

    def check_hovers(self, section: str, told: list[str]) -> None:
        """What the cells of a section tell when they are pointed at, in their order."""
        assert self.hovers.get(section, []) == told
        self.left.discard(f"{section} hovers")


def sections(model, tmp_path, *rows, **options) -> Seen:
    when = datetime.now().replace(second=0, microsecond=0)
    path = model.report(*rows, path=tmp_path / "page.html", **options)
    found = Sections(path.read_text(encoding="utf-8"))
    words = {key: " ".join(text.split()) for key, text in found.words.items()}
    kinds = {"charts": found.charts, "hovers": found.hovers, "images": found.images}
    left = {*words, *(f"{key} {kind}" for kind, own in kinds.items() for key in own)}
    return Seen(words, found.charts, found.hovers, found.images, found.map, when, left)


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


def check_frame(
    found: Seen, model, X, parts: str, summary: str, weight=None, asides=(), warned="no warnings",
    search=None,
) -> None:  # fmt: skip
    """The head of a page, its settings and versions; ``summary`` is the rest of its sentence.

    ``model`` is the one that ``search`` has chosen, if there was one.
    """
    n, d = np.shape(X)
    topics = hasattr(model, "topics_")
    asked = model if search is None else search
    chosen, (changed, others) = settings_of(model)[0], settings_of(asked)
    named = {k: v if len(v) <= 60 else "" for k, v in chosen.items() if k != "random_state"}
    said = ", ".join(f"{k}={v}" if v else f"{k} (see Settings)" for k, v in named.items())
    head = found.words["head"]
    made = re.search(r"report made (\d{4}-\d\d-\d\d \d\d:\d\d)", head)
    assert made is not None
    late = datetime.strptime(made.group(1), "%Y-%m-%d %H:%M") - found.when
    assert timedelta(0) <= late <= timedelta(minutes=10)
    many = [] if weight is None else [f"total weight {count(np.sum(weight))}"]
    found.check("head", [
        f"{type(model).__name__}: {parts}",
        f"{parts} for {summary}; {warned}.",
        f"{'different words' if topics else 'columns'} {count(d)}",
        f"{'documents' if topics else 'rows'} in this report {count(n)}",
        *many, *asides,
        f"settings {said}" if said else "",
        f"seed {model.random_state}",
        made.group(0),
    ])  # fmt: skip
    of_chosen = [] if search is None else [
        f"{len(chosen)} settings of the chosen {type(model).__name__} differ",
        f"Settings of the chosen {type(model).__name__} setting value "
        + " ".join(f"{k} {v}" for k, v in chosen.items()),
    ]  # fmt: skip
    found.check("settings", [
        *of_chosen,
        f"{len(changed)} setting{'s' * (len(changed) != 1)} of {type(asked).__name__} differ",
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
    rng, tried, wrong, common, spread = np.random.default_rng(0), 0, 0.0, 0.0, 0.0
    most = pd.DataFrame(values).mode().iloc[0].to_numpy()
    for _ in range(8):
        hidden = ~np.isnan(values) & (rng.random(values.shape) < 0.1)
        hidden &= (~np.isnan(values) & ~hidden).any(axis=1)[:, None]
        shown = np.where(hidden, np.nan, values)
        filled = model.impute(pd.DataFrame(shown, columns=X.columns)
                              if isinstance(X, pd.DataFrame) else shown)  # fmt: skip
        error = (values - filled) ** 2
        error[:, codes] = np.round(filled[:, codes]) != values[:, codes]
        # against the mean of the column, for the same entries
        base = (values - np.nanmean(values, axis=0)) ** 2
        base[:, codes] = 1.0
        spread = spread + np.where(hidden, base, 0).sum(axis=0)
        tried, wrong = tried + hidden.sum(axis=0), wrong + np.where(hidden, error, 0).sum(axis=0)
        common = common + (hidden & (values == most)).sum(axis=0)
    return 1 - wrong / spread, common / tried


def spread_of(model) -> np.ndarray:
    return np.sqrt(model.covariances_)


def components(n: int) -> list[str]:
    return [f"component {k}" for k in range(n)]


def end_of(model) -> str:
    return f"converged after {model.n_iter_} iterations"


def two(v: float) -> str:
    return f"{v:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")
