"""To convergence from each library's own start: total time and the likelihood reached."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.jobs import run
from bench.per_iteration import Say
from bench.problems import Array, Problem, draw
from bench.tables import seconds, table

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
        "plane": Problem(100_000 // part, 2, 8, "full", spread=3.0),
        "eight columns": Problem(50_000 // part, 8, 6, "full", spread=0.7),
        "sixteen columns": Problem(50_000 // part, 16, 10, "diag", spread=0.5),
    }[name]
    return draw(problem, seed=0), problem


NAMES = ("plane", "eight columns", "sixteen columns", "issue 10122")


def fit_to_the_end(
    threads: int | None, settings: str, path: str, problem: dict[str, Any], seed: int
) -> dict[str, float | bool]:
    """One fit on all cores; a fit of a few rows before it compiles and loads."""
    import importlib

    module, options = SETTINGS[settings]
    kind = importlib.import_module(module).GaussianMixture
    shape, X = Problem(**problem), np.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind(shape.k, covariance_type=shape.covariance, max_iter=20).fit(X[:2000])
        model = kind(shape.k, covariance_type=shape.covariance, random_state=seed, **options)
        cpu_began, began = time.process_time(), time.perf_counter()
        model.fit(X)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    return {"seconds": took, "cpu": cpu, "log_likelihood": float(model.score(X)),
            "iterations": model.n_iter_, "passes": getattr(model, "n_passes_", model.n_iter_),
            "converged": bool(model.converged_)}  # fmt: skip


def measure(quick: bool, say: Say) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for name in NAMES:
            X, problem = data(name, quick)
            path = Path(folder) / "X.npy"
            np.save(path, X)
            for seed in range(2 if quick else 5):
                say(f"convergence: {name}, seed {seed}")
                fits = {
                    s: run("bench.convergence:fit_to_the_end", threads=None, settings=s, path=str(path),
                           problem=problem.plain(), seed=seed)
                    for s in SETTINGS
                }  # fmt: skip
                rows.append({"name": name, "label": problem.label, "seed": seed, "fits": fits})
    return {"rows": rows}


def report(result: dict[str, Any]) -> str:
    head = ["mixture", "", "s (median)", "CPU s", "iterations", "passes", "loglik (median)",
            "times mixfold's time", "mixfold equal or better"]  # fmt: skip
    lines = []
    for name in dict.fromkeys(row["name"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["name"] == name]
        lines += [_line(rows, settings) for settings in SETTINGS]
    return table(head, lines)


def _line(rows: list[dict[str, Any]], settings: str) -> list[object]:
    fits, ours = [row["fits"][settings] for row in rows], [row["fits"]["mixfold"] for row in rows]
    middle = {key: median(f[key] for f in fits) for key in fits[0]}
    cells: list[object] = [f"{rows[0]['name']}: {rows[0]['label']}", settings, seconds(middle["seconds"]),
                           seconds(middle["cpu"]), f"{middle['iterations']:.0f}", f"{middle['passes']:.0f}",
                           f"{middle['log_likelihood']:.6f}"]  # fmt: skip
    if settings == "mixfold":
        return [*cells, "1", "-"]
    pairs = list(zip(fits, ours, strict=True))
    slower = median(their["seconds"] / own["seconds"] for their, own in pairs)
    good = sum(own["log_likelihood"] >= their["log_likelihood"] - EQUAL for their, own in pairs)
    return [*cells, f"{slower:.1f}x", f"{good} of {len(pairs)}"]
