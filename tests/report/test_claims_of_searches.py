"""Claims of pages about a search: criteria, differences, tests and warnings by other means."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Peer

from mixfold import GaussianMixture, MixtureSearch
from mixfold.report.formatting import NOTHING, number
from tests.report.claims import (
    Seen,
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
    words_of_numbers,
)

CV = [(np.flatnonzero(np.arange(240) % 3 != i), np.flatnonzero(np.arange(240) % 3 == i))
      for i in range(3)]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Three groups that are apart, columns unrelated within them."""
    rng = np.random.default_rng(4)
    group = np.array([2, 1, 0, 0, 0])[np.arange(240) % 5]
    X = rng.normal(size=(240, 3)) * [1, 2, 0.5]
    X += np.array([[0, 0, 0], [6, -9, 2], [30, 4, 0]])[group]
    return pd.DataFrame(X, columns=["height", "weight", "age"])


def parameters(kind: str, size: int, width: int = 3) -> int:
    spread = width if kind == "diag" else width * (width + 1) // 2
    return size * (width + spread) + size - 1


def log_likelihood(kind: str, size: int, X: np.ndarray) -> float:
    """The best of many starts, of ours and of somebody else's; the density by scipy."""
    peer = Peer(size, covariance_type=kind, n_init=20, tol=1e-10, max_iter=5000, reg_covar=0,
                random_state=0).fit(X)  # fmt: skip
    own = GaussianMixture(size, covariance_type=kind, n_init=30, random_state=0).fit(X)
    found = []
    for model in (peer, own):
        covariances = [np.diag(c) if kind == "diag" else c for c in model.covariances_]
        parts = [
            np.log(w) + multivariate_normal(m, c).logpdf(X)
            for w, m, c in zip(model.weights_, model.means_, covariances, strict=True)
        ]
        found.append(float(logsumexp(parts, axis=0).sum()))
    return max(found)


def lines_of(found: Seen, head: str) -> list[list[str]]:
    """Lines of the table of settings: kind, size, criterion, difference, parameters, the rest."""
    text = found.words["search"].split(head)[1].split(" p-value: ")[0]
    parts = re.split(r"(?=(?:full|diag) (?:\(best\) )?\d+ )", text)[1:]
    return [part.strip().replace(" (best)", "").split(" ") for part in parts]


def evidence(gap: float) -> str:
    """Kass and Raftery (1995), of twice the logarithm of a Bayes factor."""
    return ("hardly any" if gap < 2 else "positive" if gap < 6 else "strong" if gap < 10
            else "very strong")  # fmt: skip


def test_search(tmp_path, table) -> None:
    X, n = table.to_numpy(), len(table)
    sizes = (1, 2, 3)
    grid = {"covariance_type": ["full", "diag"]}
    search = MixtureSearch(GaussianMixture(), grid, n_components=sizes, test=19, random_state=0)
    search.fit(table)
    found, model = sections(search, tmp_path, table), search.best_estimator_
    best, free = ("diag", 3), {(k, m): parameters(k, m) for k in ("full", "diag") for m in sizes}
    fits = {setting: log_likelihood(*setting, X) for setting in free}
    bic = {s: -2 * fits[s] + free[s] * np.log(n) for s in free}
    assert min(bic, key=bic.get) == best == (model.covariance_type, model.n_components)

    head = ("Settings, best first model components BIC difference from the best parameters p-value "
            "against the next smaller number note")  # fmt: skip
    lines = lines_of(found, head)
    shown = {(line[0], int(line[1])): line for line in lines}
    assert set(shown) == set(bic) and next(iter(shown)) == best
    printed = {s: float(line[2].replace(",", "")) for s, line in shown.items()}
    for setting, line in shown.items():
        # other starts, other stopping: the same maximum where there is one
        assert printed[setting] == pytest.approx(bic[setting], abs=0.02)
        delta = float(line[3].replace(",", ""))
        assert delta == pytest.approx(printed[setting] - printed[best], rel=1e-3, abs=2e-3)
        assert int(line[4]) == free[setting]
    assert [float(line[3].replace(",", "")) for line in lines] == sorted(
        float(line[3].replace(",", "")) for line in lines
    )
    # of the best kind: each number against the next smaller one, until a test says no
    tested = {s: line[5] for s, line in shown.items() if line[5] != NOTHING}
    for result, ((kind, size), p) in zip(search.tests_, sorted(tested.items()), strict=True):
        gain = 2 * (fits[kind, size] - fits[kind, size - 1])
        assert result.statistic == pytest.approx(gain, abs=0.02)
        assert float(p) == pytest.approx((1 + (result.simulated >= gain).sum()) / 20, rel=0.01)
    assert set(tested) == {("diag", 2), ("diag", 3)}

    second = lines[1]
    gap = sorted(printed.values())[1] - printed[best]
    found.check("search", [
        "6 settings compared by BIC (lower is better). Best: diag with 3 components.",
        f"Next: {second[0]} with {second[1]} component{'s' * (second[1] != '1')}, worse by "
        f"{number(search.results_['delta'][np.argsort(search.results_['delta'])[1]])} "
        f"({evidence(gap)} evidence).",
        f"{head} " + " ".join(" ".join(line) for line in lines).replace("diag 3", "diag (best) 3"),
    ])  # fmt: skip
    points = [
        f"{kind}: {size}, {number(search.results_['bic'][i], 6)}"
        for i, (kind, size) in enumerate(zip(search.results_["label"],
                                             search.results_["n_components"], strict=True))
    ]  # fmt: skip
    found.check_charts("search", ["BIC by number of components", *points])

    # the page of the best model
    found.check("components", claims_of_components(model, table))
    apart = (model.means_ - X.mean(axis=0)) / X.std(axis=0)
    words = [line_of(f"component {k}", words_of_numbers(table.columns, apart[k])) for k in range(3)]
    spread = spread_of(model)
    found.check("profiles", [
        *words, *claims_of_means(table.columns, model.means_, spread, model.weights_)
    ])  # fmt: skip
    found.check_hovers("profiles", hovers_of_means(model.means_, spread, apart, model.weights_))
    odd = check_odd_rows(found, model, table)
    found.check("missing", claims_of_missing(model, table))
    check_map(found, table, model.predict(table), components(3), oddness=odd)
    check_fit(found, model, fits[best] / n, rtol=1e-7)
    largest = "Warning: The best number of components, 3, is the largest that was tried."
    check_frame(found, model, table, "3 components", f"240 rows and 3 columns; {end_of(model)}",
                search=search, asides=["chosen by MixtureSearch", largest],
                warned="1 warning")  # fmt: skip


def test_search_by_held_out_rows(tmp_path, table) -> None:
    X = table.to_numpy()
    search = MixtureSearch(GaussianMixture(), n_components=(1, 2), criterion="held-out", cv=CV,
                           random_state=0).fit(table)  # fmt: skip
    text = sections(search, tmp_path, table).words["search"]
    assert "2 settings compared by held-out log density per row (higher is better)" in text
    scores = {}
    for size in (1, 2):
        parts = []
        for train, test in CV:
            if size == 1:
                mean, cov = X[train].mean(axis=0), np.cov(X[train].T, ddof=0)
                parts.append(multivariate_normal(mean, cov).logpdf(X[test]))
            else:
                peer = Peer(2, n_init=5, tol=1e-10, max_iter=5000, reg_covar=0, random_state=0)
                parts.append(peer.fit(X[train]).score_samples(X[test]))
        values = np.concatenate(parts)
        scores[size] = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    lines = re.findall(r"GaussianMixture (?:\(best\) )?(\d) (\S+) ± (\S+) (\S+) (\d+)", text)
    assert [int(line[0]) for line in lines] == [2, 1]
    for size, value, error, delta, free in lines:
        assert float(value.replace("\u2212", "-")) == pytest.approx(scores[int(size)][0], abs=2e-4)
        assert float(error) == pytest.approx(scores[int(size)][1], rel=0.02)
        assert float(delta) == pytest.approx(scores[2][0] - scores[int(size)][0], abs=1e-3)
        assert int(free) == parameters("full", int(size))
    assert "evidence" not in text  # that is of BIC


def test_warnings_of_a_search(tmp_path) -> None:
    """The largest number tried, settings that fail, and fits at the floor of a variance."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)) + c for c in ([0, 0], [9, 0], [0, 9], [9, 9])])
    search = MixtureSearch(GaussianMixture(), n_components=(2, 3, 4), random_state=0).fit(X)
    found = sections(search, tmp_path, X)
    assert search.best_params_["n_components"] == 4
    assert (
        "Warning: The best number of components, 4, is the largest that was tried. Try larger "
        "numbers."
    ) in found.words["head"]
    copies = np.repeat(rng.normal(size=(30, 2)), 4, axis=0)
    with (
        pytest.warns(UserWarning, match="Every row occurs 4 times"),
        pytest.warns(UserWarning, match="degenerate and was refused"),
        pytest.warns(UserWarning, match="pieces of one that is long or bent"),
    ):
        search = MixtureSearch(GaussianMixture(), n_components=(1, 2, 25), random_state=0).fit(
            copies
        )
    found = sections(search, tmp_path, copies)
    assert "Warning: Every row occurs 4 times" in found.words["head"]
    floor = [i for i, d in enumerate(search.results_["degenerate"]) if d]
    assert floor and search.best_index_ not in floor
    lines = found.words["search"].split("Settings, best first")[1]
    assert lines.count("a variance at its floor") == len(floor)
    assert "Crosses: fits with a variance at its floor, which cannot be" in found.words["search"]
