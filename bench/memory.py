"""Peak memory of a fit above the data, which are loaded before it."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

from bench import peak
from bench.jobs import run
from bench.options import Options
from bench.peers import PEERS, offers, warm_up
from bench.problems import Problem, load, store
from bench.tables import ratio, table

TITLE = "Peak memory above the data"
FULL_RUN = [
    Problem(200_000, 64, 32, "full"),
    Problem(1_000_000, 16, 16, "full"),
    Problem(200_000, 64, 32, "diag"),
]
QUICK_RUN = [Problem(50_000, 16, 16, "full")]


def fit_peak(threads: int | None, peer: str, path: str, problem: dict[str, Any]) -> float:
    """MB that a fit of two iterations adds at its peak.

    A fit of a few rows comes first: what importing, compiling and starting threads take is the
    same for any number of rows, and not counted, for any library.
    """
    X, start = load(path)
    shape, fit = Problem(**problem), PEERS[peer]
    warm_up(peer, shape, threads)
    gc.collect()
    peak.forget()
    before = peak.now()
    fit(X, start, shape, 2, threads)
    return max(0, peak.peak() - before) / 1e6


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for problem in QUICK_RUN if options.quick else FULL_RUN:
            options.say(f"memory: {problem.label}")
            path = store(Path(folder), problem)
            used = {
                name: run("bench.memory:fit_peak", threads=None, peer=name, path=str(path),
                          problem=problem.plain())
                for name in PEERS
                if offers(name, problem)
            }  # fmt: skip
            data = problem.n * problem.d * 8 / 1e6
            rows.append({**problem.plain(), "label": problem.label, "data": data, "peak": used})
            path.unlink()
    return {"rows": rows}


def report(result: dict[str, Any]) -> str:
    head = ["problem (N, D, K)", "data, MB", *(f"{p}, MB" for p in PEERS), "scikit-learn / mixfold"]
    lines = []
    for row in result["rows"]:
        used = row["peak"]
        own = [f"{used[p]:.1f}" if p in used else "-" for p in PEERS]
        lines.append([row["label"], f"{row['data']:.0f}", *own,
                      ratio(used.get("scikit-learn"), used["mixfold"])])  # fmt: skip
    return table(head, lines)
