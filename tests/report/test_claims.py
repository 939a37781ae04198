"""A table of claims: every number that a page says of its rows, recomputed by other means.

Claims are what a reader sees, sentence by sentence and line by line of a table. All of them must be
in the page; what remains of a section when they are taken away may hold no digit, and a page may
have no section without claims. What charts and cells tell when they are pointed at is claimed as
well, and so are the numbers that the map is drawn from. Only the form of numbers (``number``,
``share``) is shared with the page.
"""

from __future__ import annotations

import re

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
from mixfold.report.formatting import count, number, share
from tests.report.claims import (
    Seen,
    check,
    check_fit,
    check_frame,
    check_map,
    check_odd_rows,
    claims_of_components,
    claims_of_means,
    claims_of_missing,
    components,
    end_of,
    hovers_of_means,
    line_of,
    sections,
    spread_of,
    two,
    words_of_codes,
    words_of_numbers,
)

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


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_columns_that_do_not_vary(tmp_path) -> None:
    """They have their value and no spread, and one sentence tells of them."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(150, 2)) * [1, 300], columns=["a", "b"])
    X["a"] += np.repeat([0, 8], 75)
    X["never"] = 7.0
    model = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)
    found = sections(model, tmp_path, X)
    assert re.search(r"never 7\s+± 0 7\s+± 0", found.words["profiles"])
    assert "('never' is 7, in all rows)" in found.words["head"]
    assert "holds the same value" not in found.words["head"]
    assert "1 warning." in found.words["head"]
    counts = pd.DataFrame(rng.poisson([[3.0, 9.0]], (150, 2)), columns=["a", "b"]).assign(never=0.0)
    counts["a"] += np.repeat([0, 20], 75)
    found = sections(PoissonMixture(2, random_state=0).fit(counts), tmp_path, counts)
    assert re.search(r"never 0\s+± 0 0\s+± 0", found.words["profiles"])
    assert "'never' holds the same value in all rows" in found.words["head"]


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
