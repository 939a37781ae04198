"""Variational Bayes of Gaussian mixtures: one iteration, its memory, and a fit that learns K."""

from __future__ import annotations

import gc
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench import peak
from bench.factor_fits import make, small
from bench.jobs import run
from bench.options import Options
from bench.problems import Array, Problem, load, store
from bench.tables import ratio, seconds, table

TITLE = "Variational Bayes of Gaussian mixtures"
PEERS = {
    "mixfold": "mixfold:BayesianGaussianMixture",
    "scikit-learn": "sklearn.mixture:BayesianGaussianMixture",
}
FULL_RUN = [Problem(100_000, 16, 50, "full"), Problem(100_000, 16, 50, "diag")]
QUICK_RUN = [Problem(10_000, 16, 50, "full")]
STEPS = 4
# components, and how many starts of the small fits
SIZES, SEEDS = (50, 250), 3


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for problem in QUICK_RUN if options.quick else FULL_RUN:
            options.say(f"bayes: {problem.label}")
            path = store(Path(folder), problem)
            rows.append({"label": problem.label, **_one(path, problem, options)})
            path.unlink()
    small_fits = []
    for size in SIZES:
        options.say(f"bayes: 250 points, K = {size}")
        seeds = list(range(1 if options.quick else SEEDS))
        small_fits.append(run("bench.bayes:until_converged", threads=1, size=size, seeds=seeds))
    return {"rows": rows, "small": small_fits}


def _one(path: Path, problem: Problem, options: Options) -> dict[str, Any]:
    """Best seconds of both libraries, which take turns, and what a fit adds to the data."""
    least: dict[tuple[str, str], dict[str, float]] = {}
    used: dict[str, float] = {}
    for _ in range(1 if options.quick else 2):
        for name, estimator in PEERS.items():
            for mode, threads, clock in options.modes:
                got = run("bench.bayes:fits", threads=threads, estimator=estimator,
                          path=str(path), problem=problem.plain())  # fmt: skip
                best = least.setdefault((mode, name), got[clock])
                least[mode, name] = {steps: min(best[steps], t) for steps, t in got[clock].items()}
                used[name] = got["peak"]
    result: dict[str, Any] = {"one thread": {}, "all cores": {}, "peak": used}
    for (mode, name), took in least.items():
        # what happens once in a fit falls out
        result[mode][name] = (took["more"] - took["one"]) / STEPS
    return result


# ------------------------------------------------------------------ what the workers do


def fits(threads: int | None, estimator: str, path: str, problem: dict[str, Any]) -> dict[str, Any]:
    """Seconds of a fit of one step and of more, the least of three each, and MB at the peak.

    From random rows as the first means: neither library can be given a start here, but the time of
    a step does not depend on it.
    """
    X, _ = load(path)
    shape = Problem(**problem)
    settings: dict[str, Any] = {"covariance_type": shape.covariance, "tol": 0.0, "random_state": 0,
                                "init_params": "random_from_data"}  # fmt: skip
    if estimator.startswith("mixfold"):
        settings["merge_split"] = False  # scikit-learn has no such moves
    took: dict[str, list[dict[str, float]]] = {"one": [], "more": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        make(estimator, threads, {**settings, "n_components": 2, "max_iter": 2}).fit(small(X.dtype))
        gc.collect()
        peak.forget()
        before = peak.now()
        for _ in range(3):
            for name, steps in (("one", 1), ("more", 1 + STEPS)):
                settings |= {"n_components": shape.k, "max_iter": steps}
                took[name].append(_timed(make(estimator, threads, settings), X))
    clocks = {
        clock: {name: min(t[clock] for t in times) for name, times in took.items()}
        for clock in ("cpu", "wall")
    }
    return {**clocks, "peak": max(0, peak.peak() - before) / 1e6}


def _timed(model: Any, X: Array) -> dict[str, float]:
    cpu_began, began = time.process_time(), time.perf_counter()
    model.fit(X)
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu_began}


def until_converged(threads: int | None, size: int, seeds: list[int]) -> dict[str, Any]:
    """A mixture of ``size`` components with Dirichlet weights on 250 points of five groups."""
    from mixfold import Mixture
    from papers.shared.variational_mixtures import draw_toy

    X = draw_toy(np.random.default_rng(0))
    settings: dict[str, Any] = {
        "weights": "dirichlet", "inference": "vb", "alpha": 1.0, "init_params": "random",
        "prior": {"precision": 0.01, "degrees": 2.0}, "merge_split": False, "max_iter": 3000,
        "n_jobs": threads,
    }  # fmt: skip
    Mixture("full", size, **settings, random_state=0).fit(X)
    runs = []
    for tol in (1e-6, 1e-9):
        for seed in seeds:
            model = Mixture("full", size, **settings, tol=tol, random_state=seed)
            took = _timed(model, X)
            runs.append({"tol": tol, "cpu": took["cpu"], "steps": int(model.n_iter_),
                         "components": model.effective_components_})  # fmt: skip
    return {"size": size, "runs": runs}


# ------------------------------------------------------------------ tables


def report(result: dict[str, Any]) -> str:
    head = ["problem (N, D, K)", "mixfold, CPU s", "scikit-learn", "all cores: mixfold, s",
            "scikit-learn", "mixfold, MB above the data", "scikit-learn, MB"]  # fmt: skip
    lines = []
    for row in result["rows"]:
        cells: list[object] = [row["label"]]
        for mode in ("one thread", "all cores"):
            ours, theirs = (row[mode].get(name) for name in PEERS)
            cells += [seconds(ours), ratio(theirs, ours)]
        lines.append([*cells, *(f"{row['peak'][name]:.0f}" for name in PEERS)])
    return f"{table(head, lines)}\n\n{_table_of_small(result['small'])}"


def _table_of_small(fits: list[dict[str, Any]]) -> str:
    head = ["250 points, K", "tol", "CPU s", "iterations", "components in use"]
    lines = []
    for fit in fits:
        for tol in dict.fromkeys(r["tol"] for r in fit["runs"]):
            mine = [r for r in fit["runs"] if r["tol"] == tol]
            spans = [f"{min(r[c] for r in mine)} to {max(r[c] for r in mine)}"
                     for c in ("steps", "components")]  # fmt: skip
            times = [r["cpu"] for r in mine]
            lines.append([fit["size"], f"{tol:g}", f"{min(times):.2f} to {max(times):.2f}", *spans])
    return table(head, lines)
