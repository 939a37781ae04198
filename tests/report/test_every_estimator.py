"""Every public estimator has a page, with rows and without."""

from __future__ import annotations

import numpy as np
import pytest

import mixfold
from tests.brief import BRIEF, PUBLIC, fitted


@pytest.mark.parametrize("name", PUBLIC)
def test_page_of_rows(name: str, page) -> None:
    _, X, y = BRIEF[name]
    found = page(fitted(name), X, y)
    rows_or_documents = "topics" if hasattr(fitted(name), "topics_") else "missing"
    assert {"map", rows_or_documents, "settings"} <= set(found.sections)
    assert len(set(found.ids)) == len(found.ids)
    assert "nan" not in found.words["head"].lower()
    assert len(found.text) < 300_000


@pytest.mark.parametrize("name", PUBLIC)
def test_page_of_the_model_alone(name: str, page) -> None:
    found = page(fitted(name))
    assert found.sections[-1] == "left-out"
    assert "No rows were given" in found.words["left-out"]
    assert "map" not in found.sections and "settings" in found.sections


@pytest.mark.parametrize(
    ("kernel", "shape"), [("rbf", (27, 4)), ("poly", (27, 4)), ("rbf", (9, 8))]
)
@pytest.mark.filterwarnings("ignore:.*")
def test_page_of_a_model_in_the_space_of_a_kernel(
    kernel: str, shape: tuple[int, int], page
) -> None:
    """Its means and loadings are not those of columns, also where there are as many."""
    rng = np.random.default_rng(0)
    X, y = rng.random(shape), rng.integers(0, 2, shape[0])
    model = mixfold.SupervisedPPCA(2, kernel=kernel, random_state=0).fit(X, y)
    found = page(model, X, y)
    assert "gives probability to negative values" not in found.text
    assert "factors" not in found.sections and "communality" not in found.text
