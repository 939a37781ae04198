"""The map from blocks of source to the tests that run them, and which tests can notice a mutant."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutation import trees
from mutation.blocks import Block, blocks
from mutation.references import References
from mutation.sites import Mutant
from mutation.tracer import SETTINGS


@dataclass(frozen=True)
class Test:
    """How long it took, whether it is a quick one, and sum 2**block of the blocks that ran."""

    name: str
    seconds: float
    quick: bool
    outcome: str
    hits: int

    @property
    def file(self) -> str:
        return self.name.split("::")[0]


@dataclass(frozen=True)
class Found:
    """The tests that can notice a mutant, and the files whose kernels must be compiled anew."""

    tests: list[Test]
    recompiled: set[str]
    unit: str


class Map:
    def __init__(self, tree: Path, package: str, told: dict[str, Any]) -> None:
        self.texts = trees.python_files(tree, "src")
        self.quick_args: list[str] = told["quick"]
        self.all_args: list[str] = told["all"]
        self.tests = [
            Test(t["test"], t["seconds"], t["quick"], t["outcome"], int(t["hits"], 16))
            for t in told["tests"]
        ]
        self._at_import = int(told["at_import"], 16)
        self._blocks = all_blocks(self.texts)
        texts = self.texts | trees.python_files(tree, "tests")
        self._references = References(texts, package)
        self._by_function: dict[tuple[str, str], int] = {}
        for k, block in enumerate(self._blocks):  # the first block of a function is its body
            self._by_function.setdefault((block.file, block.function), k)

    def found(self, mutant: Mutant) -> Found:
        """By ascending duration."""
        unit = self._references.unit_at(mutant.file, mutant.line)
        wanted, files = 0, set()
        block = self._block(mutant, unit)
        if block is not None:
            wanted |= 1 << block
        recompiled: set[str] = set()
        if block is None or self._at_import >> block & 1:
            reached = self._references.reach(mutant.file, unit)
            for function in reached.functions:
                wanted |= 1 << self._by_function[function] if function in self._by_function else 0
            files = {mutant.file} | reached.tests
            if reached.compiled:
                recompiled = {mutant.file} | self._references.importers(mutant.file)
        tests = [t for t in self.tests if t.outcome == "passed"]
        chosen = [t for t in tests if t.hits & wanted or _belongs(t.file, files)]
        if not chosen and block is None:  # module code that nobody mentions: who uses the module
            own = sum(1 << k for k, b in enumerate(self._blocks) if b.file == mutant.file)
            chosen = [t for t in tests if t.hits & own or _mirrors(t.file, mutant.file)]
        return Found(sorted(chosen, key=lambda t: (t.seconds, t.name)), recompiled, unit)

    def _block(self, mutant: Mutant, unit: str) -> int | None:
        """The innermost that holds the place; defaults of arguments belong to the body."""
        place = mutant.line, len(mutant.before[: mutant.column].encode())
        inside = [
            (b.start, k)
            for k, b in enumerate(self._blocks)
            if b.file == mutant.file and b.start <= place <= b.end
        ]
        return max(inside)[1] if inside else self._by_function.get((mutant.file, unit))


def _belongs(test_file: str, files: set[str]) -> bool:
    folders = [f.removesuffix("conftest.py") for f in files if f.endswith("/conftest.py")]
    return test_file in files or any(test_file.startswith(folder) for folder in folders)


def _mirrors(test_file: str, file: str) -> bool:
    """tests/room/... for src/package/room/..."""
    folder = "/".join(file.split("/")[2:-1])
    return test_file.startswith(f"tests/{folder}/")


def all_blocks(texts: dict[str, str]) -> list[Block]:
    return [b for file, text in sorted(texts.items()) for b in blocks(file, ast.parse(text))]


def digest(texts: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()


# ------------------------------------------------ recording


@dataclass(frozen=True)
class Recorder:
    """Runs the suite once in a copy of the tree, which stays as the model of later copies."""

    root: Path
    package: str
    work: Path
    quick: list[str]
    all: list[str]

    def record(self, paths: Sequence[str], processes: int, append: bool) -> dict[str, Any]:
        target, old = self.work / "map.json", None
        if append and target.exists():
            old = json.loads(target.read_text(encoding="utf-8"))
            if old["source"] != digest(trees.python_files(self.root, "src")):
                raise SystemExit("The source has changed: a map can only be made anew.")
            tree = self.work / "base" / "tree"
            trees.update_tests(self.root, tree)
        else:
            shutil.rmtree(self.work / "base", ignore_errors=True)
            tree = trees.copy_tree(self.root, self.work / "base", compiled_python=False)
        told = self._run(tree, paths, processes)
        if old is not None:
            new = {test["test"] for test in told["tests"]}
            told["tests"] += [test for test in old["tests"] if test["test"] not in new]
            told["at_import"] = f"{int(told['at_import'], 16) | int(old['at_import'], 16):x}"
        partial = target.with_suffix(".part")
        partial.write_text(json.dumps(told), encoding="utf-8")
        partial.replace(target)
        return dict(told)

    def _run(self, tree: Path, paths: Sequence[str], processes: int) -> dict[str, Any]:
        out = self.work / "hits"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        env = self._traced(tree, out)
        spread = ["-n", str(processes)] if processes > 1 else []
        command = [*pytest_command(), "-p", "mutation.recording", *spread, *self.all, *paths]
        ended = subprocess.run(command, cwd=tree, env=env, stdout=2)  # progress
        if ended.returncode not in (0, 1):
            raise SystemExit(f"pytest ended with {ended.returncode}: no map was made")
        quick = self._quick(tree, paths)
        tests, at_import, children = _read_hits(out)
        for test in tests:
            hits = int(test["hits"], 16)
            for started_by, phase, blocks_run in children:
                file = test["test"].split("::")[0]
                own = started_by == test["test"]
                if own or (phase == "setup" and started_by.split("::")[0] == file):
                    hits |= blocks_run
            test |= {"hits": f"{hits:x}", "quick": test["test"] in quick}
        texts = trees.python_files(tree, "src")
        return {
            "source": digest(texts),
            "quick": self.quick,
            "all": self.all,
            "at_import": f"{at_import:x}",
            "tests": tests,
        }

    def _traced(self, tree: Path, out: Path) -> dict[str, str]:
        site = self.work / "site"
        site.mkdir(exist_ok=True)
        start = "from mutation import tracer\n\ntracer.start()\n"
        (site / "sitecustomize.py").write_text(start, encoding="utf-8")
        first: dict[str, int] = {}
        for k, block in enumerate(all_blocks(trees.python_files(tree, "src"))):
            first.setdefault(block.file, k)
        told = {"root": str(tree), "package": self.package, "first": first, "out": str(out)}
        (self.work / "trace.json").write_text(json.dumps(told), encoding="utf-8")
        env = trees.environment(tree, site)
        return env | {SETTINGS: str(self.work / "trace.json")}

    def _quick(self, tree: Path, paths: Sequence[str]) -> set[str]:
        """The names of the tests of the quick part."""
        command = [*pytest_command(), "--collect-only", "-qq", *self.quick, *paths]
        listing = [*command, "-p", "mutation.listing"]
        env = trees.environment(tree) | {"MUTANTS_LIST": str(self.work / "quick.json")}
        ended = subprocess.run(listing, cwd=tree, env=env, stdout=subprocess.PIPE, text=True)
        if ended.returncode not in (0, 5):
            raise SystemExit(f"The quick tests cannot be listed:\n{ended.stdout[-2000:]}")
        return set(json.loads((self.work / "quick.json").read_text(encoding="utf-8")))


def _read_hits(out: Path) -> tuple[list[dict[str, Any]], int, list[tuple[str, str, int]]]:
    tests: dict[str, dict[str, Any]] = {}
    at_import = 0
    for path in sorted(out.glob("tests-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            if "at_import" in told:
                at_import |= int(told["at_import"], 16)
            else:
                tests[told["test"]] = told
    children: list[tuple[str, str, int]] = []
    for path in sorted(out.glob("child-*.txt")):
        started_by, *numbers = path.read_text(encoding="utf-8").splitlines()
        name, _, phase = started_by.rpartition(" (")
        hits = sum(1 << int(number) for number in set(numbers) if number)
        children.append((name, phase.rstrip(")"), hits))
    return list(tests.values()), at_import, children


def pytest_command() -> list[str]:
    """Without what could change the order or leave files; options of absent plug-ins left out."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly"]
    if importlib.util.find_spec("hypothesis"):
        command.append("--hypothesis-seed=0")
    return command


def load(work: Path, package: str) -> Map:
    path, tree = work / "map.json", work / "base" / "tree"
    if not path.exists() or not tree.exists():
        raise SystemExit(f"There is no map in {os.fspath(work)}: run the `map` step first.")
    return Map(tree, package, json.loads(path.read_text(encoding="utf-8")))
