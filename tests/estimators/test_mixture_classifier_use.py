"""Classifiers of densities in use: iterates, files, searches, pipelines, mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mixfold
from mixfold import (
    PPCA,
    BayesianGaussianMixture,
    GaussianMixture,
    KernelPCA,
    KMeans,
    MixtureClassifier,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    MLiT,
    PoissonMixture,
)
from mixfold.contracts import Array, Block
from mixfold.engine.sources.array import ArraySource
from mixfold.engine.sources.weights_and_labels import Sides

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning"),
]
ONE = GaussianMixture(1)


def table(n: int = 160, seed: int = 0) -> tuple[Array, Array]:
    """Two classes that differ in an axis of small variance, about different means."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 5)) * [4.0, 3.0, 1.0, 0.4, 0.4] + 2.0
    X[:, 3] += 0.8 * y
    return X, y


class Chopped(ArraySource):
    """Rows in blocks of ten, as a file may have them."""

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        return super().blocks(10)


def dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


# ------------------------------------------------ iterates


def test_the_iterate_is_the_best_in_folds_of_the_training_rows() -> None:
    X, y = table()
    splits = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    density = MLiT(1, 3, max_iter=6)
    fit = MixtureClassifier(density, cv=splits, paper_protocol=True).fit(X, y)
    wanted = []
    for train, test in splits:
        one = MixtureClassifier(MLiT(1, 3, max_iter=6, iterate=0)).fit(X[train], y[train])
        assert not hasattr(one, "iterate_scores_")
        wanted.append((one.staged_predict(X[test]) == y[test]).mean(axis=1))
    np.testing.assert_allclose(fit.iterate_scores_, wanted)
    assert fit.iterate_ == np.argmax(np.mean(wanted, axis=0))
    best = np.array(wanted)[:, fit.iterate_]
    np.testing.assert_allclose(fit.paper_score_, (best.mean(), best.std()))
    assert [model.iterate_ for model in fit.estimators_] == [fit.iterate_] * 2
    staged = fit.staged_predict(X)
    assert staged.shape == (7, len(X))
    np.testing.assert_array_equal(staged[fit.iterate_], fit.predict(X))


def test_the_choice_is_left_to_who_makes_it() -> None:
    X, y = table()
    plain = MixtureClassifier(MLiT(1, 3, max_iter=4), cv=2, random_state=0).fit(X, y)
    assert plain.iterate_scores_.shape == (2, 5) and not hasattr(plain, "paper_score_")
    given = MixtureClassifier(MLiT(1, 3, max_iter=4, iterate=2)).fit(X, y)
    assert not hasattr(given, "iterate_") and given.estimators_[0].iterate_ == 2
    flat = MixtureClassifier(MLiT(1, 3, "orthonormal")).fit(X, y)
    assert not hasattr(flat, "iterate_scores_") and flat.score(X, y) > 0.7
    alone = MixtureClassifier(MLiT(1, 1, max_iter=4)).fit(X[:4], y[:4], [1, 1, 1, 0])  # one row
    assert alone.iterate_ == 0


def test_a_second_fit_forgets_the_first() -> None:
    X, y = table()
    model = MixtureClassifier(MLiT(1, 2, max_iter=2), novelty=0.1, paper_protocol=True).fit(X, y)
    model.set_params(estimator=ONE, novelty=None).fit(X, y)
    for name in ("iterate_", "iterate_scores_", "paper_score_", "novelty_threshold_"):
        assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="GaussianMixture does not keep iterates"):
        model.staged_predict(X)


def test_folds_that_leave_a_class_out_are_told() -> None:
    X, y = table()
    order = np.argsort(y, kind="stable")
    half = len(y) // 2
    with pytest.raises(
        ValueError, match=r"cv leaves no row of class 0 to fit in fold 0.*stratified"
    ):
        MixtureClassifier(MLiT(1, 2, max_iter=2), cv=[(order[half:], order[:half])]).fit(X, y)


# ------------------------------------------------ files and tables


@pytest.mark.parametrize("density", [ONE, MLiT(1, 2, max_iter=3)], ids=["plain", "iterates"])
def test_rows_of_a_file_are_those_in_memory(density: Any, tmp_path: Path) -> None:
    X, y = table()
    order = np.argsort(y, kind="stable")  # blocks of a single class
    X, y = X[order], y[order]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(5)])
    frame["kind"] = np.array(["left", "right"])[y]
    frame["w"] = np.random.default_rng(5).integers(0, 3, len(y)).astype(float)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=20)
    model = MixtureClassifier(density, novelty=0.1, cv=2, priors="empirical", random_state=0)
    of_file = model.fit(path, "kind", "w")
    proba = of_file.predict_proba(path)
    threshold, scores = of_file.novelty_threshold_, getattr(of_file, "iterate_scores_", None)
    columns = list(of_file.feature_names_in_)
    assert columns == [f"c{j}" for j in range(5)]
    labels, weight = frame["kind"].to_numpy(), frame["w"].to_numpy()
    in_memory = model.fit(frame[columns], labels, weight)
    np.testing.assert_allclose(in_memory.predict_proba(frame[columns]), proba, atol=1e-7)
    np.testing.assert_allclose(in_memory.novelty_threshold_, threshold, rtol=1e-6)
    if scores is not None:
        np.testing.assert_allclose(in_memory.iterate_scores_, scores)
    of_table = model.fit(frame.drop(columns="w"), "kind")
    assert list(of_table.classes_) == ["left", "right"]


def test_dask_arrays() -> None:
    X, y = table()
    lazy = da.from_array(X, chunks=(30, 5))
    fit = MixtureClassifier(ONE).fit(lazy, y)
    np.testing.assert_allclose(
        fit.predict_proba(lazy), MixtureClassifier(ONE).fit(X, y).predict_proba(X), atol=1e-8
    )


SAVED = [
    MixtureClassifier(GaussianMixture(2), priors="empirical", novelty=0.05, random_state=0),
    MixtureClassifier(MLiT(1, 2, max_iter=3), cv=2, paper_protocol=True, random_state=0),
    MixtureClassifier(MixtureOfPPCA(1, 2), priors={"no": 1.0, "yes": 3.0}, random_state=0),
    MixtureClassifier(MixtureOfFactorAnalyzers(1, 1), priors=[1, 3], random_state=0),
    MixtureClassifier(BayesianGaussianMixture(2), random_state=0),
    MixtureClassifier(PPCA(2), settings={"no": {"n_components": 1}}, novelty_label="?"),
    MixtureClassifier(random_state=0),
]


@pytest.mark.parametrize("model", SAVED, ids=lambda m: type(m.estimator).__name__)
@pytest.mark.parametrize("kind", ["U", "O"])
def test_saved_and_loaded(model: MixtureClassifier, kind: str, tmp_path: Path) -> None:
    X, y = table()
    names = np.array(["no", "yes"]).astype(kind)[y]
    fit = MixtureClassifier(**model.get_params(deep=False)).fit(X, names)
    fit.save(tmp_path / "fit.mixfold")
    again = mixfold.load(tmp_path / "fit.mixfold")
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), fit.predict(X))
    assert list(again.classes_) == ["no", "yes"] and again.settings == fit.settings
    assert again.priors == fit.priors
    assert type(again.estimator) is type(fit.estimator)
    if fit.estimator is not None:
        assert again.estimator.get_params() == fit.estimator.get_params()
    for name in ("iterate_", "paper_score_"):
        assert getattr(again, name, None) == getattr(fit, name, None)
    again.fit(X, names)  # what was loaded can be fitted anew
    np.testing.assert_allclose(again.predict_proba(X), fit.predict_proba(X), atol=1e-6)


def test_numbers_as_classes_and_classes_not_seen_are_saved(tmp_path: Path) -> None:
    X, y = table()
    fit = MixtureClassifier(
        ONE, settings={7: {"covariance_type": "diag"}}, priors={5: 1, 7: 2, 9: 1}
    )
    fit.partial_fit(X, np.where(y, 7, 5), classes=[5, 7, 9])
    fit.save(tmp_path / "fit.mixfold")
    again = mixfold.load(tmp_path / "fit.mixfold")
    assert again.estimators_[2] is None and again.settings == {7: {"covariance_type": "diag"}}
    assert again.priors == {5: 1, 7: 2, 9: 1}
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))
    again.partial_fit(X, np.full(len(X), 9))
    assert again.predict_proba(X)[:, 2].max() > 0


def test_foreign_estimators(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    fit = MixtureClassifier(KernelDensity(bandwidth=0.4)).fit(X, y)
    assert fit.score(X, y) > 0.95
    joint = np.stack(
        [KernelDensity(bandwidth=0.4).fit(X[y == c]).score_samples(X) for c in range(3)]
    )
    np.testing.assert_array_equal(fit.predict(X), joint.argmax(axis=0))
    with pytest.raises(TypeError, match="KernelDensity cannot be written to a model file"):
        fit.save(tmp_path / "fit.mixfold")
    weight = np.where(y == 0, 2.0, 1.0)
    assert MixtureClassifier(KernelDensity(bandwidth=0.4)).fit(X, y, weight).score(X, y) > 0.95
    theirs = MixtureClassifier(TheirMixture(2), random_state=0).fit(X, y)
    assert theirs.score(X, y) > 0.95 and theirs.sample(3, label=1)[0].shape == (3, 4)
    draws = [theirs.sample(3, random_state=seed)[0] for seed in (0, 0, 1)]
    assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()
    assert fit.sample(3, random_state=0)[0].shape == (3, 4)
    piped = MixtureClassifier(make_pipeline(StandardScaler(), GaussianMixture(1))).fit(X, y)
    assert piped.score(X, y) > 0.95


def test_foreign_estimators_of_a_file(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)  # the classes one after the other: most blocks have only one
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=1.0 + (y == 1))
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=10)
    density = KernelDensity(bandwidth=0.4)
    fit = MixtureClassifier(density, novelty=0.1).fit(tmp_path / "rows.parquet", "y", "w")
    expected = MixtureClassifier(density, novelty=0.1).fit(table[list("abcd")], y, table["w"])
    np.testing.assert_allclose(fit.novelty_threshold_, expected.novelty_threshold_)
    rows = table[list("abcd")]
    np.testing.assert_allclose(fit.predict_log_proba(rows), expected.predict_log_proba(rows))
    np.testing.assert_array_equal(fit.predict(tmp_path / "rows.parquet"), expected.predict(rows))


def test_rows_of_other_classes_do_not_reach_a_foreign_estimator() -> None:
    X, y = load_iris(return_X_y=True)
    fit = MixtureClassifier(TheirMixture(1)).fit(Chopped(X, Sides()), y)
    means = np.concatenate([model.means_ for model in fit.estimators_])
    np.testing.assert_allclose(means, [X[y == c].mean(axis=0) for c in range(3)])


def test_foreign_estimators_of_sparse_rows() -> None:
    X, y = load_iris(return_X_y=True)
    density = make_pipeline(StandardScaler(with_mean=False), FunctionTransformer(dense), ONE)
    fit = MixtureClassifier(density).fit(sparse.csr_array(X), y)
    expected = MixtureClassifier(density).fit(X, y)
    np.testing.assert_allclose(fit.predict_proba(sparse.csr_array(X)), expected.predict_proba(X))


# ------------------------------------------------ scikit-learn's own tools


def test_searches_over_the_settings_of_the_density() -> None:
    X, y = table()
    grid = {
        "estimator__n_dims": [1, 3],
        "estimator__scale": [0.5, 10.0],
        "estimator__init": ["largest", "smallest"],
    }
    search = GridSearchCV(MixtureClassifier(MLiT(1, max_iter=1, iterate=0)), grid, cv=2)
    search.fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_params_["estimator__init"] == "smallest"  # the classes differ there
    assert search.best_estimator_.estimators_[0].init == "smallest"
    sizes = GridSearchCV(
        MixtureClassifier(GaussianMixture(), random_state=0),
        {"estimator__n_components": [1, 2], "priors": ["uniform", "empirical"]}, cv=2,
    ).fit(X, y)  # fmt: skip
    assert sizes.best_score_ > 0.7


def test_pipelines() -> None:
    X, y = table()
    model = make_pipeline(StandardScaler(), MixtureClassifier(MLiT(1, 5, iterate=0, max_iter=1)))
    assert cross_val_score(model, X * [1, 1, 1, 1e6, 1], y, cv=3).mean() > 0.7
    grid = {"standardscaler": [StandardScaler(), "passthrough"],
            "mixtureclassifier__estimator__scale": [1.0, 100.0]}  # fmt: skip
    assert GridSearchCV(model, grid, cv=2).fit(X, y).best_score_ > 0.7


# ------------------------------------------------ mistakes


def test_errors_name_the_class() -> None:
    X, y = table()
    names = np.array(["calm", "wild"])[y]
    X[5, 2] = np.nan  # of the second class
    with pytest.raises(ValueError, match="NaN") as error:
        MixtureClassifier(MLiT(1, 2)).fit(X, names)
    assert "while fitting class 'wild'" in error.value.__notes__


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        (np.zeros(159), "inconsistent numbers of samples"),
        (np.linspace(0, 1, 160), "Unknown label type"),
        (np.array([None, "a"] * 80, dtype=object), "every row needs a class"),
        (pd.Series(["a", pd.NA] * 80, dtype=object), "every row needs a class"),
    ],
)
def test_classes_are_checked(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MixtureClassifier(ONE).fit(table()[0], y)


def test_what_has_no_density_is_told() -> None:
    with pytest.raises(TypeError, match=r"estimator must have score_samples.*KMeans"):
        MixtureClassifier(KMeans(2)).fit(*table())


def test_rows_of_weight_zero_do_not_make_a_class() -> None:
    X, y = table()
    fit = MixtureClassifier(ONE).fit(X, np.where(np.arange(160) < 3, 2, y), np.arange(160) >= 3)
    assert list(fit.classes_) == [0, 1]
    with pytest.raises(ValueError, match="zero in every row"):
        MixtureClassifier(ONE).fit(X, y, np.zeros(160))


def test_counts_are_told_of_the_class_that_has_none() -> None:
    X = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0], [2.0, 2.0]])
    with pytest.raises(ValueError, match="column 1") as error:
        MixtureClassifier(PoissonMixture(1)).fit(X, ["a", "a", "b", "b"])
    assert "while fitting class 'b'" in error.value.__notes__


@pytest.mark.parametrize("density", ["mixture", GaussianMixture, 3], ids=["text", "type", "number"])
def test_what_is_no_estimator_is_told(density: Any) -> None:
    X, y = table()
    with pytest.raises(TypeError, match="estimator must be an estimator"):
        MixtureClassifier(density).fit(X, y)


def test_scores_by_the_name_of_a_column(tmp_path: Path) -> None:
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    fit = MixtureClassifier(ONE, random_state=0).fit(frame, "kind")
    wanted = float(np.mean(fit.predict(X_frame := frame[list("abcde")]) == y))
    assert fit.score(frame, "kind") == fit.score(X_frame, y) == wanted
    assert fit.score(tmp_path / "rows.csv", "kind") == wanted
    weight = np.where(y == 0, 3.0, 0.0)
    first = float(np.mean(fit.predict(X_frame)[y == 0] == 0))
    np.testing.assert_allclose(fit.score(frame, "kind", sample_weight=weight), first)


def test_priors_named_by_an_index(tmp_path: Path) -> None:
    X, y = table()
    kinds = np.array(["rare", "often"])[y]
    shares = pd.Series({"rare": 0.2, "often": 0.8})  # not in the order of classes_
    fit = MixtureClassifier(ONE, priors=shares).fit(X, kinds)
    np.testing.assert_allclose(fit.priors_, [0.8, 0.2])
    fit.save(tmp_path / "model")
    again = mixfold.load(tmp_path / "model")
    assert again.priors == {"rare": 0.2, "often": 0.8}
    plain = MixtureClassifier(ONE, priors=pd.Series([3.0, 1.0])).fit(X, kinds)
    np.testing.assert_allclose(plain.priors_, [0.75, 0.25])
    plain.save(tmp_path / "model")
    np.testing.assert_allclose(mixfold.load(tmp_path / "model").fit(X, kinds).priors_, [0.75, 0.25])


@pytest.mark.parametrize("label", [0, 1])
def test_classes_do_not_answer_by_different_iterates(label: int) -> None:
    model = MixtureClassifier(MLiT(1, 2, max_iter=4), settings={label: {"iterate": 2}})
    with pytest.raises(ValueError, match=rf"class {label} its own iterate.*share"):
        model.fit(*table())


def test_densities_of_as_many_dimensions_as_rows_do_not_compare_classes() -> None:
    X, y = table()
    with pytest.raises(TypeError, match="do not compare classes"):
        MixtureClassifier(KernelPCA(2)).fit(X, y)
    uneven = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]]
    linear = MixtureClassifier(KernelPCA(2, kernel="linear")).fit(X[uneven], y[uneven])
    same = MixtureClassifier(PPCA(2)).fit(X[uneven], y[uneven])
    np.testing.assert_allclose(linear.predict_proba(X), same.predict_proba(X), atol=1e-8)
