"""MORP as a user meets it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from mixfold import DegenerateWarning, store
from mixfold.contracts import Array
from mixfold.engine.sources import open_source
from mixfold.estimators.kernels.morp import MORP

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) * [5.0, 4.0, 1.0, 1.0, 1.0, 1.0] + 3.0
HIDDEN = X[:, 2:4] - 3.0
REAL = HIDDEN @ [[1.0, 0.5, -1.0], [0.5, -1.0, 1.0]] + 0.3 * RNG.normal(size=(120, 3))
REAL = REAL * [1.0, 10.0, 0.1] + [0.0, 100.0, -1.0]
LABELS = (HIDDEN > 0).astype(int)
CLASSES = np.array(["one", "three", "two"])[(HIDDEN @ [[1, -1, 0], [1, 1, -1]]).argmax(axis=1)]
OUTPUTS = {"numbers": REAL, "labels": LABELS, "classes": CLASSES}
NEW = RNG.normal(size=(20, 6)) + 3.0


def close(found: Array, wanted: Array, atol: float = 1e-8) -> None:
    np.testing.assert_allclose(found, wanted, atol=atol * np.abs(wanted).max())


def some_missing(values: Array, share: float = 0.3) -> Array:
    values = np.array(values, dtype=float)
    values[np.random.default_rng(1).random(values.shape) < share] = np.nan
    return values


# ------------------------------------------------ the chain of equal models


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine", "laplacian"])
def test_without_outputs_it_is_kernel_pca(kernel: str) -> None:
    settings: Any = {"gamma": 0.05, "degree": 2, "coef0": 1.0}
    own, new = (pairwise_kernels(rows, X, kernel, filter_params=True, **settings)
                for rows in (X, NEW))  # fmt: skip
    wanted = KernelPCA(kernel="precomputed").fit(own)
    model = MORP(3, kernel=kernel, beta=0.0, regularization=0.0, **settings)
    scores = model.fit_transform(X, CLASSES)
    close(np.abs(scores), np.abs(wanted.transform(own)[:, :3]))
    close(np.abs(model.transform(NEW)), np.abs(wanted.transform(new)[:, :3]))
    ratio = wanted.eigenvalues_[:3] / wanted.eigenvalues_.sum()
    close(model.explained_variance_ratio_, ratio)
    close(model.eigenvalues_, ratio)  # the trace of a balanced kernel matrix is one
    assert (scores[np.abs(scores).argmax(axis=0), range(3)] > 0).all()


@pytest.mark.parametrize("regularization", [0.0, 1.5])
def test_the_inverse_form_without_outputs_is_kernel_pca_up_to_scale(regularization: float) -> None:
    model = MORP(3, kernel="rbf", gamma=0.2, beta=0.0, form="inverse",
                 regularization=regularization)  # fmt: skip
    wanted = KernelPCA(3, kernel="rbf", gamma=0.2).fit(X)
    scores = model.fit(X, CLASSES).transform(NEW) * np.sqrt(1 + regularization)
    close(np.abs(scores), np.abs(wanted.transform(NEW)))


@pytest.mark.parametrize("form", ["max", "inverse"])
@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_pairs_of_rows_and_columns_give_the_same(form: str, beta: float) -> None:
    wide = RNG.normal(size=(25, 40)) + 5.0
    models = [MORP(3, beta=beta, form=form, solver=s).fit(wide, wide[:, :2] + REAL[:25, :2])
              for s in ("primal", "dual")]  # fmt: skip
    new = RNG.normal(size=(5, 40)) + 5.0
    close(models[0].transform(new), models[1].transform(new))
    close(models[0].predict(new), models[1].predict(new))
    assert [m.solver_ for m in models] == ["primal", "dual"]
    assert MORP(3).fit(wide, REAL[:25]).solver_ == "dual"
    assert MORP(3).fit(X, REAL).solver_ == "primal"
    assert models[0].components_.shape == (3, 40)
    close((new - models[1].mean_) @ models[1].components_.T, models[1].transform(new))


def test_the_outputs_alone_are_partial_least_squares() -> None:
    model = MORP(3, beta=1.0, regularization=0.0).fit(X, REAL)
    Z = model.transform(X)
    assert Z.shape == (120, 3)
    fitted = X - X.mean(axis=0)
    fitted = fitted @ np.linalg.lstsq(fitted, REAL - REAL.mean(axis=0))[0] + REAL.mean(axis=0)
    tight = MORP(3, beta=1.0, regularization=0.0, ridge=0.0).fit(X, REAL)
    close(tight.predict(X), fitted)
    with pytest.warns(DegenerateWarning, match="only 3 directions.*n_components=5"):
        few = MORP(5, beta=1.0, regularization=0.0).fit(X, REAL)
    assert few.transform(X).shape == (120, 3)
    assert few.get_feature_names_out().tolist() == ["morp0", "morp1", "morp2"]


@pytest.mark.parametrize("form", ["max", "inverse"])
def test_new_rows_are_as_those_of_the_fit(form: str) -> None:
    for settings in ({"kernel": "rbf", "gamma": 0.2}, {"kernel": "laplacian", "gamma": 0.2}):
        model = MORP(3, form=form, **settings)
        scores = model.fit_transform(X, LABELS)
        close(model.transform(X), scores)
        close(model.transform(X[:7]), scores[:7])
    G = rbf_kernel(X, gamma=0.2)
    given = MORP(3, kernel="precomputed", form=form).fit(G, LABELS)
    wanted = MORP(3, kernel="rbf", gamma=0.2, form=form).fit(X, LABELS)
    close(given.transform(rbf_kernel(NEW, X, gamma=0.2)), wanted.transform(NEW), 1e-6)
    own = MORP(3, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2), form=form).fit(X, LABELS)
    close(own.transform(NEW), wanted.transform(NEW), 1e-6)


def test_landmarks() -> None:
    exact = MORP(2, kernel="rbf", gamma=0.02).fit(X, LABELS)
    for landmarks in (120, 500):
        all_of_them = MORP(2, kernel="rbf", gamma=0.02, landmarks=landmarks).fit(X, LABELS)
        close(all_of_them.transform(NEW), exact.transform(NEW))
    some = MORP(2, kernel="rbf", gamma=0.02, landmarks=80, random_state=0).fit(X, LABELS)
    assert some.solver_ == "landmarks"
    assert abs(np.corrcoef(some.transform(X)[:, 0], exact.transform(X)[:, 0])[0, 1]) > 0.98
    again = MORP(2, kernel="rbf", gamma=0.02, landmarks=80, random_state=0).fit(X, LABELS)
    np.testing.assert_array_equal(again.transform(X), some.transform(X))
    linear = MORP(2, landmarks=30, random_state=0).fit(X, LABELS)  # more than columns: exact
    close(linear.transform(NEW), MORP(2).fit(X, LABELS).transform(NEW))
    G = rbf_kernel(X, gamma=0.02)
    given = MORP(2, kernel="precomputed", landmarks=80, random_state=0).fit(G, LABELS)
    assert given.transform(G).shape == (120, 2)
    assert abs(np.corrcoef(given.transform(G)[:, 0], exact.transform(X)[:, 0])[0, 1]) > 0.98


# ------------------------------------------------ outputs


@pytest.mark.parametrize("kind", list(OUTPUTS))
@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "gamma": 0.02, "form": "inverse"}])
def test_outputs_of_every_kind_are_predicted(kind: str, settings: Any) -> None:
    y = OUTPUTS[kind]
    model = MORP(2, beta=0.8, **settings).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert model.predict(X).dtype.kind == y.dtype.kind
    assert model.score(X, y) > 0.75
    assert MORP(2, beta=0.0, **settings).fit(X, y).score(X, y) < model.score(X, y) - 0.1


def test_scikit_learn_sees_what_the_task_is() -> None:
    assert is_classifier(MORP(task="classification"))
    assert is_classifier(MORP().fit(X, CLASSES))
    assert is_regressor(MORP(task="regression"))
    assert not is_classifier(MORP())
    model = MORP(2, beta=0.8).fit(X, CLASSES)
    assert model.classes_.tolist() == ["one", "three", "two"]
    scores = model.decision_function(X)
    assert (model.classes_[scores.argmax(axis=1)] == model.predict(X)).all()
    two = MORP(2).fit(X, LABELS[:, 0])
    assert ((two.decision_function(X) > 0) == (two.predict(X) == 1)).all()
    labels = MORP(2).fit(X, LABELS)
    assert ((labels.decision_function(X) > 0) == labels.predict(X)).all()
    assert not hasattr(MORP(2).fit(X, REAL), "decision_function")


def test_unknown_outputs_are_at_the_mean_of_what_is_known() -> None:
    y = some_missing(REAL)
    model = MORP(2, beta=0.7, standardize=False, balance=False, regularization=0.1).fit(X, y)
    filled = np.where(np.isnan(y), np.nanmean(y, axis=0), y)
    wanted = MORP(2, beta=0.7, standardize=False, balance=False, regularization=0.1).fit(X, filled)
    close(model.transform(NEW), wanted.transform(NEW))
    # but what is read off is learned where it is known
    assert model.score(X, REAL) > wanted.score(X, REAL)
    names = CLASSES.astype(object)
    names[::4] = None
    model = MORP(2, beta=0.8).fit(X, names)
    assert model.score(X, CLASSES) > 0.8
    numbers = np.where(np.arange(120) % 4 == 0, -1, np.unique(CLASSES, return_inverse=True)[1])
    close(MORP(2, beta=0.8).fit(X, numbers).transform(X), model.transform(X))
    with pytest.raises(ValueError, match="no known entry"):
        MORP(task="regression").fit(X, np.full(120, np.nan))


def test_several_sets_of_outputs_are_scaled_outputs_beside_each_other() -> None:
    sets = {"a": REAL, "b": CLASSES, "c": some_missing(LABELS)}
    betas = {"a": 0.1, "b": 0.4, "c": 0.2}
    model = MORP(3, beta=betas).fit(X, sets)
    one_hot = (CLASSES[:, None] == np.unique(CLASSES)).astype(float)
    standard = (REAL - REAL.mean(axis=0)) / REAL.std(axis=0)
    tables = []
    for table, beta in ((standard, 0.1), (one_hot, 0.4), (sets["c"], 0.2)):
        about = np.nan_to_num(table - np.nanmean(table, axis=0))
        tables.append(np.sqrt(beta) * about / np.linalg.norm(about))
    Y = np.hstack(tables)
    wanted = MORP(3, beta=0.7, task="regression", standardize=False).fit(X, Y)
    close(model.transform(NEW), wanted.transform(NEW))
    assert model.beta_ == pytest.approx(0.7)
    found = model.predict(X)
    assert list(found) == ["a", "b", "c"]
    assert [found[key].shape for key in sets] == [(120, 3), (120,), (120, 2)]
    assert model.score(X, sets) > 0.6
    listed = MORP(3, beta=[0.1, 0.4, 0.2]).fit(X, list(sets.values()))
    close(listed.transform(NEW), model.transform(NEW))
    assert (listed.predict(X)[1] == found["b"]).all()
    equal = MORP(3, beta=0.6).fit(X, sets)
    close(equal.transform(NEW), MORP(3, beta=[0.2] * 3).fit(X, list(sets.values())).transform(NEW))
    named = MORP(3, task={"a": "regression", "b": "classification", "c": "multilabel"}, beta=betas)
    close(named.fit(X, sets).transform(NEW), model.transform(NEW))


def test_a_kernel_of_the_outputs() -> None:
    linear = MORP(2, beta=0.6).fit(X, CLASSES)
    # of classes every kernel that treats them alike is the same, up to scale
    same = MORP(2, beta=0.6, output_kernel="rbf").fit(X, CLASSES)
    close(same.transform(NEW), linear.transform(NEW))
    own = MORP(2, beta=0.6, output_kernel=lambda A, B: A @ B.T).fit(X, REAL)
    close(own.transform(NEW), MORP(2, beta=0.6).fit(X, REAL).transform(NEW))
    y = some_missing(REAL, 0.1)
    known = ~np.isnan(y).any(axis=1)
    half = np.where(known[:, None], y, np.nan)
    settings: Any = {"beta": 0.6, "output_kernel": "rbf", "standardize": False}
    close(MORP(2, **settings).fit(X, y).transform(NEW),
          MORP(2, **settings).fit(X, half).transform(NEW))  # fmt: skip
    with pytest.raises(ValueError, match=r"no row .* has all its outputs"):
        MORP(output_kernel="rbf").fit(X, np.where(np.eye(3)[np.arange(120) % 3], np.nan, REAL))


# ------------------------------------------------ rows in any form


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "rbf", "gamma": 0.1}, {"solver": "dual"},
                 {"kernel": "rbf", "gamma": 0.1, "form": "inverse"}], ids=str
)  # fmt: skip
def test_weights_are_repetitions(settings: Any) -> None:
    weight = RNG.integers(0, 4, 120).astype(float)
    again = np.repeat(np.arange(120), weight.astype(int))
    y = some_missing(REAL)
    model = MORP(3, **settings).fit(X, y, sample_weight=weight)
    wanted = MORP(3, **settings).fit(X[again], y[again])
    close(model.transform(NEW), wanted.transform(NEW), 1e-7)
    close(model.predict(NEW), wanted.predict(NEW), 1e-7)
    assert model.regularization_ == pytest.approx(wanted.regularization_)
    assert model.score(X, REAL, weight) == pytest.approx(wanted.score(X[again], REAL[again]))


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"solver": "dual"},
                                      {"landmarks": 40}], ids=str)  # fmt: skip
def test_sparse_rows_are_as_dense_ones(settings: Any) -> None:
    rows = np.where(RNG.random(X.shape) < 0.5, X, 0.0)
    dense = MORP(2, random_state=0, **settings).fit(rows, LABELS)
    thin = MORP(2, random_state=0, **settings).fit(sparse.csr_matrix(rows), LABELS)
    close(thin.transform(sparse.csr_array(rows)), dense.transform(rows), 1e-7)
    assert (thin.predict(rows) == dense.predict(rows)).all()


def test_tables_files_and_sources(tmp_path: Path) -> None:
    wanted = MORP(2).fit(X, LABELS[:, 0]).transform(X)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["y"], frame["w"] = LABELS[:, 0], 1.0
    model = MORP(2).fit(frame, "y", sample_weight="w")
    assert model.feature_names_in_.tolist() == list("abcdef")
    close(model.transform(frame), wanted)
    assert model.score(frame, "y") == MORP(2).fit(X, LABELS[:, 0]).score(X, LABELS[:, 0])
    frame.to_parquet(tmp_path / "rows.parquet")
    close(MORP(2).fit(tmp_path / "rows.parquet", "y", sample_weight="w").transform(frame), wanted)
    close(MORP(2).fit(open_source(X, y=LABELS[:, 0])).transform(X), wanted)
    close(MORP(2).fit(open_source(X), LABELS[:, 0]).transform(X), wanted)
    single = MORP(2).fit(X.astype(np.float32), LABELS[:, 0]).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    close(single, wanted, 1e-4)


@pytest.mark.parametrize("settings", [{}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.1}])
def test_far_from_zero(settings: Any) -> None:
    model = MORP(2, **settings).fit(X + 1e8, LABELS)
    close(model.transform(X + 1e8), MORP(2, **settings).fit(X, LABELS).transform(X), 1e-5)


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"beta": "cv"}], ids=str)
def test_partitions_do_not_matter(settings: Any) -> None:
    array = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")
    cut = array.from_array(X, chunks=(50, 6))
    model = MORP(2, random_state=0, **settings).fit(cut, LABELS)
    wanted = MORP(2, random_state=0, **settings).fit(X, LABELS)
    close(model.transform(cut), wanted.transform(X), 1e-7)


def test_threads_do_not_matter() -> None:
    digits, y = load_digits(return_X_y=True)
    one, two = (MORP(5, n_jobs=n).fit(digits, y).transform(digits) for n in (1, 2))
    close(two, one, 1e-9)


# ------------------------------------------------ choosing beta


def test_beta_is_chosen_by_rows_left_out() -> None:
    model = MORP(2, beta="cv", cv=3, random_state=0).fit(X, REAL)
    table = model.cv_results_
    best = int(np.argmax(table["mean_test_score"]))
    assert model.beta_ == table["param_beta"][best] > 0
    assert table["rank_test_score"][best] == 1
    assert table["mean_test_score"][best] > table["mean_test_score"][0] + 0.1  # beta = 0
    close(model.transform(NEW), MORP(2, beta=model.beta_).fit(X, REAL).transform(NEW))
    # the same, fit by fit
    folds = KFold(3, shuffle=True, random_state=1)
    grid = {"beta": [0.1, 0.8], "regularization": [0.001, 0.1]}
    model = MORP(2, beta="cv", cv=folds, cv_grid=grid, standardize=False).fit(X, REAL[:, :1])
    for i, chosen in enumerate(model.cv_results_["params"]):
        wanted = []
        for train, test in folds.split(X):
            one = MORP(2, standardize=False, **chosen).fit(X[train], REAL[train, :1])
            y, middle = REAL[test, :1], REAL[train, :1].mean()
            wanted.append(1 - ((one.predict(X[test]) - y) ** 2).sum() / ((y - middle) ** 2).sum())
        found = [model.cv_results_[f"split{j}_test_score"][i] for j in range(3)]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert model.regularization_ in grid["regularization"]
    G = rbf_kernel(X, gamma=0.01)
    given = MORP(2, kernel="precomputed", beta="cv", random_state=0).fit(G, CLASSES)
    by_rows = MORP(2, kernel="rbf", gamma=0.01, beta="cv", random_state=0).fit(X, CLASSES)
    np.testing.assert_allclose(given.cv_results_["mean_test_score"],
                               by_rows.cv_results_["mean_test_score"], rtol=1e-5)  # fmt: skip


def test_searches_of_scikit_learn_choose_it_too() -> None:
    grid = GridSearchCV(MORP(1), {"beta": [0.0, 0.9]}, cv=3).fit(X, CLASSES)
    assert grid.best_params_ == {"beta": 0.9}
    behind = make_pipeline(MORP(2), LogisticRegression())
    grid = GridSearchCV(behind, {"morp__beta": [0.0, 0.9]}, cv=3).fit(X, CLASSES)
    assert grid.best_params_ == {"morp__beta": 0.9}
    G = rbf_kernel(X, gamma=0.01)
    given = cross_val_score(MORP(2, kernel="precomputed", task="classification"), G, CLASSES)
    rows = cross_val_score(MORP(2, kernel="rbf", gamma=0.01, task="classification"), X, CLASSES)
    np.testing.assert_allclose(given, rows)


# ------------------------------------------------ files and mistakes


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "landmarks": 30}], ids=str
)
def test_saving(settings: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(store.ESTIMATORS, "MORP", "mixfold.estimators.kernels.morp")
    model = MORP(2, beta=[0.3, 0.2], random_state=0, **settings).fit(X, [CLASSES, REAL])
    model.save(tmp_path / "model")
    again = store.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(again.predict(NEW)[0], model.predict(NEW)[0])
    assert again.get_params() == model.get_params()
    assert again.solver_ == model.solver_
    rows = sparse.csr_array(X)
    model = MORP(2, beta="cv", cv=2, random_state=0, **settings).fit(rows, CLASSES)
    model.save(tmp_path / "model")
    again = store.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.cv_results_["params"] == model.cv_results_["params"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(NEW),
                                  model.transform(NEW))  # fmt: skip


def test_a_function_cannot_be_saved(tmp_path: Path) -> None:
    for name in ("kernel", "output_kernel"):
        model = MORP(2, **{name: rbf_kernel}).fit(X, CLASSES)
        with pytest.raises(ValueError, match=rf"^{name}=.* is a function.*MORP cannot be saved"):
            model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": 1.5}, "'beta' parameter of MORP must be a number from 0 to 1"),
        ({"beta": "best"}, "'beta' parameter"),
        ({"beta": [0.7, 0.7]}, "must be a list of 2 entries|sum to at most 1"),
        ({"regularization": -1.0}, "'regularization' parameter"),
        ({"form": "least"}, "'form' parameter"),
        ({"form": "inverse"}, r"span the outputs.*use form='max'"),
        ({"form": "inverse", "kernel": "rbf", "beta": 1.0}, r"needs beta < 1, got 1"),
        ({"kernel": "rbf", "solver": "primal"}, "needs kernel='linear', got kernel='rbf'"),
        ({"kernel": "precomputed"}, "must be square; got shape"),
        ({"beta": "cv", "cv": 500}, "cv=500 folds need as many rows"),
        ({"beta": "cv", "cv_grid": {"gamma": [1]}}, "cv_grid must be a dict of lists"),
        ({"beta": "cv", "cv_grid": {"beta": [0.5, 2.0]}}, "beta in cv_grid must be numbers from 0"),
        ({"beta": "cv", "cv_grid": {"beta": ["a"]}}, "beta in cv_grid must be numbers from 0"),
        ({"beta": "cv", "cv_grid": {"beta": []}}, "beta in cv_grid must be numbers from 0"),
        (
            {"beta": "cv", "cv_grid": {"beta": [0.5], "regularization": [-1.0]}},
            "regularization in cv_grid must be numbers >= 0",
        ),
        ({"beta": {"a": 0.5}}, "is for several sets of outputs"),
        ({"landmarks": 1}, "'landmarks' parameter"),
    ],
)
def test_mistakes_are_told(settings: Any, message: str) -> None:
    y = [CLASSES, CLASSES] if isinstance(settings.get("beta"), list) else CLASSES
    with pytest.raises(ValueError, match=message):
        MORP(2, **settings).fit(X, y)


def test_mistakes_in_the_data_are_told() -> None:
    with pytest.raises(ValueError, match="requires y to be passed"):
        MORP().fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        MORP().fit(open_source(X))
    holed = X.copy()
    holed[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"missing entries \(NaN\).*impute"):
        MORP().fit(holed, CLASSES)
    model = MORP().fit(X, {"a": CLASSES, "b": REAL})
    with pytest.raises(ValueError, match=r"missing entries \(NaN\)"):
        model.transform(holed)
    with pytest.raises(ValueError, match=r"y must be a dict with the keys \['a', 'b'\]"):
        model.score(X, CLASSES)
    with pytest.raises(ValueError, match=r"sets of outputs have \[120, 119\] rows"):
        MORP().fit(X, [CLASSES, REAL[1:]])
    with pytest.raises(ValueError, match="y has 119 entries, the data have 120 rows"):
        MORP().fit(X, CLASSES[1:])
    with pytest.raises(ValueError, match="beta must be a dict with the keys"):
        MORP(beta=[0.1, 0.2]).fit(X, {"a": CLASSES, "b": REAL})


@pytest.mark.parametrize("value", [1.0, 0.1, 1e6 + 0.1])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"solver": "dual"},
        {"kernel": "rbf"},
        {"kernel": "poly"},
        {"kernel": "rbf", "landmarks": 10},
    ],
)
def test_rows_that_are_all_the_same_are_told(how: dict[str, Any], value: float) -> None:
    with pytest.raises(ValueError, match=r"all rows of X .* are the same"):
        MORP(1, **how).fit(np.full((100, 3), value), np.arange(100) % 2)
