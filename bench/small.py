"""The first second and the small table: ratios to scikit-learn, in one process and in new ones."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.jobs import LIMITS, ROOT, JobError, run
from bench.options import Options
from bench.small_fits import CASES
from bench.tables import seconds, table

TITLE = "Small tables and new processes: CPU on one thread, ours / scikit-learn's"
PAIRS = 15

_ROWS = "import numpy as np; X = np.random.default_rng(0).normal(size=(150, 4)); X[:50] += 6; "
_PEAK = "; import bench.peak; print(bench.peak.now())"
_OURS = "from mixfold import GaussianMixture; "
_THEIRS = "from sklearn.mixture import GaussianMixture; "
_FIT, _PREDICT = "m = GaussianMixture(3, random_state=0).fit(X)", "; m.predict(X)"
_MODULE = ["-m", "mixfold"]
_NOTHING = ["-c", "import numpy"]
# name: arguments of ours and the exit code that is due, arguments of the peer, how much longer ours
# may take, whether kernels are cached
PROCESSES: dict[str, tuple[list[str], int, list[str], float, bool]] = {
    "import the class": (["-c", _OURS], 0, ["-c", _THEIRS], 1.1, True),
    "import, fit 150 x 4": (
        ["-c", _OURS + _ROWS + _FIT], 0, ["-c", _THEIRS + _ROWS + _FIT], 1.1, True),
    "import, fit, predict; nothing compiled": (
        ["-c", _OURS + _ROWS + _FIT + _PREDICT], 0, ["-c", _THEIRS + _ROWS + _FIT + _PREDICT],
        2.0, False),
    "mixfold --help, to import numpy": ([*_MODULE, "--help"], 0, _NOTHING, 2.0, True),
    "a mistyped command, to import numpy": (
        [*_MODULE, "ft", "table.csv"], 2, _NOTHING, 2.0, True),
    "a mistyped option, to import numpy": (
        [*_MODULE, "fit", "README.md", "--comp", "3", "--out", "m.mixfold"], 2, _NOTHING, 2.0,
        True),
    "a missing file, to import numpy": (
        [*_MODULE, "fit", "missing.csv", "--out", "m.mixfold"], 2, _NOTHING, 2.0, True),
    "a mistyped model, to import numpy": (
        [*_MODULE, "fit", "README.md", "-m", "gausian", "--out", "m.mixfold"], 2, _NOTHING, 2.0,
        True),
    "a file that is no model, to import numpy": (
        [*_MODULE, "inspect", "README.md"], 1, _NOTHING, 2.0, True),
}  # fmt: skip
MEMORY = {
    "memory: class imported": (_OURS + "pass", _THEIRS + "pass"),
    "memory: after a fit of 150 x 4": (_OURS + _ROWS + _FIT, _THEIRS + _ROWS + _FIT),
}
MEMORY_AIM = 20  # MB above


def measure(options: Options) -> dict[str, Any]:
    pairs = 3 if options.quick else PAIRS
    return {
        "fits": [_case(case, options, pairs) for case in CASES],
        "processes": [_process(name, options, pairs) for name in PROCESSES],
        "memory": [
            {"name": name, "mb": [_resident(code) for code in sides]}
            for name, sides in MEMORY.items()
        ],
    }


def _case(case: Any, options: Options, pairs: int) -> dict[str, Any]:
    options.say(f"small: {case.name}")
    found: dict[str, Any] = {"times": [], "scores": None}
    try:
        found = run("bench.small_fits:compare", threads=1, name=case.name, pairs=pairs)
    except JobError as problem:
        options.say(f"small: {case.name}: {problem}")
    return {"name": case.name, "peer": case.peer, "aim": case.aim, **found}


# ------------------------------------------------ new processes


def _process(name: str, options: Options, pairs: int) -> dict[str, Any]:
    """CPU seconds of both commands, in turn; a first pair, which may compile, is not counted."""
    options.say(f"small: {name}")
    ours, code, theirs, aim, cached = PROCESSES[name]
    times: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs + 1 if cached else min(pairs, 3)):
            cache = Path(folder) / ("kept" if cached else str(pair))
            times.append([_spawn(ours, cache, code)[0], _spawn(theirs, cache)[0]])
    return {"name": name, "aim": aim, "times": times[1:] if cached else times}


def _resident(code: str) -> float:
    """MB of a process at its end, its kernels read from the usual cache."""
    found = [float(_spawn(["-c", code + _PEAK], None)[1].split()[-1]) for _ in range(3)]
    return statistics.median(found) / 1e6


def _spawn(words: list[str], cache: Path | None, code: int = 0) -> tuple[float, str]:
    """CPU seconds of a new process on one thread, and its output."""
    environment = {**os.environ, **dict.fromkeys(LIMITS, "1")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    before = _children()
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=ROOT, check=False, capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode != code:
        raise JobError(f"{words} ended with {done.returncode}: {done.stderr}")
    return _children() - before, done.stdout


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ------------------------------------------------ the table


def report(result: dict[str, Any]) -> str:
    head = ["what", "peer", "ours, ms", "peer, ms", "ours / peer", "to reach", "score less peer's"]
    lines = [_line(row) for row in [*result["fits"], *result["processes"]]]
    lines += [
        [row["name"], "", *(f"{mb:.0f} MB" for mb in row["mb"]),
         f"{row['mb'][0] - row['mb'][1]:+.0f} MB", f"+{MEMORY_AIM} MB", ""]
        for row in result["memory"]
    ]  # fmt: skip
    return table(head, lines)


def _line(row: dict[str, Any]) -> list[object]:
    if not row["times"]:
        return [row["name"], row.get("peer", ""), "-", "-", "-", row["aim"], ""]
    ours, theirs = (statistics.median(pair[side] for pair in row["times"]) for side in (0, 1))
    ratio = statistics.median(a / b for a, b in row["times"])
    gain = row.get("scores")
    return [
        row["name"], row.get("peer", ""), seconds(1e3 * ours), seconds(1e3 * theirs),
        f"{ratio:.2f}", f"{row['aim']:g}", "" if gain is None else f"{gain[0] - gain[1]:+.1e}",
    ]  # fmt: skip


if __name__ == "__main__":  # a table of figures that were kept
    print(report(json.loads(Path(sys.argv[1]).read_text())["small"]))
