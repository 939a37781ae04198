"""The catalogue is the one list of public estimators; what repeats it for editors agrees."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from sklearn.base import BaseEstimator

import mixfold
from mixfold import store
from mixfold.catalogue import CATALOGUE, ENTRIES
from mixfold.cli.registry import MODELS


def test_every_row_names_its_class_and_its_parameters() -> None:
    for entry in CATALOGUE:
        kind = entry.load()
        assert kind.__name__ == entry.estimator and issubclass(kind, BaseEstimator)
        assert kind.__module__ == entry.home, "the class is defined where the catalogue says"
        parameters = entry.all_parameters()
        for sized in (entry.factors, entry.family, entry.layers, entry.command and entry.size):
            assert not sized or sized in parameters, (entry.estimator, sized)


def test_every_public_estimator_has_one_row() -> None:
    values = (getattr(mixfold, name) for name in mixfold.__all__)
    public = {v.__name__ for v in values if inspect.isclass(v) and issubclass(v, BaseEstimator)}
    assert public == set(ENTRIES) and len(ENTRIES) == len(CATALOGUE)
    commands = [entry.command for entry in CATALOGUE if entry.command]
    assert len(set(commands)) == len(commands) == len(MODELS)
    assert all(entry.group and entry.summary for entry in MODELS.values())


def test_editors_and_type_checkers_are_told_the_same() -> None:
    tree = ast.parse(Path(mixfold.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    told = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mixfold")
        for alias in node.names
    }
    assert told == mixfold._HOMES


def test_files_may_name_what_can_be_saved() -> None:
    assert set(store.ESTIMATORS) == set(ENTRIES) - {"MixtureSearch"}


def test_every_base_class_serves_several_public_estimators() -> None:
    """What one estimator alone needs stands in its own file, where it is read."""
    served: dict[type, list[str]] = {}
    for entry in CATALOGUE:
        for base in entry.load().__mro__[1:]:
            if base.__module__.startswith("mixfold."):
                served.setdefault(base, []).append(entry.estimator)
    lonely = {base.__name__: names for base, names in served.items() if len(names) == 1}
    assert lonely == {}


# what ``score_samples`` is where it is no density of rows that one could draw from, and how the
# class says so
NO_DRAWS = {
    "KernelPCA": "The density is one of features",
    "MLiT": "no sampling of rows",
    "PLSI": "There is no model of new documents",
}


def test_every_density_of_rows_can_be_drawn_from() -> None:
    scored = [one.load() for one in CATALOGUE if hasattr(one.load(), "score_samples")]
    without = {one.__name__: one for one in scored if not hasattr(one, "sample")}
    assert without.keys() == NO_DRAWS.keys()
    for name, model in without.items():
        assert NO_DRAWS[name] in " ".join((model.__doc__ or "").split()), name
