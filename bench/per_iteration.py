"""Time of one EM iteration: same data, same start, same number of steps, same likelihood."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.jobs import run
from bench.options import Options
from bench.peers import PEERS, offers
from bench.problems import Problem, store
from bench.tables import difference, ratio, seconds, table

TITLE = "Per EM iteration"
# the problem, and how many iterations are timed
FULL_RUN = [
    (Problem(200_000, 64, 32, "full"), 2),
    (Problem(1_000_000, 16, 16, "full"), 3),
    (Problem(200_000, 64, 32, "diag"), 6),
    (Problem(200_000, 64, 32, "tied"), 3),
    (Problem(200_000, 64, 32, "spherical"), 6),
    (Problem(200_000, 64, 32, "full", "float32"), 3),
    (Problem(1_000_000, 16, 16, "full", "float32"), 5),
    (Problem(200_000, 64, 32, "diag", "float32"), 6),
]
QUICK_RUN = [
    (Problem(20_000, 64, 32, "full"), 2),
    (Problem(100_000, 16, 16, "full"), 3),
    (Problem(20_000, 64, 32, "diag"), 20),
]


def measure(options: Options) -> dict[str, Any]:
    rounds = 1 if options.quick else 2
    rates = {d: run("bench.timing:gemm", threads=1, dtype=d) for d in ("float64", "float32")}
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for problem, n_iter in QUICK_RUN if options.quick else FULL_RUN:
            options.say(f"per iteration: {problem.label}")
            path = store(Path(folder), problem)
            best = _one(path, problem, n_iter, rounds, options)
            rows.append({**problem.plain(), "label": problem.label, **best})
            path.unlink()
    # the machine may have been busier at first: a rate is a best, too
    rates = {d: max(r, run("bench.timing:gemm", threads=1, dtype=d)) for d, r in rates.items()}
    for row in rows:
        row["gemm"] = rates[row["dtype"]]
        work = 4 * row["n"] * Problem(**_shape(row)).n_products * row["k"]
        row["gflops"] = work / row["one thread"]["mixfold"] / 1e9
    return {"gemm": rates, "rows": rows}


def _shape(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("n", "d", "k", "covariance", "dtype", "separation")}


def _one(
    path: Path, problem: Problem, n_iter: int, rounds: int, options: Options
) -> dict[str, Any]:
    """Best seconds of every library; the libraries take turns, so that noise meets all of them."""
    names = [name for name in PEERS if offers(name, problem)]
    best: dict[str, Any] = {"one thread": {}, "all cores": {}, "log_likelihood": {}}
    for turn in range(rounds):
        for name in names:
            for mode, threads, clock in options.modes:
                first = turn == 0 and threads == 1
                got = run(
                    "bench.timing:per_iteration", threads=threads, peer=name, path=str(path),
                    problem=problem.plain(), n_iter=n_iter, repeats=1 + (turn > 0), judge=first,
                )  # fmt: skip
                best[mode][name] = min(got[clock], best[mode].get(name, float("inf")))
                if first:
                    best["log_likelihood"][name] = got["log_likelihood"]
    return best


def report(result: dict[str, Any]) -> str:
    head = [
        "problem (N, D, K)", "mixfold, s", "scikit-learn", "oneDAL", "GFLOP/s", "of GEMM",
        "all cores: mixfold, s", "scikit-learn", "oneDAL", "loglik: scikit-learn", "oneDAL",
    ]  # fmt: skip
    lines = [_line(row) for row in result["rows"]]
    rates = ", ".join(f"{d} {r:.1f} GFLOP/s" for d, r in result["gemm"].items())
    return f"{table(head, lines)}\n\nGEMM on one thread: {rates}."


def _line(row: dict[str, Any]) -> list[object]:
    cells: list[object] = [row["label"]]
    for mode in ("one thread", "all cores"):
        own = row[mode].get("mixfold")
        cells += [seconds(own), *(ratio(row[mode].get(p), own) for p in ("scikit-learn", "oneDAL"))]
        if mode == "one thread":
            # tied covariances are fitted with less work than the lifted products
            lifted = row["covariance"] != "tied"
            share = f"{row['gflops'] / row['gemm']:.0%}"
            cells += [f"{row['gflops']:.1f}", share] if lifted else ["-", "-"]
    reached = row["log_likelihood"]
    theirs = (reached.get(p) for p in ("scikit-learn", "oneDAL"))
    return [*cells, *(difference(value, reached["mixfold"]) for value in theirs)]
