"""MixtureSearch by the gap statistic."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mixfold import GaussianMixture, MixtureSearch
from mixfold.estimators.mixtures.gap import dispersion
from mixfold.plots import plot_search

MIDDLES = np.array([[0, 0], [6, 0], [3, 6]])


def _rows(n: int = 150) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) + np.repeat(MIDDLES, n // 3, axis=0)


def _search(X, estimator=None, **settings):
    given = GaussianMixture(covariance_type="tied") if estimator is None else estimator
    settings = {"n_components": range(1, 6), "n_references": 8, "random_state": 0, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MixtureSearch(given, criterion="gap", **settings).fit(X)


def test_planted_clusters_are_found() -> None:
    X = _rows()
    search = _search(X)
    assert search.best_params_["n_components"] == 3
    table = search.results_
    own = dispersion(X, search.predict(X))
    assert np.isfinite(table["gap"]).all() and (table["gap_se"] > 0).all()
    assert search.best_score_ == table["gap"][search.best_index_]
    # a table without clusters, drawn by hand, disperses more
    rng = np.random.default_rng(1)
    logs = []
    for _ in range(8):
        drawn = rng.uniform(X.min(axis=0), X.max(axis=0), X.shape)
        fit = GaussianMixture(3, covariance_type="tied", random_state=0).fit(drawn)
        logs.append(np.log(dispersion(drawn, fit.predict(drawn))))
    assert np.mean(logs) - np.log(own) == pytest.approx(search.best_score_, abs=0.1)
    assert "gap" in search.summary()


def test_one_group_is_one() -> None:
    X = np.random.default_rng(3).uniform(size=(200, 2))
    assert _search(X).best_params_["n_components"] == 1


def test_only_the_first_number_that_suffices_can_win() -> None:
    search = _search(_rows(), param_grid={"covariance_type": ["tied", "diag"]})
    possible = np.isfinite(search.results_["delta"])
    for kind in ("tied", "diag"):
        own = np.array([value == kind for value in search.results_["param_covariance_type"]])
        assert possible[own].sum() == 1


def test_columns_can_weigh() -> None:
    """Noise in a wide column hides the clusters, unless it weighs less."""
    rng = np.random.default_rng(0)
    X = np.column_stack([_rows(), rng.uniform(-300, 300, 150)])
    spheres = GaussianMixture(covariance_type="diag")
    plain = _search(X, spheres)
    weighed = _search(X, spheres, attribute_weights=[1, 1, 0])
    assert weighed.best_params_["n_components"] == 3
    assert plain.results_["gap"][2] < weighed.results_["gap"][2]


def test_missing_entries_weights_names_and_threads() -> None:
    X = _rows()
    holed = X.copy()
    holed[::9, 1] = np.nan
    table = pd.DataFrame(holed, columns=["a", "b"])
    one = _search(table)
    assert one.best_params_["n_components"] == 3
    assert list(one.feature_names_in_) == ["a", "b"]
    two = _search(table, n_jobs=2)
    assert np.array_equal(one.results_["gap"], two.results_["gap"])
    doubled = np.full(len(X), 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = GaussianMixture(covariance_type="tied")
        search = MixtureSearch(
            given, n_components=[2, 3, 4], criterion="gap", n_references=5, random_state=0
        ).fit(X, sample_weight=doubled)
    assert search.best_params_["n_components"] == 3


def test_pictures_and_mistakes() -> None:
    import matplotlib.pyplot as plt

    X = _rows(60)
    small = {"n_components": [1, 2], "n_references": 2}
    search = _search(X, **small)
    figure, ax = plt.subplots()
    plot_search(ax, search)
    assert "gap statistic" in ax.get_ylabel()
    plt.close(figure)
    cases = [
        ({"patience": 2}, X, {}, r"patience=2.*set patience=None"),
        ({}, sparse.csr_array(X), {}, r"got sparse rows.*X.toarray\(\)"),
        ({}, "rows.csv", {}, r"in memory"),
        ({}, X, {"component_labels": np.zeros(60, int)}, "leave out component_labels"),
        ({"n_references": 1}, X, {}, "'n_references' parameter"),
        ({"attribute_weights": [1, -1]}, X, {}, "attribute_weights must be 2 numbers >= 0"),
    ]
    for settings, rows, sides, message in cases:
        wrong = MixtureSearch(GaussianMixture(), criterion="gap", **{**small, **settings})
        with pytest.raises(ValueError, match=message):
            wrong.fit(rows, **sides)


def test_factors_have_no_clusters() -> None:
    from mixfold import PPCA

    with pytest.raises(TypeError, match=r"'PPCA' has no predict; use criterion='bic'"):
        MixtureSearch(PPCA(), n_components=[1, 2], criterion="gap").fit(_rows(30))
