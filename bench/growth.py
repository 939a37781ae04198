"""How the time of one iteration grows with rows, columns and components."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.jobs import run
from bench.options import Options
from bench.peers import PEERS, offers
from bench.problems import Problem, store
from bench.tables import ratio, seconds, table

TITLE = "Growth: CPU seconds per iteration, one thread, full covariances"
BASE = (100_000, 16, 8)


def problems(quick: bool) -> list[Problem]:
    """The base, then N, D, K one by one times 2, 4 (D: 8, past the lifted products; K: 16)."""
    n, d, k = BASE if not quick else (10_000, 16, 8)
    factors = (2,) if quick else (2, 4)
    grown = [(n * f, d, k) for f in factors] + [(n, d * f, k) for f in (*factors, 8)]
    grown += [(n, d, k * f) for f in factors] + ([] if quick else [(n, d, 16 * k)])
    return [Problem(*shape) for shape in [(n, d, k), *grown]]


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for problem in problems(options.quick):
            options.say(f"growth: {problem.label}")
            path = store(Path(folder), problem)
            n_iter = 2 if problem.d * problem.k > 512 else 5
            cpu = {
                name: run("bench.timing:per_iteration", threads=1, peer=name, path=str(path),
                          problem=problem.plain(), n_iter=n_iter, repeats=2)["cpu"]
                for name in PEERS
                if offers(name, problem)
            }  # fmt: skip
            rows.append({**problem.plain(), "label": problem.label, "cpu": cpu})
            path.unlink()
    return {"rows": rows}


def report(result: dict[str, Any]) -> str:
    head = ["N", "D", "K", "mixfold, s", "of the first row", "scikit-learn", "oneDAL"]
    first = result["rows"][0]["cpu"]["mixfold"]
    lines = []
    for row in result["rows"]:
        own = row["cpu"]["mixfold"]
        theirs = [ratio(row["cpu"].get(p), own) for p in ("scikit-learn", "oneDAL")]
        lines.append(
            [f"{row['n']:,}", row["d"], row["k"], seconds(own), ratio(own, first), *theirs]
        )
    return table(head, lines)
