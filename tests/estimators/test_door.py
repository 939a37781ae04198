"""What cannot be computed is refused at the door, in words that say what to do."""

from __future__ import annotations

import decimal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.lib import recfunctions
from scipy import sparse

import mixfold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))


def fitted() -> Any:
    return mixfold.GaussianMixture(2, random_state=0).fit(X)


ESTIMATORS = [
    mixfold.GaussianMixture(2),
    mixfold.KMeans(2),
    mixfold.PPCA(1),
    mixfold.KernelPCA(1),
    mixfold.MLiT(2, 1),
    mixfold.GaussianPCP(2, 1),
    mixfold.MatrixFactorization(1),
    mixfold.NestedMixture(1, 1),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("form", ["array", "sparse", "pandas", "float32 text"])
def test_values_too_large_to_be_squared_are_named(estimator: Any, form: str) -> None:
    far = X.copy()
    far[3, 1] = -1e200
    given: Any = {
        "array": far,
        "sparse": sparse.csr_array(far),
        "pandas": pd.DataFrame(far, columns=list("abc")),
        "float32 text": far.astype(object),
    }[form]
    words = r"column ('b'|1) row 3 of X is -1e\+200|too large to be squared|[sS]parse"
    with pytest.raises((ValueError, TypeError), match=words), warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(given)


def test_new_rows_are_bounded_like_those_of_the_fit() -> None:
    with pytest.raises(ValueError, match=r"row 1 of X is 1e\+200.*Divide the column"):
        fitted().predict([[0.0, 0, 0], [0, 0, 1e200]])
    assert np.isfinite(fitted().predict_proba([[1e149, 0, 0]])).all()
    with pytest.raises(ValueError, match="column 0 row 0"):  # opposite signs do not cancel
        fitted().predict([[1e200, -1e200, 0.0]])


@pytest.mark.parametrize("value", [1e120, 1e-120])
def test_weights_have_a_range(value: float) -> None:
    with pytest.raises(ValueError, match=r"weight.*divide"):
        mixfold.GaussianMixture(2).fit(X, sample_weight=np.full(30, value))


def test_targets_are_bounded_too() -> None:
    y = RNG.normal(size=30)
    y[4] = 1e200
    for estimator in (mixfold.SupervisedPPCA(1), mixfold.MORP(1), mixfold.KernelCCA(1)):
        with pytest.raises(ValueError, match=r"y .*1e\+200"), warnings.catch_warnings():
            warnings.simplefilter("error")
            estimator.fit(X, y)


ODD: list[tuple[Any, str]] = [
    (np.zeros((4, 2), dtype=[("a", "f8"), ("b", "i4")]), "structured_to_unstructured"),
    (np.zeros(4, dtype=[("a", "f8"), ("b", "i4")]), "structured_to_unstructured"),
    (np.array([[1.0, {}], [2.0, 3.0]], dtype=object), "row 0, column 1.*dict"),
    (np.array([[1.0, b"x"], [2.0, 3.0]], dtype=object), "row 0, column 1.*b'x'"),
    (np.array([[1.0, [1]], [2.0, 3.0]], dtype=object), "row 0, column 1.*list"),
    (np.array([[1.0, 2j], [2.0, 3.0]], dtype=object), "row 0, column 1.*complex|Complex"),
    (np.array([[b"1", b"2"]]), "text"),
    (np.zeros((0, 2), dtype="U3"), "0 sample|text"),
    ([[1.0], [1.0, 2.0]], "row 1 has 2"),
    (np.zeros((4, 0)), "0 feature"),
    (np.zeros((0, 4)), "0 sample"),
    (np.ma.masked_array(np.zeros((0, 4)), mask=False), "0 sample"),
    (np.ma.masked_array([["a", "b"]], mask=False), "text"),
]


@pytest.mark.parametrize(("given", "words"), ODD, ids=[words for _, words in ODD])
def test_odd_arrays_are_refused_in_our_words(given: Any, words: str) -> None:
    for estimator in (mixfold.GaussianMixture(2), mixfold.PPCA(1), mixfold.PoissonMixture(1)):
        with pytest.raises((ValueError, TypeError), match=words):
            estimator.fit(given)


def test_the_remedy_for_a_structured_array_works() -> None:
    given = np.array([tuple(row) for row in X], dtype=[("a", "f8"), ("b", "f8"), ("c", "f8")])
    mixfold.GaussianMixture(2).fit(recfunctions.structured_to_unstructured(given))


def test_decimals_are_numbers() -> None:
    given = np.array([[decimal.Decimal("1.5"), 2.0], [3, 1], [2, 5]], dtype=object)
    assert mixfold.GaussianMixture(1).fit(given).means_.shape == (1, 2)


@pytest.mark.parametrize("how", ["index too large", "negative index", "pointers"])
def test_a_corrupt_sparse_matrix_is_refused_in_our_words(how: str) -> None:
    S = sparse.csr_array(np.abs(X))
    if how == "pointers":
        S.indptr = S.indptr.copy()
        S.indptr[2] = 50
    else:
        S.indices = S.indices.copy()
        S.indices[-1] = 3 if how == "index too large" else -1
    for estimator in (mixfold.GaussianMixture(2), mixfold.PLSI(2), mixfold.KernelPCA(1)):
        with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
            estimator.fit(S)


def test_sparse_columns_of_pandas_are_read() -> None:
    frame = pd.DataFrame(X * (np.abs(X) > 0.1), columns=list("abc"))
    dense = mixfold.GaussianMixture(2, random_state=0).fit(frame)
    thin = mixfold.GaussianMixture(2, random_state=0).fit(
        frame.astype(pd.SparseDtype("float64", 0.0))
    )
    np.testing.assert_array_equal(dense.means_, thin.means_)


def test_a_lazy_frame_is_refused_without_a_warning() -> None:
    lazy = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).lazy()
    for estimator in (mixfold.GaussianMixture(2), mixfold.SupervisedMixtureOfPPCA(1, 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(TypeError, match=r"X\.collect\(\)"):
                estimator.fit(lazy, np.arange(30) % 2)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (mixfold.Mixture("full", 2, alpha={}), "alpha"),
        (mixfold.MultinomialMixture(2, alpha=b"x"), "alpha"),
        (mixfold.GaussianMixture(2, weights_init="abc"), "weights_init"),
        (mixfold.GaussianMixture(2, means_init={}), "means_init"),
        (mixfold.BayesianGaussianMixture(2, covariance_prior="auto"), "covariance_prior"),
        (mixfold.BayesianGaussianMixture(2, mean_prior="auto"), "mean_prior"),
        (mixfold.GaussianMixture(2, checkpoint="\x00"), "checkpoint"),
        (mixfold.GaussianMixture(10**9), "n_components"),
        (mixfold.KMeans(10**9), "n_clusters|n_components"),
    ],
    ids=repr,
)
def test_parameters_of_the_wrong_kind_are_named(estimator: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        estimator.fit(np.abs(np.round(X)))


@pytest.mark.parametrize("value", [np.inf, 1e200])
def test_weights_are_refused_before_targets_are_learned(value: float) -> None:
    weight = np.ones(30)
    weight[3] = value
    for estimator in (
        mixfold.SupervisedPPCA(1),
        mixfold.MORP(1),
        mixfold.KernelCCA(1),
        mixfold.MatrixFactorization(1, supervised=True),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="the weight of row 3"):
                estimator.fit(X, np.arange(30) % 2, sample_weight=weight)


def test_folds_that_are_no_pairs_are_explained() -> None:
    search = mixfold.MixtureSearch(
        mixfold.GaussianMixture(), n_components=[1, 2], cv=[1, 2], criterion="held-out"
    )
    with pytest.raises(ValueError, match="cv=5"):
        search.fit(X)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"a,b\xff\xfe\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="UTF-8"):
        mixfold.GaussianMixture(1).fit(file)
