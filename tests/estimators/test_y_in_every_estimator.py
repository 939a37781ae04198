"""The same y, in whatever holds it, is the same to every estimator that takes y."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from mixfold import (
    MORP,
    RBM,
    DeepBeliefNetwork,
    DeepFactorNetwork,
    KernelCCA,
    MatrixFactorization,
    MixtureClassifier,
    MixtureOfFactorModels,
    SupervisedMixtureOfPPCA,
    SupervisedPPCA,
)
from mixfold.engine.sources import open_source

RNG = np.random.default_rng(0)
NUMBERS = np.repeat([0, 1], 12)
X = RNG.normal(size=(24, 3)) + 2.0 * NUMBERS[:, None]
TEXT = np.array(["no", "yes"])[NUMBERS]
NAMES = ["a", "b", "c"]

SUPERVISED: list[Any] = [
    SupervisedPPCA(1),
    SupervisedPPCA(1, kernel="rbf", output_noise=0.1),
    SupervisedMixtureOfPPCA(2, 1, max_iter=5, tol=1.0, random_state=0),
    MixtureOfFactorModels(1, 1, max_iter=5, tol=1.0, random_state=0),
    MORP(1),
    KernelCCA(1),
    RBM(2, visible="gaussian", max_epochs=1, random_state=0),
    DeepBeliefNetwork((2, 2), visible="gaussian", max_epochs=1, fine_tune=None, random_state=0),
    MatrixFactorization(1, supervised=True, max_iter=5, tol=1.0, random_state=0),
    DeepFactorNetwork((2,), max_iter=5, tol=1.0, fine_tune=None, random_state=0),
    MixtureClassifier(random_state=0),
]
# those that learn from rows without a class too
PARTLY = [one for one in SUPERVISED if not isinstance(one, MixtureClassifier)]

FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "objects": lambda y: y.astype(object),
    "masked": np.ma.masked_array,
    "pandas": pd.Series,
    "category": lambda y: pd.Series(y, dtype="category"),
    "nullable": lambda y: pd.Series(y, dtype="string" if y.dtype.kind == "U" else "Int64"),
    "polars": lambda y: pl.Series(y.tolist()),
    "arrow": lambda y: pa.array(y.tolist()),
}
TABLES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


def answers(model: Any, X: Any) -> np.ndarray:
    """What the model says of rows: classes, and numbers that depend on all it has learned."""
    transform = getattr(model, "transform", None) or model.predict_proba
    return np.asarray(transform(X))


def named(estimator: Any) -> str:
    kernel = "-kernel" if getattr(estimator, "kernel", None) == "rbf" else ""
    return type(estimator).__name__ + kernel


@pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", SUPERVISED, ids=named)
class TestSameY:
    @pytest.mark.parametrize("values", [TEXT, NUMBERS, NUMBERS == 1], ids=["text", "int", "bool"])
    def test_whatever_holds_it(self, estimator: Any, values: np.ndarray) -> None:
        expected = clone(estimator).fit(X, values)
        for name, form in FORMS.items():
            if name == "nullable" and values.dtype == bool:
                continue
            found = clone(estimator).fit(X, form(values))
            assert found.classes_.tolist() == expected.classes_.tolist(), name
            np.testing.assert_array_equal(answers(found, X), answers(expected, X), err_msg=name)

    def test_the_name_of_a_column(self, estimator: Any, tmp_path: Path) -> None:
        columns = {**dict(zip(NAMES, X.T, strict=True)), "y": TEXT.tolist()}
        expected = answers(clone(estimator).fit(X, TEXT), X)
        rows = pd.DataFrame(X, columns=NAMES)
        file = tmp_path / "rows.parquet"
        pd.DataFrame(columns).to_parquet(file)
        for table in (*(make(columns) for make in TABLES.values()), file):
            model = clone(estimator).fit(table, "y")
            assert model.feature_names_in_.tolist() == NAMES
            assert model.classes_.tolist() == ["no", "yes"]
            np.testing.assert_allclose(answers(model, rows), expected, rtol=1e-6, atol=1e-8)

    def test_y_beside_a_source(self, estimator: Any) -> None:
        expected = clone(estimator).fit(X, NUMBERS)
        sources = ((open_source(X, y=NUMBERS), None), (open_source(X), NUMBERS))
        for source, y in sources:
            found = clone(estimator).fit(source, y)
            np.testing.assert_array_equal(answers(found, X), answers(expected, X))

    def test_another_length(self, estimator: Any) -> None:
        with pytest.raises(ValueError, match=r"23"):
            clone(estimator).fit(X, TEXT[1:])

    def test_classes_with_a_fraction(self, estimator: Any) -> None:
        if getattr(estimator, "task", "") == "auto":  # then they are numbers
            estimator = clone(estimator).set_params(task="classification")
        with pytest.raises(ValueError, match="Unknown label type"):
            clone(estimator).fit(X, NUMBERS + 0.5)


@pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", PARTLY, ids=named)
def test_marks_of_unknown_classes_are_the_same(estimator: Any) -> None:
    lacks = np.arange(24) % 3 == 0
    marked = np.where(lacks, None, NUMBERS.astype(object))
    forms = [
        np.where(lacks, -1, NUMBERS),
        np.where(lacks, np.nan, NUMBERS),
        marked,
        np.ma.masked_array(NUMBERS, lacks),
        pd.Series(marked, dtype="Int64"),
        pl.Series(marked.tolist()),
        pa.array(marked.tolist()),
        np.where(lacks, None, TEXT.astype(object)),
    ]
    models = [clone(estimator).fit(X, form) for form in forms]
    for model in models:
        assert len(model.classes_) == 2
        np.testing.assert_array_equal(answers(model, X), answers(models[0], X))
    weighed = clone(estimator).fit(X, forms[0], sample_weight=np.ones(24))
    np.testing.assert_allclose(answers(weighed, X), answers(models[0], X), rtol=1e-6)


def test_every_row_needs_a_class_for_a_classifier_of_densities() -> None:
    y = TEXT.astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="every row needs a class"):
        MixtureClassifier().fit(X, y)
    with pytest.raises(ValueError, match="MixtureClassifier estimator requires y to be passed"):
        MixtureClassifier().fit(X)
    # and -1 is a class as any other
    assert MixtureClassifier().fit(X, np.where(NUMBERS == 0, -1, 1)).classes_.tolist() == [-1, 1]
