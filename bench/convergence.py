"""To convergence from each library's own start: total time and the likelihood reached."""

from __future__ import annotations

import importlib
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.jobs import run
from bench.options import Options
from bench.problems import Array, Problem, draw
from bench.tables import ratio, seconds, table

TITLE = "To convergence, from each library's own start"
EQUAL = 1e-5  # log-likelihoods per row that differ by less count as equal
# how each is run: mixfold as it comes; scikit-learn until it has converged, and as it comes
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "mixfold": ("mixfold", {}),
    "scikit-learn": ("sklearn.mixture", {"tol": 1e-7, "max_iter": 5000}),
    "scikit-learn, default tol": ("sklearn.mixture", {}),
}


def known_recipe(n: int) -> Array:
    """The mixture of scikit-learn issue 10122, on which the default tol stops far too early."""
    rng = np.random.default_rng(1234)
    most = rng.multivariate_normal([2, 4], [[5, 2], [2, 6]], size=3 * n // 4)
    rest = rng.multivariate_normal([0, 0], [[4, 2], [2, 3]], size=n - 3 * n // 4)
    return rng.permutation(np.concatenate([most, rest]))


def data(name: str, quick: bool) -> tuple[Array, Problem]:
    """Four mixtures whose components overlap."""
    part = 20 if quick else 1
    if name == "issue 10122":
        problem = Problem(100_000 // part, 2, 2, "full")
        return known_recipe(problem.n), problem
    problem = {
        "plane": Problem(100_000 // part, 2, 8, "full", separation=6.0),
        "eight columns": Problem(50_000 // part, 8, 6, "full", separation=2.8),
        "sixteen columns": Problem(50_000 // part, 16, 10, "diag", separation=8**0.5),
    }[name]
    return draw(problem, seed=0), problem


NAMES = ("plane", "eight columns", "sixteen columns", "issue 10122")


def fit_to_the_end(
    threads: int | None, settings: str, path: str, problem: dict[str, Any], seed: int
) -> dict[str, float]:
    """One fit; a fit of a few rows before it compiles and loads."""
    module, options = SETTINGS[settings]
    kind = importlib.import_module(module).GaussianMixture
    if module == "mixfold":
        options = {**options, "n_jobs": threads}
    shape, X = Problem(**problem), np.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what did not converge is told in the table
        kind(shape.k, covariance_type=shape.covariance, max_iter=20).fit(X[:2000])
        model = kind(shape.k, covariance_type=shape.covariance, random_state=seed, **options)
        cpu_began, began = time.process_time(), time.perf_counter()
        model.fit(X)
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    return {
        "wall": wall,
        "cpu": cpu,
        "log_likelihood": float(model.score(X)),
        "iterations": model.n_iter_,
        "passes": getattr(model, "n_passes_", model.n_iter_),
        "converged": bool(model.converged_),
    }


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for name in NAMES:
            X, problem = data(name, options.quick)
            path = Path(folder) / "X.npy"
            np.save(path, X)
            for seed in range(2 if options.quick else 3):
                options.say(f"convergence: {name}, seed {seed}")
                same = {"path": str(path), "problem": problem.plain(), "seed": seed}
                rows.append({"name": name, "label": problem.label, "seed": seed,
                             "fits": {s: _one(s, same, options) for s in SETTINGS}})  # fmt: skip
    return {"rows": rows}


def _one(settings: str, same: dict[str, Any], options: Options) -> dict[str, float]:
    """On one thread, in CPU time, which noise disturbs least; the first seed on all cores too."""
    job = "bench.convergence:fit_to_the_end"
    fit: dict[str, float] = run(job, threads=1, settings=settings, **same)
    if same["seed"] == 0 and not options.one_thread:
        fit["all cores"] = run(job, threads=None, settings=settings, **same)["wall"]
    return fit


def report(result: dict[str, Any]) -> str:
    head = ["mixture", "", "CPU s", "times mixfold", "all cores, s", "times mixfold", "iterations",
            "passes", "loglik", "converged", "mixfold as good"]  # fmt: skip
    lines = []
    for name in dict.fromkeys(row["name"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["name"] == name]
        lines += [_line(rows, settings) for settings in SETTINGS]
    note = "Medians over the seeds; ratios are medians of ratios with the same seed."
    return f"{table(head, lines)}\n\n{note}"


def _line(rows: list[dict[str, Any]], settings: str) -> list[object]:
    pairs = [(row["fits"][settings], row["fits"]["mixfold"]) for row in rows]
    fits, own = [pair[0] for pair in pairs], pairs[0][1]
    middle = {key: median(f[key] for f in fits) for key in fits[-1]}
    slower = median(their["cpu"] / ours["cpu"] for their, ours in pairs)
    good = sum(ours["log_likelihood"] >= their["log_likelihood"] - EQUAL for their, ours in pairs)
    return [
        f"{rows[0]['name']}: {rows[0]['label']}", settings,
        seconds(middle["cpu"]), f"{slower:.2f}x",
        seconds(fits[0].get("all cores")), ratio(fits[0].get("all cores"), own.get("all cores")),
        f"{middle['iterations']:.0f}", f"{middle['passes']:.0f}", f"{middle['log_likelihood']:.6f}",
        f"{sum(f['converged'] for f in fits)} of {len(fits)}", f"{good} of {len(pairs)}",
    ]  # fmt: skip
