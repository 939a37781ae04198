"""KernelCCA as a user meets it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cross_decomposition import CCA, PLSSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from mixfold import DegenerateWarning, store
from mixfold.contracts import Array
from mixfold.estimators.kernels.kernel_cca import KernelCCA

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(150, 2))
X = Z @ RNG.normal(size=(2, 6)) + RNG.normal(size=(150, 6)) + 5.0
Y = (Z @ RNG.normal(size=(2, 4)) + RNG.normal(size=(150, 4))) * [1.0, 10.0, 0.1, 1.0] - 3.0
CLASSES = np.array(["one", "three", "two"])[(Z @ [[1, -1, 0], [1, 1, -1]]).argmax(axis=1)]
LABELS = (Z > 0).astype(int)
NEW = RNG.normal(size=(20, 6)) + 5.0


def close(found: Array, wanted: Array, atol: float = 1e-8) -> None:
    np.testing.assert_allclose(found, wanted, atol=atol * np.abs(wanted).max())


def correlations(a: Array, b: Array) -> Array:
    return np.array([np.corrcoef(p, q)[0, 1] for p, q in zip(a.T, b.T, strict=True)])


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_without_regularization_it_is_canonical_correlation_analysis(solver: str) -> None:
    model = KernelCCA(3, regularization=0.0, solver=solver).fit(X, Y)
    peer = CCA(3, max_iter=10000, tol=1e-14).fit(X, Y)
    np.testing.assert_allclose(model.correlations_, correlations(*peer.transform(X, Y)), rtol=1e-5)
    close(model.singular_values_, model.correlations_)
    zx, zy = model.transform(X, Y)
    close(correlations(zx, zy), model.correlations_)
    for scores in (zx, zy):
        close(scores.T @ scores / 150, np.eye(3))
    close(zx.T @ zy / 150, np.diag(model.correlations_))
    assert model.score(X, Y) == pytest.approx(model.correlations_.mean())
    close((X - model.x_mean_) @ model.x_weights_, zx)
    # of classes it is discriminant analysis
    lda = LinearDiscriminantAnalysis(n_components=2).fit(X, CLASSES).transform(X)
    ours = KernelCCA(2, regularization=0.0, solver=solver).fit(X, CLASSES).transform(X)
    close(np.abs(correlations(ours, lda)), np.ones(2))


def test_all_of_it_regularized_it_is_partial_least_squares() -> None:
    plain = {"balance": False, "standardize": False}
    model = KernelCCA(3, regularization=1.0, **plain).fit(X, Y)  # type: ignore[arg-type]
    peer = PLSSVD(3, scale=False).fit(X, Y)
    for ours, theirs in ((model.x_weights_, peer.x_weights_), (model.y_weights_, peer.y_weights_)):
        close(np.abs(ours / np.linalg.norm(ours, axis=0)), np.abs(theirs))
    balanced = KernelCCA(3, regularization=1.0, standardize=False).fit(X, Y)
    close(np.abs(balanced.x_weights_ / np.linalg.norm(balanced.x_weights_, axis=0)),
          np.abs(peer.x_weights_))  # fmt: skip


def test_more_columns_than_rows_are_stable() -> None:
    noise = RNG.normal(size=(150, 400))
    wide = np.hstack([X, noise])
    train, test = slice(0, 75), slice(75, None)
    model = KernelCCA(1, regularization=0.5).fit(wide[train], Y[train])
    assert model.solver_ == "dual"
    assert model.score(wide[test], Y[test]) > 0.5
    interpolating = KernelCCA(1, regularization=0.0).fit(wide[train], Y[train])
    assert interpolating.correlations_[0] == pytest.approx(1.0)
    shifted = KernelCCA(1, regularization=0.5).fit(wide[train] + 1e6, 7 * Y[train])
    close(shifted.transform(wide[test] + 1e6), model.transform(wide[test]), 1e-6)
    primal = KernelCCA(1, regularization=0.5, solver="primal").fit(wide[train], Y[train])
    close(primal.transform(wide[test]), model.transform(wide[test]))


def test_kernels_on_both_sides() -> None:
    angle = RNG.uniform(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * RNG.normal(size=(200, 2))
    other = np.column_stack([np.cos(2 * angle), RNG.normal(size=200)])
    linear = KernelCCA(1).fit(circle[:100], other[:100])
    curved = KernelCCA(1, kernel="rbf", gamma=1.0, output_kernel="rbf", regularization=0.05)
    curved.fit(circle[:100], other[:100])
    assert curved.score(circle[100:], other[100:]) > 0.9
    assert linear.score(circle[100:], other[100:]) < 0.5
    given = KernelCCA(1, kernel="precomputed", output_kernel="rbf", regularization=0.05)
    given.fit(rbf_kernel(circle[:100], gamma=1.0), other[:100])
    products = rbf_kernel(circle[100:], circle[:100], gamma=1.0)
    close(given.transform(products), curved.transform(circle[100:]), 1e-6)
    marked = KernelCCA(1, kernel="rbf", gamma=1.0, output_kernel="rbf", regularization=0.05,
                       landmarks=60, random_state=0).fit(circle[:100], other[:100])  # fmt: skip
    assert marked.solver_ == "landmarks"
    assert marked.score(circle[100:], other[100:]) > 0.9


def test_labels_and_classes() -> None:
    labels = KernelCCA(2).fit(X, LABELS)
    assert labels.classes_.tolist() == [0, 1]
    zx, zy = labels.transform(X, LABELS)
    close(correlations(zx, zy), labels.correlations_)
    with pytest.warns(DegenerateWarning, match=r"only 2 pair\(s\) of directions.*n_components=4"):
        classes = KernelCCA(4).fit(X, CLASSES)
    assert classes.transform(X).shape == (150, 2)
    assert classes.get_feature_names_out().tolist() == ["kernelcca0", "kernelcca1"]


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "output_kernel": "rbf"},
                                      {"solver": "dual"}], ids=str)  # fmt: skip
def test_weights_are_repetitions_and_rows_without_a_pair_are_left_out(settings: Any) -> None:
    weight = RNG.integers(0, 4, 150).astype(float)
    again = np.repeat(np.arange(150), weight.astype(int))
    model = KernelCCA(2, **settings).fit(X, Y, sample_weight=weight)
    wanted = KernelCCA(2, **settings).fit(X[again], Y[again])
    close(model.transform(NEW), wanted.transform(NEW), 1e-6)
    close(model.correlations_, wanted.correlations_)
    assert model.score(X, Y, weight) == pytest.approx(wanted.score(X[again], Y[again]), rel=1e-6)
    y = Y.copy()
    y[weight == 0, 1] = np.nan
    settings = {**settings, "standardize": False}
    lacking = KernelCCA(2, **settings).fit(X, y)
    close(lacking.transform(NEW),
          KernelCCA(2, **settings).fit(X[weight > 0], Y[weight > 0]).transform(NEW))  # fmt: skip
    assert np.isnan(lacking.transform(X, y)[1]).all(axis=1).tolist() == (weight == 0).tolist()
    known = weight > 0
    assert lacking.score(X, y) == pytest.approx(lacking.score(X[known], Y[known]))


def test_sparse_rows_and_tables() -> None:
    rows = np.where(RNG.random(X.shape) < 0.5, X, 0.0)
    for settings in ({}, {"solver": "dual"}, {"kernel": "rbf"}):
        thin = KernelCCA(2, **settings).fit(sparse.csr_array(rows), Y)  # type: ignore[arg-type]
        dense = KernelCCA(2, **settings).fit(rows, Y)  # type: ignore[arg-type]
        close(thin.transform(sparse.csr_array(rows)), dense.transform(rows))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["y"] = CLASSES
    model = KernelCCA(2).fit(frame, "y")
    close(model.transform(frame), KernelCCA(2).fit(X, CLASSES).transform(X))
    close(model.transform(frame, "y")[1], model.transform(frame, CLASSES)[1])


def test_regularization_is_chosen_by_a_search() -> None:
    wide = np.hstack([X, RNG.normal(size=(150, 300))])
    grid = GridSearchCV(KernelCCA(1), {"regularization": [0.0, 0.5]}, cv=3).fit(wide, Y)
    assert grid.best_params_ == {"regularization": 0.5}


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "output_kernel": "rbf"}], ids=str)
def test_saving(settings: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(store.ESTIMATORS, "KernelCCA", "mixfold.estimators.kernels.kernel_cca")
    model = KernelCCA(2, **settings).fit(X, Y)
    model.save(tmp_path / "model")
    again = store.load(tmp_path / "model")
    for found in (again, pickle.loads(pickle.dumps(model))):
        for ours, theirs in zip(found.transform(X, Y), model.transform(X, Y), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(found.correlations_, model.correlations_)
    with pytest.raises(ValueError, match=r"kernel=.* is a function.*KernelCCA cannot be saved"):
        KernelCCA(kernel=rbf_kernel).fit(X, Y).save(tmp_path / "other")


def test_a_list_of_one_table_is_that_table() -> None:
    expected = KernelCCA(1).fit(X, Y).correlations_
    np.testing.assert_array_equal(KernelCCA(1).fit(X, [Y]).correlations_, expected)


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="'regularization' parameter of KernelCCA must be a num"):
        KernelCCA(regularization=1.5).fit(X, Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelCCA().fit(X)
    with pytest.raises(ValueError, match="takes one table as y"):
        KernelCCA().fit(X, {"a": Y})
    with pytest.raises(ValueError, match=r"one table as y, got a list of 2 .*column_stack\(y\)"):
        KernelCCA().fit(X, [Y, Y[:, 0]])
    with pytest.raises(ValueError, match="y is the same in all of the 150 sample"):
        KernelCCA(task="regression").fit(X, np.ones((150, 2)))
    holed = X.copy()
    holed[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"missing entries \(NaN\).*impute"):
        KernelCCA().fit(holed, Y)
    with pytest.raises(ValueError, match="y has no row"):
        KernelCCA().fit(X, Y).score(X, np.full(Y.shape, np.nan))
    with pytest.raises(ValueError, match=r"y has 149 entries"):
        KernelCCA().fit(X, Y).score(X, Y[1:])


@pytest.mark.parametrize("how", [{}, {"solver": "dual"}, {"kernel": "rbf"}])
@pytest.mark.parametrize("n", [50, 100, 150])
def test_rows_that_are_all_the_same_are_told(n: int, how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"all rows of X .* are the same"):
        KernelCCA(1, **how).fit(np.full((n, 3), 0.1), CLASSES[:n])
