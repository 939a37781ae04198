"""Mutants are small, valid, the same for a seed, and judged by the tests that can notice them."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
if not TOOLS.exists():
    pytest.skip("needs tools/: run the tests in a clone", allow_module_level=True)
sys.path.insert(0, str(TOOLS))

import mutants as command  # noqa: E402
from mutation import report, running, trees  # noqa: E402
from mutation.blocks import HIT, blocks, instrumented  # noqa: E402
from mutation.mapping import Test as Timed  # noqa: E402
from mutation.references import References  # noqa: E402
from mutation.sampling import sample  # noqa: E402
from mutation.sites import KINDS, is_valid, mutants  # noqa: E402

# ------------------------------------------------ places and changes


def _after(text: str, kind: str) -> set[str]:
    return {m.after for m in mutants("f.py", text) if m.kind == kind and is_valid(m, text)}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("sign", "y = a + b", {"y = a - b"}),
        ("sign", "y = (a) - (b)", {"y = (a) + (b)"}),
        ("sign", "y = -x", {"y = x"}),
        ("sign", "y -= x", {"y += x"}),
        ("sign", "é = 'é'; y = a + b", {"é = 'é'; y = a - b"}),
        ("product", "y = a * b / c", {"y = a / b / c", "y = a * b * c"}),
        ("product", "y *= a", {"y /= a"}),
        ("comparison", "y = a < b", {"y = a <= b", "y = a > b"}),
        ("comparison", "y = a == b", {"y = a != b"}),
        ("off-by-one", "y = x[i]", {"y = x[i + 1]", "y = x[i - 1]"}),
        ("off-by-one", "y = x[:n]", {"y = x[:n + 1]", "y = x[:n - 1]"}),
        ("off-by-one", "y = x[3]", {"y = x[2]", "y = x[4]"}),
        ("off-by-one", "y = range(n)", {"y = range(n + 1)", "y = range(n - 1)"}),
        ("off-by-one", "y = x.sum(axis=0)", {"y = x.sum(axis=1)"}),
        ("off-by-one", "y = f(x, axis=-1)", {"y = f(x, axis=-0)", "y = f(x, axis=-2)"}),
        ("transpose", "y = x.T", {"y = x"}),
        ("transpose", "y = a @ b.T", {"y = b.T @ a", "y = a.T @ b.T", "y = a @ b"}),
        ("transpose", "y = (a + 1) @ (b + c)", {"y = (b + c) @ ((a + 1))"}),
        ("dropped", "y = a + b", {"y = a", "y = b"}),
        ("dropped", "y = (a + 1) * (b - c)", {"y = (a + 1)", "y = (b - c)"}
         | {"y = (a) * (b - c)", "y = (1) * (b - c)", "y = (a + 1) * (b)"}),
        ("dropped", "y = a / b", {"y = a"}),
        ("dropped", "y += x", {"y = x"}),
        ("swapped", "y = f(a, b, c)", {"y = f(b, a, c)"}),
        ("swapped", "y = max(a, b)", set()),
        ("boolean", "y = a and b", {"y = a or b"}),
        ("boolean", "y = not (a or b)", {"y = (a or b)", "y = not (a and b)"}),
        ("constant", "y = 0.5", {"y = 0.25", "y = 1.0"}),
        ("constant", "y = 2 * a", {"y = 1 * a"}),
        ("constant", "y = 1e-9", set()),
        ("extreme", "y = max(np.minimum(a, b))", {"y = min(np.minimum(a, b))"}
         | {"y = max(np.maximum(a, b))"}),
        ("average", "y = x.sum()", {"y = x.mean()"}),
        ("average", "y = sum(x)", set()),
        ("function", "y = np.log(x)", {"y = np.log1p(x)"}),
    ],
)  # fmt: skip
def test_each_kind(kind: str, text: str, expected: set[str]) -> None:
    assert _after(text, kind) == expected


LEFT_ALONE = '''
"""1 + 2"""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    X = 1 + 2


@f(1 + 2)
def g(x: "A[1]") -> "B[2]":
    """2 * 3"""
    y: "C[3]"
    log.info(1 + 2)
    warnings.warn(f"{1 + 2}", stacklevel=2)
    raise ValueError("a" + str(1))


def __repr__(self):
    return 1 + 2
'''


def test_what_nobody_computes_with_is_left_alone() -> None:
    assert mutants("f.py", LEFT_ALONE) == []


TEXT = """
import numpy as np


def f(a, b, n=3):
    total = 0.0
    for i in range(n - 1):
        if a[i] < b[i] and not n == 2:
            total += 0.5 * a[i] * np.log(max(b[i], 1.5)) - g(a, b).sum(axis=0) @ a.T
    return (
        total
        + n
    )
"""


def test_a_change_is_a_part_of_one_line_and_another_program() -> None:
    found = mutants("src/p/room/f.py", TEXT)
    assert {m.kind for m in found} == set(KINDS)
    for mutant in found:
        mutated = mutant.applied(TEXT)
        pairs = zip(TEXT.splitlines(), mutated.splitlines(), strict=True)
        changed = [k for k, (old, new) in enumerate(pairs, 1) if old != new]
        assert changed == [mutant.line]
        assert mutated.splitlines()[mutant.line - 1] == mutant.after
        assert is_valid(mutant, TEXT)
    assert len({m.id for m in found}) == len(found)


# ------------------------------------------------ sampling


def _pool() -> tuple[list[Any], dict[str, str]]:
    texts = {f"src/p/{room}/{k}.py": TEXT for room, n in (("a", 36), ("b", 4)) for k in range(n)}
    return [m for file, text in texts.items() for m in mutants(file, text)], texts


def test_a_sample_is_decided_by_the_seed_and_grows_at_its_end() -> None:
    pool, texts = _pool()
    first = sample(pool, texts, 24, 1)
    assert first == sample(reversed(pool), texts, 24, 1)
    assert first != sample(pool, texts, 24, 2)
    assert sample(pool, texts, 40, 1)[:24] == first


def test_kinds_and_rooms_are_represented_and_no_line_is_changed_twice() -> None:
    pool, texts = _pool()
    taken = sample(pool, texts, 24, 1)
    assert set(Counter(m.kind for m in taken).values()) == {2}
    assert {m.file.split("/")[2] for m in taken} == {"a", "b"}
    everything = sample(pool, texts, 10**6, 1)
    assert len({(m.file, m.line) for m in everything}) == len(everything)


# ------------------------------------------------ what runs, and what is mentioned


def test_entered_blocks_are_recorded() -> None:
    text = (
        "def f(x):\n    'doc'\n    if x:\n        return 1\n    elif x is None:\n        return 2\n"
    )
    tree = ast.parse(text)
    assert [(b.function, b.start) for b in blocks("f.py", tree)] == [
        ("f", (2, 4)), ("f", (4, 8)), ("f", (5, 4)), ("f", (6, 8)),
    ]  # fmt: skip
    hits: list[int] = []
    space: dict[str, Any] = {HIT: hits.append}
    exec(compile(instrumented(tree, 10), "f.py", "exec"), space)
    assert space["f"](None) == 2 and space["f"].__doc__ == "doc"
    assert hits == [10, 12, 13]


MODULES = {
    "src/p/__init__.py": "from p.room.low import inner",
    "src/p/compiled.py": "from numba import njit\ndef kernel(f): return njit(f)",
    "src/p/room/low.py": """
from p.compiled import kernel
C = 2
@kernel
def inner(x): return x * C
""",
    "src/p/room/high.py": """
from p.compiled import kernel
from p import inner
@kernel
def outer(x): return inner(x)
class A:
    law = outer
    def use(self): return self.law(1)
def other(): return 3
""",
    "tests/room/test_low.py": """
from p.room import low
def test_inner(): assert low.inner(1) == 2
""",
}


def test_kernels_are_followed_to_python_functions_and_tests() -> None:
    references = References(MODULES, "p")
    assert references.unit_at("src/p/room/low.py", 3) == "C"
    for unit in ("C", "inner"):
        reached = references.reach("src/p/room/low.py", unit)
        assert reached.functions == {("src/p/room/high.py", "A.use")}
        assert reached.tests == {"tests/room/test_low.py"}
        low, high = ("src/p/room/low.py", "inner"), ("src/p/room/high.py", "outer")
        assert reached.compiled == {low, high}
    assert "src/p/room/high.py" in references.importers("src/p/room/low.py")
    assert references.reach("src/p/room/high.py", "other").functions == set()


def test_a_changed_copy_is_as_before_afterwards(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    caches = tree / "src" / "__pycache__"
    caches.mkdir(parents=True)
    names = ["a.f-1.py311.nbi", "a.f-1.py311.1.nbc", "b.g-1.py311.nbi", "c.h-1.py311.nbi"]
    for name in names:
        (caches / name).write_text(name)
    source = tree / "src" / "a.py"
    source.write_text("x = 1\n")
    times = source.stat().st_mtime_ns
    with pytest.raises(KeyboardInterrupt), trees.changed(tree, "src/a.py", "x = 2\n", ["src/b.py"]):
        assert source.read_text() == "x = 2\n"
        assert [p.name for p in caches.iterdir()] == ["c.h-1.py311.nbi"]
        (caches / "a.new-1.py311.nbi").write_text("of the mutant")
        raise KeyboardInterrupt
    assert source.read_text() == "x = 1\n" and source.stat().st_mtime_ns == times
    assert sorted(p.name for p in caches.iterdir()) == sorted(names)
    assert all((caches / name).read_text() == name for name in names)


def test_lists_are_cut_by_time_and_near_tests_come_first() -> None:
    tests = [Timed(f"tests/{d}/t.py::x", s, True, "passed", 0) for d, s in ("b1", "a2", "b3")
             for s in [float(s)]]  # fmt: skip
    assert running.within(tests, 3.5) == (tests[:2], tests[2:])
    assert running.within(tests[2:], 1.0) == (tests[2:], [])
    assert running.waves("src/p/a/f.py", tests) == [[tests[1]], [tests[0], tests[2]]]


# ------------------------------------------------ results


def test_interval_of_wilson() -> None:
    low, high = report.wilson(80, 100)
    # the bounds are the shares that the score test just does not reject
    for bound in (low, high):
        z = (0.8 - bound) / (bound * (1 - bound) / 100) ** 0.5
        assert abs(z) == pytest.approx(1.959964, abs=1e-6)
    assert report.wilson(0, 0) == (0.0, 1.0)
    assert report.wilson(5, 5)[1] == 1.0 and report.wilson(0, 5)[0] == 0.0


def _result(outcome: str, kind: str = "sign", **more: Any) -> dict[str, Any]:
    return {"id": "x", "file": "src/p/math/f.py", "line": 1, "kind": kind, "before": "a",
            "after": "b", "outcome": outcome, "by": "", "seconds": 1.0, **more}  # fmt: skip


def test_report_counts() -> None:
    told = [_result(running.QUICK)] * 3 + [_result(running.SLOW, "product", by="timeout")]
    told += [_result(running.SURVIVED, capped=2), _result(running.ERROR)]
    page = report.markdown(told)
    assert "the quick one kills 3 of 4 = 75.0 % (95 % interval 30.1 to 95.4 %)" in page
    assert "the whole suite kills 4 of 5 = 80.0 %" in page
    assert "| sign | 4 | 3 | 0 | 1 | 1 | 0 | 100 % | 44 to 100 % |" in page
    assert "| product | 1 | 0 | 1 | 0 | 0 | 1 | 0 % | 0 to 79 % |" in page
    assert "| math | 5 | 3 | 1 | 1 | 1 | 1 | 75 % | 30 to 95 % |" in page
    assert page.count("```diff\n--- src/p/math/f.py:1\n- a\n+ b\n```") == 3


# ------------------------------------------------ all of it, on a small package

TOY = {
    "pyproject.toml": """
[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
addopts = ["--import-mode=importlib", "--strict-markers"]
markers = ["slow: takes long"]
""",
    "src/toy/__init__.py": "",
    "src/toy/room/__init__.py": "",
    "src/toy/room/f.py": """
def quick(a, b):
    return a + b


def slow(a, b):
    return a + b


def unseen(a, b):
    return a + b


def down(n):
    while n:
        n -= 1
    return n


def shared(a, b):
    return a + b
""",
    "tests/conftest.py": """
import pytest
from toy.room.f import shared

@pytest.fixture(scope="session")
def total():
    return shared(1, 2)

def pytest_collection_modifyitems(items):
    items.reverse()
""",
    "tests/room/test_f.py": """
import pytest
from toy.room import f

def test_nothing(total):
    f.unseen(1, 2)

def test_quick():
    assert f.quick(1, 2) == 3

def test_down():
    assert f.down(3) == 0

@pytest.mark.slow
def test_slow():
    assert f.slow(1, 2) == 3

def test_total(total):
    assert total == 3
""",
}


def test_a_small_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, out = tmp_path / "toy", tmp_path / "out.jsonl"
    for name, text in TOY.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    common = ["--root", str(root), "--package", "toy", "--work", str(tmp_path / "work")]
    assert command.main(["map", *common]) == 0
    assert "4 quick tests" in capsys.readouterr().out
    arguments = ["run", *common, "--out", str(out), "--rooms", "room", "--kind", "sign"]
    arguments += ["--grace", "0.5"]
    assert command.main([*arguments, "--no-confirm"]) == 0
    found = {r["unit"]: (r["outcome"], r["by"], r["test"]) for r in running.read_results(out)}
    place = "tests/room/test_f.py::"
    assert found == {
        "quick": (running.QUICK, "failed", f"{place}test_quick"),
        "slow": (running.SLOW, "failed", f"{place}test_slow"),
        "unseen": (running.SURVIVED, "", ""),
        "down": (running.QUICK, "timeout", f"{place}test_down"),
        "shared": (running.QUICK, "failed", f"{place}test_total"),
    }
    assert (root / "src/toy/room/f.py").read_text() == TOY["src/toy/room/f.py"]

    # an interrupted run goes on: the torn line and the missing one are done again, no other
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:-2]) + lines[-2][:20])
    shutil.rmtree(tmp_path / "work" / "hits")
    capsys.readouterr()
    assert command.main(arguments) == 0
    assert "5 mutants, 3 done before" in capsys.readouterr().err
    again = {r["unit"]: (r["outcome"], r["by"], r["test"]) for r in running.read_results(out)}
    assert again == found

    one = next(json.loads(line) for line in lines if '"unseen"' in line)
    assert command.main(["show", one["id"], "--out", str(out)]) == 0
    assert "-     return a + b" not in (shown := capsys.readouterr().out)
    assert "- return a + b\n+ return a - b" in shown
    assert command.main(["report", str(out)]) == 0
    assert "kills 3 of 4 = 75.0 %" in capsys.readouterr().out
