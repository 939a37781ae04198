"""Every public estimator has a page, with rows and without."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import BaseEstimator

import mixfold

from .conftest import fitted, rows_for

# Names: a module that cannot be imported fails its own tests only.
NAMES = [name for name in mixfold.__all__ if name[0].isupper() and not name.endswith("Warning")]


def test_names_are_those_of_the_estimators() -> None:
    classes = [v for n in mixfold.__all__ if inspect.isclass(v := getattr(mixfold, n))]
    assert {c.__name__ for c in classes if issubclass(c, BaseEstimator)} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_page_of_rows(name: str, page) -> None:
    estimator = getattr(mixfold, name)
    X = rows_for(estimator)
    model, y = fitted(estimator)
    found = page(model, X, y)
    assert {"map", "missing", "settings"} <= set(found.sections)
    assert len(set(found.ids)) == len(found.ids)
    assert "nan" not in found.words["head"].lower()
    assert len(found.text) < 300_000


@pytest.mark.parametrize("name", NAMES)
def test_page_of_the_model_alone(name: str, page) -> None:
    estimator = getattr(mixfold, name)
    model, _ = fitted(estimator)
    found = page(model)
    assert found.sections[-1] == "left-out"
    assert "No data were given" in found.words["left-out"]
    assert "map" not in found.sections and "settings" in found.sections
