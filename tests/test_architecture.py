"""Limits of the house: small files, short functions, docstrings that tell the truth."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

import mixfold

SOURCE = Path(mixfold.__file__).parent
FILE_LINES, BODY_LINES = 250, 30
# What is larger, and how large it may be: a list to shorten, not to extend.
LARGER_FILES = {
    "families/dense.py": 290,
    "models/mixture.py": 340,
}
LONGER_BODIES = {"engine/climb.py:_accept": 36}

ESTIMATORS = [
    value
    for name in mixfold.__all__
    if inspect.isclass(value := getattr(mixfold, name)) and issubclass(value, BaseEstimator)
]


def _files() -> list[str]:
    return sorted(p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py"))


def _tree(file: str) -> tuple[ast.Module, int]:
    text = (SOURCE / file).read_text(encoding="utf-8")
    return ast.parse(text), len(text.splitlines())


def _docstring_lines(tree: ast.AST) -> int:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    owners = [n for n in ast.walk(tree) if isinstance(n, kinds) and ast.get_docstring(n)]
    return sum((n.body[0].end_lineno or 0) - n.body[0].lineno + 1 for n in owners)


def _bodies(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("file", _files())
def test_files_are_small(file: str) -> None:
    tree, total = _tree(file)
    lines = total - _docstring_lines(tree)
    limit = LARGER_FILES.get(file, FILE_LINES)
    assert lines <= limit, f"{file} has {lines} lines without docstrings; split it by ideas"


@pytest.mark.parametrize("file", _files())
def test_functions_are_short(file: str) -> None:
    for name, lines in _bodies(_tree(file)[0]):
        limit = LONGER_BODIES.get(f"{file}:{name}", BODY_LINES)
        assert lines <= limit, f"{name} in {file} has {lines} lines; give its parts names"


def test_exceptions_are_still_needed() -> None:
    for file in LARGER_FILES:
        tree, total = _tree(file)
        assert total - _docstring_lines(tree) > FILE_LINES, f"{file} is small now: unlist it"
    for place in LONGER_BODIES:
        file, name = place.split(":")
        longest = max(lines for n, lines in _bodies(_tree(file)[0]) if n == name)
        assert longest > BODY_LINES, f"{place} is short now: unlist it"


# ------------------------------------------------ docstrings of public estimators


def _section(doc: str, title: str) -> list[tuple[str, str]]:
    """(name, rest of its line) of each entry of a numpydoc section."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    entries = []
    for line in (found.group(1) if found else "").splitlines():
        if line and not line[0].isspace():
            names, _, rest = line.partition(" : ")
            entries += [(name.strip(), rest) for name in names.split(",")]
    return entries


def _signature(function: Any) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    parameters.pop("self", None)
    return parameters


def test_there_are_public_estimators() -> None:
    assert mixfold.GaussianMixture in ESTIMATORS


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_documented_parameters_are_those_of_the_signature(estimator: type) -> None:
    entries = _section(inspect.getdoc(estimator) or "", "Parameters")
    signature = _signature(estimator.__init__)  # type: ignore[misc]
    assert [name for name, _ in entries] == list(signature)
    for name, rest in entries:
        stated = re.search(r"default=(\([^)]*\)|\S+?)(?:$|[\s,;)]|\.\s)", rest + "\n")
        assert stated, f"{name} of {estimator.__name__} states no default"
        assert ast.literal_eval(stated.group(1)) == signature[name].default, name


def _methods() -> list[Any]:
    return [
        pytest.param(method, id=f"{estimator.__name__}.{name}")
        for estimator in ESTIMATORS
        for name, method in inspect.getmembers(estimator, inspect.isfunction)
        if not name.startswith("_") and method.__module__.startswith("mixfold")
    ]


@pytest.mark.parametrize("method", _methods())
def test_public_methods_document_all_or_none_of_their_parameters(method: Any) -> None:
    doc = inspect.getdoc(method)
    assert doc, f"{method.__qualname__} says nothing"
    named = [name for name, _ in _section(doc, "Parameters")]
    if named:
        assert named == list(_signature(method))


def _fitted(estimator: Any) -> Any:
    X = np.random.default_rng(0).normal(size=(60, 6))  # two factors need five columns
    if hasattr(estimator, "_family_name"):  # of counts, codes or yes and no
        X = (X > 0).astype(float)
    if "visible" in _signature(estimator):  # shares between 0 and 1
        X = 1 / (1 + np.exp(-X))
    if get_tags(estimator()).input_tags.positive_only:
        X = np.abs(X)
    sizes = [name for name in ("n_components", "n_clusters") if name in _signature(estimator)]
    size = {} if estimator is mixfold.MixtureSearch or not sizes else {sizes[0]: 2}
    if estimator is mixfold.MixtureClassifier:  # with all that it can be asked for
        size = {"estimator": mixfold.MLiT(), "novelty": 0.1, "paper_protocol": True}
    model = estimator(random_state=0, **size)
    return model.fit(X, X[:, 0] > 0) if get_tags(model).target_tags.required else model.fit(X)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_documented_attributes_exist_after_a_fit(estimator: type) -> None:
    entries = _section(inspect.getdoc(estimator) or "", "Attributes")
    assert entries
    fitted = _fitted(estimator)
    for name, _ in entries:
        if name != "feature_names_in_":  # only tables have names
            assert hasattr(fitted, name), f"{estimator.__name__} documents {name}"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_public_estimator_has_an_example(estimator: type) -> None:
    assert ">>> " in (inspect.getdoc(estimator) or "")
