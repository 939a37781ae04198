"""A test that is skipped says what is missing, and how to get it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPS = {"skip", "skipif", "importorskip"}


def _reasons() -> Iterator[tuple[str, str]]:
    """Place and source text of the reason of every skip."""
    for folder in ("tests", "papers/tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                if node.func.attr not in SKIPS or "pytest" not in ast.unparse(node.func):
                    continue
                named = [word.value for word in node.keywords if word.arg == "reason"]
                given = named or (node.args if node.func.attr == "skip" else [])
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield place, ast.unparse(given[0]) if given else ""


def test_every_skip_says_what_it_needs_and_how_to_get_it() -> None:
    reasons = dict(_reasons())
    assert len(reasons) > 10
    for place, reason in reasons.items():
        assert "needs " in reason, f"{place}: say what is missing, as in 'needs Dask: pip ..'"
        system = any(word in reason for word in ("POSIX", "Linux"))  # cannot be installed
        remedies = ("pip install", "apt-get install", "put it into", "in a clone")
        assert system or any(word in reason for word in remedies), f"{place}: say how to get it"
