"""A table of claims: every number that a page says of its rows, recomputed by other means.

Claims are what a reader sees, sentence by sentence and line by line of a table. All of them must be
in the page; what remains of a section when they are taken away may hold no digit. Only the form of
numbers (``number``, ``share``) is shared with the page.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy, norm
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, adjusted_rand_score, confusion_matrix, log_loss

from mixfold import (
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
    """The text of each section, without charts and controls."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: dict[str, str] = {}
        self._section, self._skip = "head", 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._section = str(dict(attrs)["id"])
        self._skip += tag in SKIPPED

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in SKIPPED

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.words[self._section] = self.words.get(self._section, "") + data + " "


def sections(model, tmp_path, *rows) -> dict[str, str]:
    path = model.report(*rows, path=tmp_path / "page.html")
    found = Sections(path.read_text(encoding="utf-8")).words
    return {key: " ".join(text.split()) for key, text in found.items()}


def check(text: str, claims: list[str]) -> None:
    """All claims are in the text, and no number is left when they are taken away."""
    left = text
    for claim in sorted((" ".join(c.split()) for c in claims), key=len, reverse=True):
        assert claim in left, f"{claim!r} is not in {left!r}"
        left = left.replace(claim, " ", 1)
    assert not re.search(r"\d", left), f"not claimed: {left!r}"


# ------------------------------------------------ what several kinds of pages say


def claims_of_components(model, X, kind: str = "component") -> list[str]:
    shares = model.predict_proba(X)
    classes = kind == "class"
    weights = np.asarray(model.priors_ if classes else model.weights_)
    best, top = shares.argmax(axis=1), shares.max(axis=1)
    values = np.asarray(X, float)
    limits = None
    if not classes:  # tested by brute force and simulation beside standard_errors.py
        limits = weight_intervals(model, Block(values, complete=not np.isnan(values).any()))
    claims = [
        f"{len(weights)} {'classes' if classes else 'components'} in use.",
        f"has probability {share(top.mean())} on average, and {share((top < 0.8).mean())} of the "
        "rows have less than 80%.",
        "rows below 80%",
    ]
    order = np.argsort(-weights, kind="stable")
    for k in order:
        own = best == k
        interval = "" if limits is None else f"{share(limits.low[k])} to {share(limits.high[k])} "
        claims.append(
            f"{k} {share(weights[k])} {interval}{own.sum()} {share(top[own].mean())} "
            f"{share((top[own] < 0.8).mean())}"
        )
    overlap = shares.T @ shares / shares.sum(axis=0)[:, None]
    claims.append(f"{kind} " + " ".join(str(k) for k in order))
    claims += [f"{k} " + " ".join(share(overlap[k, j]) for j in order) for k in order]
    if limits is not None:
        claims.append("95% interval: the weights that the likelihood of the rows allows")
        claims.append("95% interval")
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


def claims_of_odd_rows(model, X, text: str, codes=()) -> list[str]:
    """Every row, entry, expectation and share that the table of odd rows names."""
    table = pd.DataFrame(X).reset_index(drop=True)
    values = table.to_numpy(float)
    oddness = model.oddness(X, n_draws=1000)
    rows = np.argsort(-oddness, kind="stable")[:15]
    claims = [
        f"The oddest of all {len(values)} rows",
        "Odder than 99.8% means", "99.8% are denser.",
        f"{share((oddness > 0.99).mean())} of the rows are odder than 99.0% of such rows; by the "
        "model it would be 1.0%.",
    ]  # fmt: skip
    named = re.split(r"row (?=\d+ )", text.split("because of odder than")[1])[1:]
    assert len(named) == 15
    for row, said in zip(rows, named, strict=True):
        assert said.startswith(f"{row} ") and share(oddness[row]) in said
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


def claims_of_missing(model, X, codes=()) -> list[str]:
    table = pd.DataFrame(X)
    lacks = table.isna()
    names = [c if isinstance(c, str) else f"x{c}" for c in table.columns]
    lines, recovered = [], None
    if lacks.any(axis=None):
        recovered = recovery(model, X, [names.index(c) for c in codes])
    for j in np.argsort(-lacks.sum().to_numpy(), kind="stable"):
        column = table.iloc[:, j]
        told = (column.mean(), column.std(ddof=0), column.min(), column.max())
        texts = "codes" if names[j] in codes else " ".join(number(v) for v in told)
        found = "" if recovered is None else f"{share(max(recovered[j], 0.0))} "
        lines.append(f"{names[j]} {share(lacks.iloc[:, j].mean())} {found}{texts}")
    if recovered is None:
        return [f"No entry is missing in the {len(table)} rows.", " ".join(lines)]
    return [
        f"{share(lacks.to_numpy().mean())} of all entries are missing, in "
        f"{lacks.any(axis=1).sum()} of {len(table)} rows.",
        "on known entries: 10% of them were hidden",
        "100% is exact, 0% no better than the mean of the column.",
        " ".join(lines),
    ]


def recovery(model, X, codes: list[int]) -> np.ndarray:
    """R² of hidden entries, of codes the share that is right; the same entries are hidden."""
    values = np.asarray(X, float)
    rng, tried, wrong = np.random.default_rng(0), 0, 0.0
    for _ in range(8):
        hidden = ~np.isnan(values) & (rng.random(values.shape) < 0.1)
        hidden &= (~np.isnan(values) & ~hidden).any(axis=1)[:, None]
        shown = np.where(hidden, np.nan, values)
        filled = model.impute(pd.DataFrame(shown, columns=X.columns)
                              if isinstance(X, pd.DataFrame) else shown)  # fmt: skip
        error = (values - filled) ** 2 / np.nanvar(values, axis=0)
        error[:, codes] = np.round(filled[:, codes]) != values[:, codes]
        tried, wrong = tried + hidden.sum(axis=0), wrong + np.where(hidden, error, 0).sum(axis=0)
    return 1 - wrong / tried


def spread_of(model) -> np.ndarray:
    return np.sqrt(model.covariances_)


# ------------------------------------------------ numbers, counts, codes, mixed tables


def test_numbers(tmp_path) -> None:
    wine = load_wine(as_frame=True)
    X = wine.data.iloc[:, [0, 6, 9, 12]]
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X)
    found = sections(model, tmp_path, X, wine.target)
    check(found["components"], claims_of_components(model, X))
    apart = (model.means_ - X.mean().to_numpy()) / X.std(ddof=0).to_numpy()
    lines = [line_of(f"component {k}", words_of_numbers(X.columns, apart[k])) for k in range(3)]
    means = claims_of_means(X.columns, model.means_, spread_of(model), model.weights_)
    check(found["profiles"], [*lines, *means])
    labels = model.predict(X)
    counts = confusion_matrix(wine.target, labels)
    check(found["labels"], [
        f"Adjusted Rand index {number(adjusted_rand_score(wine.target, labels))}: 1 is the same "
        "division, 0 chance.",
        "component 0 component 1 component 2",
        *(f"{k} " + " ".join(count(v) for v in counts[k]) for k in range(3)),
    ])  # fmt: skip
    odd = claims_of_odd_rows(model, X, found["novelty"])
    check(found["novelty"], odd)
    check(found["missing"], claims_of_missing(model, X))
    assert (
        "3 components for 178 rows and 4 columns; converged after "
        f"{model.n_iter_} iterations; {share(X.isna().to_numpy().mean())} of the entries are "
        "missing"
    ) in found["head"]


def test_counts(tmp_path) -> None:
    rng = np.random.default_rng(1)
    group = rng.random(300) < 0.3
    rates = np.where(group[:, None], [2.0, 12.0, 4.0], [8.0, 3.0, 4.0])
    X = pd.DataFrame(rng.poisson(rates), columns=["visits", "calls", "mails"])
    model = PoissonMixture(2, random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    check(found["components"], claims_of_components(model, X))
    shares = model.predict_proba(X)
    values = X.to_numpy(float)
    # deviations are those of the rows, which the parameters of counts do not tell apart
    second = shares.T @ values**2 / shares.sum(axis=0)[:, None]
    sds = np.sqrt(second - (shares.T @ values / shares.sum(axis=0)[:, None]) ** 2)
    apart = (model.means_ - values.mean(axis=0)) / values.std(axis=0)
    lines = [line_of(f"component {k}", words_of_numbers(X.columns, apart[k])) for k in range(2)]
    means = claims_of_means(X.columns, model.means_, sds, model.weights_)
    check(found["profiles"], [*lines, *means])
    check(found["novelty"], claims_of_odd_rows(model, X, found["novelty"]))
    check(found["missing"], claims_of_missing(model, X))


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
    check(found["components"], claims_of_components(model, X))
    weights = model.weights_
    probabilities = dict(zip(X.columns, model.probabilities_, strict=True))
    lines = []
    for k in range(2):
        words: dict[str, float] = {}
        for name, p in probabilities.items():
            words |= words_of_codes(name, p[k], weights @ p)
        lines.append(line_of(f"component {k}", words))
    check(found["profiles"], lines)
    check(found["categories"], [claims_of_codes(n, p, weights) for n, p in probabilities.items()])
    check(found["novelty"], claims_of_odd_rows(model, X, found["novelty"], tuple(X.columns)))
    check(found["missing"], claims_of_missing(model, X, tuple(X.columns)))


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
    check(found["components"], claims_of_components(model, X))
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
    check(found["profiles"], [*lines, *means])
    big = np.column_stack([1 - ones, ones])
    check(found["categories"], [
        claims_of_codes("colour", p, weights),
        "component 0 component 1 all rows bits",
        f"big {' '.join(share(v) for v in ones)} {share(weights @ ones)} "
        f"{number(bits_of_codes(big, weights), 2)}",
    ])  # fmt: skip
    check(found["novelty"], claims_of_odd_rows(model, X, found["novelty"], ("colour", "big")))
    check(found["missing"], claims_of_missing(model, X, ("colour", "big")))


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
    shares, length = model.transform(X), X.sum(axis=1).to_numpy()
    common = length @ shares / length.sum()
    claims = [
        f"3 topics in 150 documents with {count(length.sum())} words: {number(length.mean())} "
        f"words each on average, from {length.min()} to {length.max()}.",
        f"A document mixes {number(np.exp(entropy(shares, axis=1)).mean(), 2)} topics on average",
        f"its largest topic has {share(shares.max(axis=1).mean())} of its words.",
        "about a topic if 10% of its words or more are of it.",
    ]
    for k in range(3):
        best = words[np.argsort(-model.topics_[k], kind="stable")[:10]]
        claims.append(
            f"{k} {share(common[k])} {(shares[:, k] >= 0.1).sum()} "
            f"{(shares.argmax(axis=1) == k).sum()} {', '.join(best)}"
        )
    check(found["topics"], claims)
    scores = model.score_samples(X) / length
    rows = np.argsort(scores, kind="stable")[:15]
    named = re.split(r"document (?=\d+ )", found["novelty"].split("per word largest topic")[1])[1:]
    expected = length[:, None] * (shares @ model.topics_)
    for row, said in zip(rows, named, strict=True):
        assert said.startswith(f"{row} ")
        assert said.strip().endswith(f"{number(scores[row], 4)} {shares[row].argmax()}")
        for word, value, guess in re.findall(r"(word\w+) (\S+) \(expected ([^)]*)\)", said):
            assert value == number(X.loc[row, word])
            assert guess == number(expected[row, list(words).index(word)])
    check(found["novelty"], ["of all 150", *(f"document {said.strip()}" for said in named)])


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

    def two(v: float) -> str:
        return f"{v:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")

    claims = [
        f"2 factors explain {share(communality.mean())} of the variance of a column on average",
        "column factor 1 factor 2 communality",
        *(f"{n} {two(standard[j, 0])} {two(standard[j, 1])} {share(communality[j])}"
          for j, n in enumerate(names)),
        f"factor 1 factor 2 factor 1 1.00 {two(related[0, 1])} factor 2 {two(related[0, 1])} 1.00",
    ]  # fmt: skip
    check(found["factors"], claims)
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
            f"{names[j]} {number(X.iloc[row, j])} (rebuilt {number(rebuilt[row, j])})"
            for j in worst
        )
        claims.append(f"row {row} {said} {number(typical[row])}")
    check(found["residuals"], claims)
    check(found["novelty"], claims_of_odd_rows(model, X, found["novelty"]))
    check(found["missing"], claims_of_missing(model, X))


def test_classes(tmp_path) -> None:
    wine = load_wine(as_frame=True)
    X, y = wine.data.iloc[:, [0, 6, 9]], wine.target
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X, y)
    found = sections(model, tmp_path, X, y)
    check(found["components"], claims_of_components(model, X, "class"))
    p, predicted = model.predict_proba(X), model.predict(X)
    accuracy, top = accuracy_score(y, predicted), p.max(axis=1)
    truth = np.eye(3)[y]
    place = np.minimum((top * 10).astype(int), 9)
    bins = [b for b in range(10) if (place == b).any()]
    gap = sum(abs((top - (predicted == y))[place == b].sum()) for b in bins) / len(y)
    table = confusion_matrix(y, predicted)
    check(found["classes"], [
        f"{share(accuracy)} of 178 rows get their class.",
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
    check(found["profiles"], [*lines, *table])
    assert f"{share(accuracy)} of the rows get their class" in found["head"]


def test_the_table_of_claims_can_fail() -> None:
    check("12.3% of 7 rows", ["12.3% of", "7 rows"])
    with pytest.raises(AssertionError, match="not claimed"):
        check("12.3% of 7 rows", ["12.3% of"])
    with pytest.raises(AssertionError, match="is not in"):
        check("12.4% of 7 rows", ["12.3% of"])
