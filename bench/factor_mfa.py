"""Mixtures of factor models on images: one EM iteration, its memory, and unseen images."""

from __future__ import annotations

import gc
import importlib
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench import peak
from bench.factor_data import digits
from bench.factor_fits import make, small
from bench.jobs import run
from bench.options import Options
from bench.tables import seconds, table

TITLE = "Mixtures of factor models"
DTYPES = ("float64", "float32")
KINDS = ("MixtureOfPPCA", "MixtureOfFactorAnalyzers")
LIMIT = 900  # seconds of a fit whose likelihood is compared


def shape(options: Options) -> tuple[int, int]:
    """Components and factors."""
    return (10, 5) if options.quick else (100, 10)


def measure(options: Options) -> dict[str, Any]:
    rates = {
        mode: {d: run("bench.timing:gemm", threads=threads, dtype=d) for d in DTYPES}
        for mode, threads, _ in options.modes
    }
    steps, unseen = [], []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        for blur in ("noise", "none"):
            steps += _steps(Path(folder), blur, options)
        for blur in ("noise", "steps"):
            unseen += _unseen(Path(folder), blur, options)
    return {"shape": shape(options), "gemm": rates, "steps": steps, "unseen": unseen}


# ------------------------------------------------------------------ one iteration


def _steps(folder: Path, blur: str, options: Options) -> list[dict[str, Any]]:
    label, X, _ = digits(options, blur)
    n, d = X.shape
    rows = []
    for dtype in DTYPES:
        path = folder / "X.npy"
        np.save(path, X.astype(dtype))
        for kind in KINDS:
            options.say(f"mfa: {kind}, {label}, {dtype}")
            row = {"label": label, "kind": kind, "dtype": dtype,
                   "work": 4 * n * d * np.prod(shape(options)).item()}  # fmt: skip
            for mode, threads, clock in options.modes:
                got = run("bench.factor_mfa:per_iteration", threads=threads, kind=kind,
                          path=str(path), shape=shape(options), n_iter=3)  # fmt: skip
                row |= {mode: got[clock], "peak": got["peak"], "events": got["events"]}
            rows.append(row)
    return rows


def per_iteration(
    threads: int | None, kind: str, path: str, shape: tuple[int, int], n_iter: int
) -> dict[str, float]:
    """(time of 1 + n steps - time of 1 step) / n, both from where a first fit ended.

    The peak of memory is that of all three fits, with the start.
    """
    settings = {"acceleration": None, "tol": 0.0, "random_state": 0, "warm_start": True}
    X = np.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        make(f"mixfold:{kind}", threads, {"n_components": 2, "n_factors": 1}).fit(small(X.dtype))
        gc.collect()
        peak.forget()
        before = peak.now()
        model = make(f"mixfold:{kind}", threads,
                     {"n_components": shape[0], "n_factors": shape[1], **settings})  # fmt: skip
        model.set_params(max_iter=1).fit(X)
        took = {steps: _warm(model, X, steps) for steps in (1, 1 + n_iter)}
    per = {c: (took[1 + n_iter][c] - took[1][c]) / n_iter for c in ("cpu", "wall")}
    return {**per, "peak": (peak.peak() - before) / 1e6, "events": len(model.events_)}


def _warm(model: Any, X: Any, steps: int) -> dict[str, float]:
    cpu_began, began = time.process_time(), time.perf_counter()
    model.set_params(max_iter=steps).fit(X)
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu_began}


# ------------------------------------------------------------------ unseen images


def _unseen(folder: Path, blur: str, options: Options) -> list[dict[str, Any]]:
    label, X, test = digits(options, blur)
    np.save(folder / "X.npy", X)
    np.save(folder / "test.npy", test)
    n_groups, n_factors = shape(options)
    n_free = parameters(n_groups, X.shape[1], n_factors)
    alike = round((n_free + 1) / (2 * X.shape[1] + 1))
    models: dict[str, dict[str, Any]]
    models = {kind: {"n_components": n_groups, "n_factors": n_factors} for kind in KINDS}
    models["GaussianMixture"] = {"n_components": alike, "covariance_type": "diag"}
    rows = []
    for kind, settings in models.items():
        options.say(f"mfa: unseen images, {label}, {kind}")
        got = run("bench.factor_mfa:held_out", threads=None, kind=kind, folder=str(folder),
                  settings={**settings, "max_iter": 5 if options.quick else 30})  # fmt: skip
        rows.append({"label": label, "kind": kind, "components": settings["n_components"], **got})
    return rows


def parameters(n_groups: int, d: int, n_factors: int) -> int:
    """Free parameters of a mixture of factor analysers with noise of its own in each component."""
    loadings = d * n_factors - n_factors * (n_factors - 1) // 2
    return n_groups * (loadings + 2 * d + 1) - 1


def held_out(
    threads: int | None, kind: str, folder: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Log-likelihood per row of rows that the fit has not seen."""
    X, test = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / "test.npy")
    model = getattr(importlib.import_module("mixfold"), kind)(
        **settings, random_state=0, time_budget=LIMIT, n_jobs=threads
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of iterations tells
        model.fit(X)
    took = time.perf_counter() - began
    scores = model.score_samples(test)
    return {
        "seen": float(model.score(X)),
        "unseen": float(scores.mean()),
        "middle": float(np.median(scores)),
        "iterations": int(model.n_iter_),
        "seconds": took,
        "alive": int((model.weights_ > 0).sum()),
    }


# ------------------------------------------------------------------ tables


def report(result: dict[str, Any]) -> str:
    groups, factors = result["shape"]
    return (
        f"{groups} components of {factors} factors.\n\n{_table_of_steps(result)}\n\n"
        f"{_table_of_unseen(result['unseen'])}"
    )


def _table_of_steps(result: dict[str, Any]) -> str:
    head = ["data", "model", "", "CPU s", "its products", "times them", "all cores, s",
            "its products", "times them", "above the data, MB", "events"]  # fmt: skip
    lines = []
    for row in result["steps"]:
        cells: list[object] = [row["label"], row["kind"], row["dtype"]]
        for mode in ("one thread", "all cores"):
            if mode not in row:
                cells += ["-", "-", "-"]
                continue
            ideal = row["work"] / result["gemm"][mode][row["dtype"]] / 1e9
            cells += [seconds(row[mode]), seconds(ideal), f"{row[mode] / ideal:.2f}x"]
        lines.append([*cells, f"{row['peak']:.0f}", row["events"]])
    rates = "; ".join(
        f"{mode}: " + ", ".join(f"{d} {rate:.1f} GFLOP/s" for d, rate in of.items())
        for mode, of in result["gemm"].items()
    )
    return f"{table(head, lines)}\n\nA product of two large matrices, {rates}."


def _table_of_unseen(rows: list[dict[str, Any]]) -> str:
    head = ["data", "model", "K", "alive", "loglik per image, seen", "unseen", "unseen, median",
            "iterations", "s"]  # fmt: skip
    lines = [
        [row["label"], row["kind"], row["components"], row["alive"], f"{row['seen']:.1f}",
         f"{row['unseen']:.1f}", f"{row['middle']:.1f}", row["iterations"], seconds(row["seconds"])]
        for row in rows
    ]  # fmt: skip
    return table(head, lines)
