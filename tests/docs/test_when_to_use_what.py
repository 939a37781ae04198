"""The table of "When to use what" says of each model what its class says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from sklearn.utils import get_tags

from mixfold import GaussianMixture, MatrixFactorization
from mixfold.catalogue import ENTRIES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "which-model.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`" in line
]
CLASSES = {entry.estimator: entry.load() for entry in ENTRIES.values()}


def _made(name: str) -> object:
    arguments = inspect.signature(CLASSES[name]).parameters
    if name == "LatentDensity":
        return CLASSES[name](MatrixFactorization(), GaussianMixture())
    needs = "estimator" in arguments and arguments["estimator"].default is inspect.Parameter.empty
    return CLASSES[name](GaussianMixture()) if needs else CLASSES[name]()


def _first(cell: str) -> str:
    return re.findall(r"`([A-Z]\w+)", cell)[0]


def test_every_model_is_in_the_table() -> None:
    named = set(re.findall(r"`([A-Z]\w+)", " ".join(row[1] for row in ROWS)))
    assert set(CLASSES) <= named


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].replace("`", ""))
def test_cells_are_what_the_class_says(row: list[str]) -> None:
    _, take, labels, holes, words, _, rows = row
    cls, model = CLASSES[_first(take)], _made(_first(take))
    tags = get_tags(model)
    assert holes.startswith("yes") == tags.input_tags.allow_nan
    assert labels.startswith("needed") == tags.target_tags.required
    outputs = "y" in inspect.signature(cls.fit).parameters
    known = "component_labels" in inspect.signature(cls.fit).parameters
    if labels == "some":
        assert known or outputs
    if known:
        assert labels == "some"
    assert ("streams" in rows) == hasattr(cls, "partial_fit") or "gibbs" in take
    if words == "yes" and "Search" not in take:
        assert tags.input_tags.sparse
