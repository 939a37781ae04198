"""Every kind of event that a fit can publish is explained, in the guide and in reports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import mixfold
from mixfold.estimators.mixtures.set_aside import EVENT
from mixfold.report.sections.convergence import _EVENTS

ROOT = Path(mixfold.__file__).parent
GUIDE = Path(__file__).parents[2] / "docs/guide/when-not-to-believe.md"
# their message says all, in a report, too
SPEAK_FOR_THEMSELVES = {EVENT, "outlier", "order"}


def kinds_in_code() -> set[str]:
    """First words of calls of ``Event``, and of the function that makes one per component."""
    found = {EVENT}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name, first = getattr(node.func, "id", ""), node.args[0]
            if name in ("Event", "_component_events") and isinstance(first, ast.Constant):
                found.add(first.value)
    return found


def test_kinds_of_events_are_explained() -> None:
    kinds = kinds_in_code()
    assert {"floor", "thin", "reseed", "memory", "fall"} <= kinds  # the search finds some
    table = GUIDE.read_text(encoding="utf-8").split("| kind | what happened |")[1].split("\n\n")[0]
    told = {kind for line in table.splitlines() for kind in re.findall(r"`([a-z-]+)`", line[:32])}
    assert told == kinds
    assert set(_EVENTS) == kinds - SPEAK_FOR_THEMSELVES
