"""Every public estimator has a page, with rows and without."""

from __future__ import annotations

import pytest

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
