"""Mutants are tried in private copies of the tree, a few at a time.

A mutant meets the quick tests that can notice it, the nearest first: those of the folder that
mirrors its own and the examples of its file, then all others, each by ascending duration. If they
pass it meets the slow ones. Both lists are cut where half of the time limit is used up. If a slow
test notices a mutant and the quick list was cut, the rest of it is run as well, so that "only by
slow" is never the fault of the cut.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutation import ordering, trees
from mutation.mapping import Found, Map, Test, pytest_command
from mutation.sites import Mutant

QUICK, SLOW, SURVIVED, UNTESTED, ERROR = (
    "killed by quick",
    "killed only by slow",
    "survived",
    "no test",
    "error",
)


@dataclass(frozen=True)
class Limits:
    """Seconds for one mutant and stage; bytes of memory of the test process.

    A single test may take ``grace`` and ten times as long as without a change.
    """

    quick: float = 240.0
    slow: float = 900.0
    compiling: float = 120.0
    memory: int = 6 * 2**30
    grace: float = 15.0


@dataclass(frozen=True)
class Ended:
    """How a run of tests ended: passed, failed, timeout, signal or error."""

    how: str
    test: str = ""
    told: str = ""

    @property
    def noticed(self) -> bool:
        return self.how in ("failed", "timeout", "signal")


class Stopped(Exception):
    """The user interrupted."""


class Runner:
    """Results go to ``out``, one line of JSON each, as soon as they are known."""

    def __init__(self, base: Path, mapped: Map, out: Path, limits: Limits, confirm: bool) -> None:
        self._base, self._map, self._out = base, mapped, out
        self._limits, self._confirm = limits, confirm
        self._stopping = threading.Event()
        self._running: set[subprocess.Popen[Any]] = set()
        self._lock = threading.Lock()

    def run(self, mutants: Sequence[Mutant], jobs: int) -> None:
        if not mutants:
            return
        _mend(self._out)
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            copies: SimpleQueue[Path] = SimpleQueue()
            for k in range(min(jobs, len(mutants))):
                folder = Path(scratch) / str(k)
                copies.put(trees.copy_tree(self._base, folder, compiled_python=True))
            with ThreadPoolExecutor(jobs) as pool:
                waiting = [pool.submit(self._one, mutant, copies) for mutant in mutants]
                try:
                    for k, task in enumerate(waiting):
                        told = task.result()
                        print(f"[{k + 1}/{len(mutants)}] {line_of(told)}", file=sys.stderr)
                except BaseException:
                    self._stop(pool)
                    raise

    def _stop(self, pool: ThreadPoolExecutor) -> None:
        self._stopping.set()
        with self._lock:
            for process in self._running:
                _kill(process)
        pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, mutant: Mutant, copies: SimpleQueue[Path]) -> dict[str, Any]:
        tree = copies.get()
        try:
            begun = time.monotonic()
            told = self.tried(mutant, tree) | {"seconds": round(time.monotonic() - begun, 2)}
        finally:
            copies.put(tree)
        line = json.dumps(record(mutant) | told) + "\n"
        with self._lock, self._out.open("a", encoding="utf-8") as out:
            out.write(line)
            out.flush()
            os.fsync(out.fileno())
        return json.loads(line)  # type: ignore[no-any-return]

    def tried(self, mutant: Mutant, tree: Path) -> dict[str, Any]:
        """Outcome, killing test and numbers of tests of one mutant."""
        found = self._map.found(mutant)
        text = mutant.applied((tree / mutant.file).read_text(encoding="utf-8"))
        with trees.changed(tree, mutant.file, text, found.recompiled):
            return {"unit": found.unit} | self._stages(mutant, found, tree)

    def _stages(self, mutant: Mutant, found: Found, tree: Path) -> dict[str, Any]:
        more = self._limits.compiling if found.recompiled else 0.0
        if not more and trees.kernel_caches(self._base, mutant.file):
            more = self._limits.compiling  # the kernels of a changed file are compiled again
        quick, cut = within([t for t in found.tests if t.quick], self._limits.quick / 2)
        slow, slow_cut = within([t for t in found.tests if not t.quick], self._limits.slow / 2)
        told: dict[str, Any] = {
            "quick_tests": len(quick),
            "slow_tests": len(slow),
            "capped": len(cut) + len(slow_cut),
        }
        ended = self._waves(mutant, tree, quick, more)
        if ended.how != "passed":
            return told | _outcome(QUICK, ended)
        ended = self._tests(tree, slow, self._map.all_args, self._limits.slow, more)
        if not ended.noticed:
            outcome = SURVIVED if quick or slow else UNTESTED
            return told | _outcome(ERROR if ended.how == "error" else outcome, ended)
        if cut:
            rest = self._tests(tree, cut, self._map.quick_args, self._limits.slow, more)
            if rest.noticed:
                return told | _outcome(QUICK, rest)
        return told | _outcome(SLOW, ended)

    def _waves(self, mutant: Mutant, tree: Path, tests: list[Test], more: float) -> Ended:
        ended = Ended("passed")
        for wave in waves(mutant.file, tests):
            ended = self._tests(tree, wave, self._map.quick_args, self._limits.quick, more)
            if ended.how != "passed":
                break
        return ended

    def _tests(
        self, tree: Path, tests: list[Test], args: Sequence[str], limit: float, more: float
    ) -> Ended:
        ended = self._pytest(tree, tests, args, limit + more, more)
        if self._confirm and ended.how == "failed":
            names = [t for t in tests if t.name == ended.test]
            if names and self._pytest(tree, names, args, limit + more, more).how == "passed":
                print(f"passes when run again, not counted: {ended.test}", file=sys.stderr)
                rest = [t for t in tests if t.name != ended.test]
                return self._tests(tree, rest, args, limit, more)
        return ended

    def _pytest(
        self, tree: Path, tests: list[Test], args: Sequence[str], limit: float, more: float
    ) -> Ended:
        """Run tests in their order until one fails."""
        if not tests:
            return Ended("passed")
        if self._stopping.is_set():
            raise Stopped
        folder = tree.parent
        shutil.rmtree(folder / "tmp", ignore_errors=True)
        env = trees.environment(tree)
        allowed = [[t.name, self._limits.grace + 10 * t.seconds + more] for t in tests]
        (folder / "tests.json").write_text(json.dumps(allowed), encoding="utf-8")
        log = folder / "log.jsonl"
        log.unlink(missing_ok=True)
        env |= {
            "PYTHONDONTWRITEBYTECODE": "1",
            ordering.TESTS: str(folder / "tests.json"),
            ordering.LOG: str(log),
            ordering.MEMORY: str(self._limits.memory),
        }
        command = [*pytest_command(), "-x", "--tb=no", "-p", "mutation.ordering", *args]
        command += [f"--basetemp={folder / 'tmp' / 'pytest'}", *sorted({t.file for t in tests})]
        code, told = self._process(command, tree, env, limit)
        if self._stopping.is_set():
            raise Stopped
        return _ended(code, told, _lines(log))

    def _process(
        self, command: list[str], tree: Path, env: dict[str, str], limit: float
    ) -> tuple[int | None, str]:
        """Exit code (None: out of time) and the end of what was printed."""
        printed = tree.parent / "printed.txt"
        with printed.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                command, cwd=tree, env=env, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        with self._lock:
            self._running.add(process)
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _kill(process)  # what the tests may have left
            process.wait()
            with self._lock:
                self._running.discard(process)
        return code, printed.read_text(encoding="utf-8", errors="replace")[-2000:]


def _kill(process: subprocess.Popen[Any]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _lines(log: Path) -> list[tuple[str, str]]:
    if not log.exists():
        return []
    return [tuple(json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def _ended(code: int | None, told: str, log: list[tuple[str, str]]) -> Ended:
    failed = [test for what, test in log if what == "failed"]
    started = [test for what, test in log if what == "start"]
    finished = any(what == "end" for what, _ in log)
    last = started[-1] if started else ""
    if failed:
        return Ended("failed", failed[0])
    if code is None:
        return Ended("timeout", last)
    if code < 0:
        return Ended("signal", last)
    if code in (0, 5):
        return Ended("passed")
    if not finished and started:  # ended by its own watch, or by os._exit in what was changed
        return Ended("timeout", last)
    if "ImportError while loading conftest" in told:
        return Ended("failed", "conftest")
    return Ended("error", last, told)


def _outcome(outcome: str, ended: Ended) -> dict[str, Any]:
    told: dict[str, Any] = {"outcome": ERROR if ended.how == "error" else outcome}
    told["by"] = ended.how if ended.noticed else ""
    told["test"] = ended.test if ended.noticed else ""
    return told | ({"told": ended.told} if ended.told else {})


def within(tests: list[Test], seconds: float) -> tuple[list[Test], list[Test]]:
    """The first tests that take so long together, at least one; and the others."""
    total = 0.0
    for k, test in enumerate(tests):
        total += test.seconds
        if total > seconds and k:
            return tests[:k], tests[k:]
    return tests, []


def waves(file: str, tests: list[Test]) -> list[list[Test]]:
    """The nearest tests first: few files to collect, and they notice most."""
    parts = file.removeprefix("src/").split("/")[1:-1]
    folder = "/".join(["tests", *parts]) + "/"
    near = [t for t in tests if t.file.startswith(folder) or t.file == file]
    far = [t for t in tests if not (t.file.startswith(folder) or t.file == file)]
    return [wave for wave in (near, far) if wave]


# ------------------------------------------------ results


def record(mutant: Mutant) -> dict[str, Any]:
    return {
        "id": mutant.id,
        "file": mutant.file,
        "line": mutant.line,
        "column": mutant.column,
        "kind": mutant.kind,
        "before": mutant.before,
        "after": mutant.after,
    }


def read_results(path: Path) -> list[dict[str, Any]]:
    """The last result of each mutant; a line that was cut off is left out."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            told = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[told["id"]] = told
    return list(found.values())


def _mend(path: Path) -> None:
    """End a line that was cut off, so that the next one is not added to it."""
    if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        with path.open("a", encoding="utf-8") as out:
            out.write("\n")


def still_to_do(mutants: Sequence[Mutant], results: Sequence[dict[str, Any]]) -> list[Mutant]:
    done = {(r["id"], r["before"]) for r in results if r["outcome"] != ERROR}
    return [m for m in mutants if (m.id, m.before) not in done]


def line_of(told: dict[str, Any]) -> str:
    """One line for people."""
    test = f" ({told['by']}: {told['test']})" if told.get("test") else ""
    place = f"{told['file']}:{told['line']}"
    return f"{told['id']} {told['kind']:<10} {place} {told['outcome']} {told['seconds']} s{test}"
