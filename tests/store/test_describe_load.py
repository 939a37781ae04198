"""Looking into a model file, and estimators from it."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import contracts, store
from mixfold.store import ModelFileError


def test_describe_reads_no_arrays(
    path: Path, monkeypatch: pytest.MonkeyPatch, example: Callable[[], dict[str, Any]]
) -> None:
    store.write(path, "GaussianMixture", example(), {"rows": 1000, "score": np.float64(2.5)})
    monkeypatch.setattr(store, "read_arrays", None)
    # Records need not be known to be described.
    monkeypatch.setattr(contracts, "RECORDS", {})
    shown = store.describe(path)
    assert shown["kind"] == "GaussianMixture"
    assert shown["class"] == "mixfold.estimators.mixtures.gaussian_mixture.GaussianMixture"
    assert shown["format_version"] == 1
    assert shown["parameters"]["n_components"] == 3
    assert shown["summary"] == {"rows": 1000, "score": 2.5}
    assert shown["arrays"]["state/means"] == {"dtype": "float64", "shape": (3, 2)}
    json.dumps(shown)


def test_describe_shows_arrays_among_the_parameters(path: Path) -> None:
    store.write(path, "Other", {"parameters": {"means_init": np.zeros((2, 3), np.float32)}})
    shown = store.describe(path)
    assert shown["class"] is None
    assert shown["parameters"] == {"means_init": "array of float32, shape (2, 3)"}


class Estimator:
    def __init__(self, tree: Any) -> None:
        self.tree = tree

    @classmethod
    def _from_state(cls, tree: Any) -> Estimator:
        return cls(tree["state"])

    def _check_answers(self) -> None:
        pass


@pytest.fixture
def estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("mixfold_test_estimator")
    module.Estimator = Estimator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(store.ESTIMATORS, "Estimator", module.__name__)


def test_load_rebuilds_an_allowed_class(path: Path, estimator: None) -> None:
    store.write(path, "Estimator", {"parameters": {}, "state": {"a": [1, 2]}})
    loaded = store.load(path)
    assert type(loaded) is Estimator and loaded.tree == {"a": [1, 2]}


def test_load_refuses_other_classes(path: Path) -> None:
    store.write(path, "Popen", {"state": ["ls"]})
    with pytest.raises(ModelFileError, match="'Popen', which is not an estimator"):
        store.load(path)


def test_load_explains_a_state_that_does_not_fit(path: Path, estimator: None) -> None:
    store.write(path, "Estimator", {"parameters": {}})
    with pytest.raises(ModelFileError, match="not the state of a Estimator"):
        store.load(path)


def test_read_checks_the_kind(path: Path) -> None:
    store.write(path, "KMeans", [1])
    with pytest.raises(ModelFileError, match="it holds a 'KMeans', not a 'GaussianMixture'"):
        store.read(path, "GaussianMixture")
