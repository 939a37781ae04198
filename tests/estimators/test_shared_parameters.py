"""Parameters that many estimators share are described, checked and preset in the same way."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mixfold import GaussianMixture
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.parameters import DIFFERS, SHARED, SHARED_OF_FIT, rules_of
from tests.brief import PUBLIC

TOOLS = Path(__file__).resolve().parents[2] / "tools"
if not TOOLS.exists():
    pytest.skip("needs tools/: run the tests in a clone", allow_module_level=True)
sys.path.insert(0, str(TOOLS))

import shared_parameters as tool  # noqa: E402

ESTIMATORS = {one.__name__: one for one in tool.public_estimators()}
FILE = Path("file.py")


def test_every_public_estimator_is_compared():
    assert sorted(ESTIMATORS) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_shared_parameters_are_those_of_the_table(name):
    assert tool.find_differences(ESTIMATORS[name]) == []


def test_every_exception_names_a_parameter():
    assert tool.find_unknown_exceptions() == []


@pytest.mark.parametrize("name", [*SHARED, *SHARED_OF_FIT])
def test_a_shared_parameter_is_shared_and_obeys_its_own_rules(name):
    shared = SHARED[name] if name in SHARED else SHARED_OF_FIT[name]
    functions = [one if name in SHARED else one.fit for one in ESTIMATORS.values()]
    having = [one for one in functions if name in inspect.signature(one).parameters]
    assert len(having) >= 4
    assert shared.text.endswith(".")
    if shared.rules is not None and shared.default is not DIFFERS:
        assert any(one.holds(shared.default) for one in shared.rules)


def test_a_parameter_without_a_rule_in_the_table_is_refused():
    with pytest.raises(ValueError, match="no rule for 'n_jobs'"):
        rules_of("tol", "n_jobs")


# ------------------------------------------------ differences are found


def changed(**parts: Any) -> Any:
    """GaussianMixture with another docstring, signature or other rules."""
    kind = type("GaussianMixture", (GaussianMixture,), {})
    kind.__doc__ = parts.get("doc", GaussianMixture.__doc__)
    kind._constraints = {**GaussianMixture._constraints, **parts.get("rules", {})}
    signature = inspect.signature(GaussianMixture)
    kind.__signature__ = signature.replace(
        parameters=[
            one.replace(default=parts.get("defaults", {}).get(one.name, one.default))
            for one in signature.parameters.values()
        ]
    )
    return kind


def doc_with(old: str, new: str) -> str:
    assert GaussianMixture.__doc__.count(old) == 1
    return GaussianMixture.__doc__.replace(old, new)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, None),
        ({"defaults": {"tol": 1.0, "max_iter": 3}}, None),  # these differ by the table
        ({"defaults": {"warm_start": 0}}, "warm_start: the default is 0, in the table False"),
        ({"rules": {"tol": (rule.number(0),)}}, r"tol: _constraints has a rule of its own"),
        ({"doc": doc_with("n_jobs : int,", "n_jobs : number,")}, "n_jobs: .* calls it 'number'"),
        ({"doc": doc_with("n_jobs : int,", "n_job : int,")}, "n_jobs: the docstring has no entry"),
        ({"doc": doc_with("Number of threads;", "Threads;")}, "n_jobs: the text does not begin"),
        ({"doc": doc_with("means all cores.", "means all cores.Or not.")}, "n_jobs: .* not begin"),
        ({"doc": doc_with("means all cores.", "means all cores. One is slow.")}, None),
    ],
)  # fmt: skip
def test_what_differs_is_named(parts, message):
    found = tool.find_differences(changed(**parts))
    assert len(found) == (message is not None)
    for one in found:
        assert re.search(rf"^GaussianMixture\.{message}", one)


def test_an_exception_that_is_none_any_more_is_named(monkeypatch):
    monkeypatch.setitem(tool.OTHER_TEXT, ("GaussianMixture", "tol"), "why")
    (one,) = tool.find_differences(GaussianMixture)
    assert one.startswith("GaussianMixture.tol: it is as in the table; take it out")
    monkeypatch.setitem(tool.OTHER_VALUES, ("GaussianMixture", "nothing"), "why")
    (one,) = tool.find_unknown_exceptions()
    assert one.startswith("GaussianMixture.nothing: named as an exception")


# ------------------------------------------------ writing


def test_new_words_replace_the_old_ones_and_keep_what_is_special():
    sources = tool.read_sources()
    assert {path: source.text for path, source in sources.items()} == tool.rewrite(sources)
    table = {
        name: replace(shared, text=f"A text of {name}, {'long ' * 20}enough. And two sentences.")
        for name, shared in SHARED.items()
    }
    new = tool.rewrite(sources, table)
    after = {path: replace(sources[path], text=text) for path, text in new.items()}
    for path, text in new.items():
        compile(text, str(path), "exec")
        assert max(map(len, text.split("\n"))) <= max(
            tool.WIDTH, *map(len, sources[path].text.split("\n"))
        )
        entries = zip(sources[path].entries(table), after[path].entries(table), strict=True)
        for old, now in entries:
            assert now.text == old.text.replace(SHARED[old.name].text, table[old.name].text)
            assert (now.kind, now.default) == (old.kind, old.default)
    assert len([entry for source in after.values() for entry in source.entries(table)]) > 250
    back = tool.rewrite(after)
    for path, source in sources.items():
        assert [e.text for e in replace(source, text=back[path]).entries(SHARED)] == [
            e.text for e in source.entries(SHARED)
        ]


def test_a_text_without_the_words_of_the_table_is_kept_behind_them():
    text = '''class A:
    """A.

    Parameters
    ----------
    n_jobs : int, default=None
        One. Two.

    Attributes
    ----------
    """
'''
    new = tool.rewrite({FILE: tool.Source(text, ("A",))})[FILE]
    assert new == text.replace("One.", f"{SHARED['n_jobs'].text} One.")
    assert tool.rewrite({FILE: tool.Source(new, ("A",))})[FILE] == new


def test_the_command_reports_and_writes(capsys, monkeypatch, tmp_path):
    assert tool.main([]) == 0
    assert "as in the table" in capsys.readouterr().out
    sources = {tmp_path / path.name: source for path, source in tool.read_sources().items()}
    stale = tmp_path / "kmeans.py"
    right, old = sources[stale].text, SHARED["n_jobs"].text
    sources[stale] = replace(sources[stale], text=right.replace(old, "Of KMeans."))
    monkeypatch.setattr(tool, "read_sources", lambda: sources)
    assert tool.main(["--write"]) == 0
    assert "kmeans.py; see the difference" in capsys.readouterr().out
    assert [*tmp_path.iterdir()] == [stale]
    assert stale.read_text() == right.replace(old, f"{old} Of KMeans.")
