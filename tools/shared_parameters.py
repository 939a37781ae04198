"""Compare what estimators say of the parameters that many of them share with one table.

Use
---
::

    python tools/shared_parameters.py            # what differs from the table, if anything does
    python tools/shared_parameters.py --write    # put the table's words into the docstrings

The table is ``SHARED`` (parameters of ``fit``: ``SHARED_OF_FIT``) in
``mixfold/estimators/shell/parameters.py``. A shared parameter has the default and the rules of the
table, its type in the docstring is the table's, and its text begins with the table's; an estimator
may add sentences of its own. Parameters that mean something else are named below with the reason.

``--write`` rewrites texts of class docstrings; types, defaults, rules and the docstrings of ``fit``
are for you to change. Where the words of the table were changed, the old ones are the sentences
with which all texts begin that do not begin with the new ones; they are replaced. If a single text
differs, nobody can tell its old words from its own: it is kept, after the words of the table.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mixfold
from mixfold.estimators.shell.base import parameter_rules
from mixfold.estimators.shell.parameters import DIFFERS, SHARED, SHARED_OF_FIT, Parameter

WIDTH = 100
Table = Mapping[str, Parameter]

_ONE_STEP = "compares what one step changes, not the gain of all steps to come"
_SQUAREM = "is extrapolated by SQUAREM only"
_PENALTY = "the weight of a penalty of the classifier, not a coefficient of a kernel"
_BATCHES = "a row of weight 2 is not in two batches"
_PASSED_ON = "is what the estimators take that are fitted"
_ONE_ITERATION = "its result needs one iteration at least"
# (estimator or method, parameter) whose text is not the table's
OTHER_TEXT = {
    ("DeepFactorNetwork", "gamma"): _PENALTY,
    ("DeepFactorNetwork", "tol"): _ONE_STEP,
    ("KernelPCA", "tol"): "a residual of eigenpairs, not a gain",
    ("MLiT", "tol"): _ONE_STEP,
    ("MatrixFactorization", "gamma"): _PENALTY,
    ("MixtureClassifier", "verbose"): "fits of classes are reported, not iterations",
    ("MixtureClustering", "verbose"): "fits of settings are reported, not iterations",
    ("MixtureSearch", "n_jobs"): "fits at the same time; None is one, by all cores",
    ("MixtureSearch", "verbose"): "fits of settings are reported, not iterations",
    # of ``fit``
    ("DeepBeliefNetwork.fit", "sample_weight"): _BATCHES,
    ("GaussianPCP.fit", "component_labels"): "its components are called clusters",
    ("MixtureSearch.fit", "component_labels"): _PASSED_ON,
    ("MixtureSearch.fit", "sample_weight"): _PASSED_ON,
    ("RBM.fit", "sample_weight"): _BATCHES,
}
# (estimator, parameter) of which type, default or rules are not the table's
OTHER_VALUES = {
    ("DeepFactorNetwork", "gamma"): _PENALTY,
    ("GaussianPCP", "acceleration"): _SQUAREM,
    ("KMeans", "max_iter"): _ONE_ITERATION,
    ("KMeans", "n_init"): "takes 'auto', as scikit-learn's does",
    ("KernelPCA", "gamma"): "takes 'learn', too",
    ("KernelPCA", "max_iter"): _ONE_ITERATION,
    ("MatrixFactorization", "gamma"): _PENALTY,
}

# ------------------------------------------------ entries of docstrings


@dataclass(frozen=True, slots=True)
class Entry:
    """A parameter in a docstring: its lines, type, default and text."""

    name: str
    kind: str
    default: str
    text: str
    # numbers of its first line and of the one after its last
    start: int
    stop: int
    # whether the docstring is a template, in which braces are doubled
    template: bool = False


def find_entries(lines: list[str], indent: str = "") -> Iterator[Entry]:
    """Yield what the sections 'Parameters' at an indentation describe, one parameter at a time."""
    for n, line in enumerate(lines[:-1]):
        if line == f"{indent}Parameters" and lines[n + 1] == f"{indent}----------":
            stop = next((k for k in range(n, len(lines)) if not lines[k].strip()), len(lines))
            yield from _section_entries(lines, n + 2, stop, indent)


def _section_entries(lines: list[str], start: int, stop: int, indent: str) -> Iterator[Entry]:
    template = any("{{" in line for line in lines[start:stop])
    heads = [k for k in range(start, stop) if re.match(rf"{indent}\w", lines[k])]
    for head, after in zip(heads, [*heads[1:], stop], strict=True):
        name, _, kind = lines[head].strip().partition(" : ")
        kind, _, default = kind.partition(", default=")
        text = " ".join(line.strip() for line in lines[head + 1 : after])
        if template:
            kind = kind.replace("{{", "{").replace("}}", "}")
        yield Entry(name, kind, default, text, head, after, template)


def begins_with(text: str, beginning: str) -> bool:
    """Whether the first sentences of a text are these."""
    return text == beginning or text.startswith(f"{beginning} ")


# ------------------------------------------------ comparison


def public_estimators() -> list[Any]:
    """The estimators that users see."""
    found = (getattr(mixfold, name) for name in mixfold.__all__)
    return [one for one in found if inspect.isclass(one) and hasattr(one, "get_params")]


def find_differences(estimator: Any) -> list[str]:
    """Say in which shared parameters an estimator differs from the tables without being named."""
    rules = parameter_rules(estimator)
    return [
        *_compare(estimator.__name__, estimator, SHARED, rules),
        *_compare(f"{estimator.__name__}.fit", estimator.fit, SHARED_OF_FIT, {}),
    ]


def _compare(owner: str, function: Any, table: Table, rules: Mapping[str, Any]) -> Iterator[str]:
    signature = inspect.signature(function).parameters
    lines = (inspect.getdoc(function) or "").splitlines()
    entries = {entry.name: entry for entry in find_entries(lines)}
    for name in [one for one in table if one in signature]:
        place = f"{owner}.{name}"
        if name not in entries:
            yield f"{place}: the docstring has no entry of it alone"
            continue
        shared, entry, default = table[name], entries[name], signature[name].default
        values = list(_compare_values(shared, entry, default, rules))
        texts = [] if begins_with(entry.text, shared.text) else [_say_text(shared, entry)]
        for found, exceptions in ((values, OTHER_VALUES), (texts, OTHER_TEXT)):
            if (owner, name) not in exceptions:
                yield from (f"{place}: {one}" for one in found)
            elif not found:
                yield f"{place}: it is as in the table; take it out of the exceptions"


def _compare_values(
    shared: Parameter, entry: Entry, default: Any, constraints: Mapping[str, Any]
) -> Iterator[str]:
    if shared.default != DIFFERS and repr(default) != repr(shared.default):
        yield f"the default is {default!r}, in the table {shared.default!r}"
    if shared.kind is not None and entry.kind != shared.kind:
        yield f"the docstring calls it {entry.kind!r}, the table {shared.kind!r}"
    if shared.rules is not None and constraints.get(shared.name) is not shared.rules:
        yield "_constraints has a rule of its own; leave it out, and that of the table holds"


def _say_text(shared: Parameter, entry: Entry) -> str:
    return f"the text does not begin with {shared.text!r} but is {entry.text!r}"


def find_unknown_exceptions() -> list[str]:
    """Say which exceptions name no shared parameter of an estimator."""
    known = {
        (owner, name)
        for estimator in public_estimators()
        for owner, function, table in (
            (estimator.__name__, estimator, SHARED),
            (f"{estimator.__name__}.fit", estimator.fit, SHARED_OF_FIT),
        )
        for name in inspect.signature(function).parameters
        if name in table
    }
    return [
        f"{owner}.{name}: named as an exception, but there is no such shared parameter"
        for owner, name in sorted({*OTHER_TEXT, *OTHER_VALUES} - known)
    ]


# ------------------------------------------------ writing


@dataclass(frozen=True, slots=True)
class Source:
    """A source file and the public estimators whose docstrings it holds."""

    text: str
    owners: tuple[str, ...]

    def entries(self, table: Table) -> list[Entry]:
        """Class docstrings' entries of shared parameters whose text is the table's to write."""
        return [
            entry
            for entry in find_entries(self.text.split("\n"), " " * 4)
            if entry.name in table
            and not any((one, entry.name) in OTHER_TEXT for one in self.owners)
        ]


def read_sources() -> dict[Path, Source]:
    """The files of the public estimators."""
    owners: dict[Path, list[str]] = {}
    for estimator in public_estimators():
        path = Path(inspect.getsourcefile(estimator) or "")
        owners.setdefault(path, []).append(estimator.__name__)
    return {path: Source(path.read_text(), tuple(names)) for path, names in owners.items()}


def rewrite(sources: Mapping[Path, Source], table: Table = SHARED) -> dict[Path, str]:
    """The text of each file with the table's words in its docstrings."""
    stale: dict[str, list[list[str]]] = {}
    for source in sources.values():
        for entry in source.entries(table):
            if not begins_with(entry.text, table[entry.name].text):
                stale.setdefault(entry.name, []).append(_sentences(entry.text))
    old = {name: _common_beginning(texts) for name, texts in stale.items() if len(texts) > 1}
    return {path: _rewrite_file(source, table, old) for path, source in sources.items()}


def _rewrite_file(source: Source, table: Table, old: Mapping[str, str]) -> str:
    lines = source.text.split("\n")
    for entry in reversed(source.entries(table)):
        shared = table[entry.name]
        if begins_with(entry.text, shared.text):
            continue
        own = entry.text
        if old.get(entry.name) and begins_with(own, old[entry.name]):
            own = own[len(old[entry.name]) :]
        beginning = shared.text
        if entry.template:
            beginning = beginning.replace("{", "{{").replace("}", "}}")
        lines[entry.start + 1 : entry.stop] = _wrap(f"{beginning} {own.strip()}".strip())
    return "\n".join(lines)


def _common_beginning(texts: list[list[str]]) -> str:
    """The sentences with which all texts begin."""
    places = zip(*texts, strict=False)
    same = itertools.takewhile(lambda sentences: len({*sentences}) == 1, places)
    return " ".join(sentences[0] for sentences in same)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=\S)", text)


def _wrap(text: str) -> list[str]:
    indent = " " * 8
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


# ------------------------------------------------ command


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite the docstrings")
    if parser.parse_args(arguments).write:
        sources = read_sources()
        for path, text in rewrite(sources).items():
            if text != sources[path].text:
                path.write_text(text)
                print(f"rewrote {path}; see the difference, and run this again without --write")
        return 0
    problems = [one for each in public_estimators() for one in find_differences(each)]
    problems += find_unknown_exceptions()
    print("\n".join(problems) or "all shared parameters are as in the table")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
