"""MixtureSearch over factor models with outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

import mixfold
from mixfold import (
    GaussianMixture,
    MixtureOfFactorModels,
    MixtureSearch,
    SupervisedMixtureOfPPCA,
    SupervisedPPCA,
)
from mixfold.contracts import Array
from mixfold.estimators.search.rows import folds
from mixfold.plots import plot_search


def factors(n: int = 300, d: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    """Rows with d factors, all of which numbers and classes depend on."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(4)
    z = rng.normal(size=(n, d))
    X = z @ fixed.normal(size=(d, 8)) + 0.5 * rng.normal(size=(n, 8))
    numbers = 10 + 3 * z.sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, numbers, np.where(z.sum(axis=1) > 0, "up", "down")


def groups(n: int = 360, seed: int = 0) -> tuple[Array, Array, Array]:
    """Three groups, in each of which y is another line."""
    rng = np.random.default_rng(seed)
    k, z = rng.integers(3, size=n), rng.normal(size=n)
    centres = np.array([[0, 0, 0, 0], [9, 0, 9, 0], [0, 9, 0, -9.0]])
    axes = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1.0]])
    X = centres[k] + z[:, None] * axes[k] + 0.3 * rng.normal(size=(n, 4))
    y = np.array([0, 5, -5.0])[k] + np.array([2, -2, 1.0])[k] * z + 0.2 * rng.normal(size=n)
    return X, y, np.where(z + 0.3 * rng.normal(size=n) > 0, 1, 0)


@pytest.mark.parametrize("criterion", ["bic", "held-out", "log-loss", "squared-error"])
def test_the_planted_number_of_factors_is_found(criterion: str) -> None:
    X, y, _ = factors()
    y[::4] = np.nan
    model = SupervisedPPCA(random_state=0)
    search = MixtureSearch(model, n_components=range(1, 6), criterion=criterion, random_state=0)
    search.fit(X, y)
    # a fourth factor changes predictions by next to nothing
    fewest = search.best_params_["n_components"]
    assert fewest == 3 if criterion in ("bic", "held-out") else fewest in (3, 4, 5)
    if criterion in ("log-loss", "squared-error"):
        column = search.results_[criterion.replace("-", "_")]
        assert column[2] < column[:2].min() - 0.01
        assert column[2] - column.min() < search.results_[f"{criterion.replace('-', '_')}_se"][2]
    assert search.score(X, y) == search.best_estimator_.score(X, y)


@pytest.mark.parametrize("criterion", ["bic", "held-out", "log-loss"])
def test_the_planted_number_of_groups_is_found(criterion: str) -> None:
    X, y, _ = groups()
    model = SupervisedMixtureOfPPCA(n_factors=1, random_state=0, n_init=2)
    search = MixtureSearch(model, n_components=range(1, 5), criterion=criterion, cv=3)
    search.set_params(random_state=0).fit(X, y)
    assert search.best_params_["n_components"] >= 3
    column = search.results_[{"held-out": "held_out"}.get(criterion, criterion.replace("-", "_"))]
    if criterion == "bic":
        assert search.best_params_["n_components"] == 3
    else:
        sign = -1 if criterion == "held-out" else 1
        assert sign * column[2] < (sign * column[:2]).min() - 0.2
        assert abs(column[2] - column[3]) < 0.2


def test_labels_of_a_mixture_of_factor_models() -> None:
    X, _, y = groups()
    y = y.copy()
    y[::3] = -1
    X[::7, 1] = np.nan
    weight = np.random.default_rng(0).integers(1, 3, size=len(X)).astype(float)
    search = MixtureSearch(
        MixtureOfFactorModels(n_factors=1, random_state=0), n_components=[1, 3], random_state=0,
        criterion="held-out",
    )  # fmt: skip
    search.fit(X, y, sample_weight=weight)
    assert search.best_params_["n_components"] == 3
    assert search.results_["log_loss"][1] < search.results_["log_loss"][0]
    assert np.isfinite(search.results_["bic"]).all()
    assert set(search.predict(X)) == {0, 1}
    assert "held-out" in search.summary()


def test_the_losses_are_those_of_hand_made_folds() -> None:
    """Weighted rows, a class that is alone, unknown labels; against a loop of one's own."""
    X, _, y = factors(120)
    labels = y.astype(object)
    labels[::5] = None
    labels[1] = "alone"
    weight = np.random.default_rng(1).integers(0, 3, size=120).astype(float)
    weight[1] = 1.0
    search = MixtureSearch(
        SupervisedPPCA(random_state=0), n_components=2, criterion="log-loss", cv=4, random_state=5
    ).fit(X, labels, sample_weight=weight)
    known = labels != None  # noqa: E711
    classes = np.full(120, -1)
    _, classes[known] = np.unique(labels[known].astype(str), return_inverse=True)
    total = size = 0.0
    held = []
    for train, test in folds(X, 4, search_seed(5), classes):
        model = SupervisedPPCA(2, random_state=0).fit(X[train], labels[train], weight[train])
        p = model.predict_proba(X[test])
        for i, row in enumerate(test):
            if known[row]:
                at = list(model.classes_).index(labels[row])
                total -= weight[row] * np.log(p[i, at])
                size += weight[row]
        held.append(test)
    assert 1 not in np.concatenate(held)
    assert sorted(np.concatenate(held)) == [i for i in range(120) if i != 1]
    assert search.best_score_ == pytest.approx(total / size, rel=1e-9)


def search_seed(seed: int) -> int:
    from mixfold.engine.random import seed_from

    return seed_from(seed)


def test_parts_hold_all_classes_evenly() -> None:
    classes = np.repeat([0, 1, 2, -1], [50, 30, 4, 16])
    for cv in (4, 0.25):
        for train, test in folds(np.zeros((100, 1)), cv, 3, classes):
            counts = np.bincount(classes[test] + 1, minlength=4)
            np.testing.assert_allclose(counts, [4, 12.5, 7.5, 1], atol=1)
            assert len(train) + len(test) == 100


def test_the_loss_of_numbers_is_the_density_of_what_is_predicted() -> None:
    X, y, _ = factors(200)
    Y = np.column_stack([y, X[:, 0] + 1])
    Y[::3, 0] = np.nan
    Y[::6] = np.nan
    for weight, tolerance in ((1.0, 1e-8), (1.0 + 1e-9, 1e-5)):  # two ways to the same number
        model = SupervisedPPCA(2, output_weight=weight, output_noise=0.3).fit(X, Y)
        mean, cov = model.predict(X, return_cov=True)
        found = model._log_predictive(X, Y)
        for i in (0, 1, 3, 7):
            seen = ~np.isnan(Y[i])
            if not seen.any():
                assert np.isnan(found[i])
                continue
            from scipy.stats import multivariate_normal

            law = multivariate_normal(mean[i, seen], cov[i][np.ix_(seen, seen)])
            assert found[i] == pytest.approx(law.logpdf(Y[i, seen]), rel=tolerance)


def test_y_may_be_a_column_and_the_folds_a_splitter() -> None:
    X, _, y = factors(150)
    table = pd.DataFrame(X, columns=list("abcdefgh")).assign(kind=y)
    settings: dict[str, Any] = {"n_components": [1, 2], "criterion": "log-loss"}
    one = MixtureSearch(SupervisedPPCA(random_state=0), cv=StratifiedKFold(3), **settings)
    one.fit(table, "kind")
    two = MixtureSearch(SupervisedPPCA(random_state=0), cv=StratifiedKFold(3), **settings)
    two.fit(X, y)
    np.testing.assert_allclose(one.results_["log_loss"], two.results_["log_loss"])
    assert list(one.feature_names_in_) == list("abcdefgh")


def test_a_search_is_reported_and_saved(tmp_path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    X, _, y = factors(150)
    search = MixtureSearch(
        SupervisedPPCA(random_state=0), n_components=[1, 2, 3], criterion="log-loss", cv=3
    ).fit(X, y)
    page = search.report(X, y, path=tmp_path / "page.html")
    assert "held-out log loss per row" in (tmp_path / "page.html").read_text(), page
    ax = plot_search(search)
    plt.close(ax.figure)
    assert ax.lines[-1].get_xdata() == [search.best_params_["n_components"]]  # the ring
    search.save(tmp_path / "best.mixfold")
    other = mixfold.load(tmp_path / "best.mixfold")
    np.testing.assert_array_equal(other.predict(X), search.predict(X))


def test_bad_settings_say_what_to_do() -> None:
    X, y, labels = factors(60)
    model = SupervisedPPCA()
    for settings, words in (
        ({"estimator": [model, GaussianMixture()]}, "one after the other"),
        ({"estimator": GaussianMixture(), "criterion": "log-loss"}, "use criterion='held-out'"),
        ({"estimator": model, "test": 9}, "set test=None"),
        ({"estimator": model, "criterion": "log-loss", "patience": 1}, "patience=None"),
    ):
        with pytest.raises(ValueError, match=words):
            MixtureSearch(n_components=[1, 2], **settings).fit(X, labels)
    with pytest.raises(ValueError, match="leave them out, and give y"):
        MixtureSearch(model, n_components=1).fit(X, labels, component_labels=np.zeros(60, int))
    with pytest.raises(ValueError, match="use 'log-loss' for classes and labels"):
        MixtureSearch(model, n_components=1, criterion="squared-error").fit(X, labels)
    with pytest.raises(ValueError, match="requires y"):
        MixtureSearch(model, n_components=1).fit(X)
    with pytest.raises(ValueError, match="no finite value"):  # outputs that count twice
        MixtureSearch(SupervisedPPCA(output_weight=2.0, output_noise=0.1), n_components=1).fit(X, y)
