"""Components and factors learned together, beside the best of all numbers of both by BIC."""

from __future__ import annotations

import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench.factor_data import groups, real
from bench.factor_fits import make, small
from bench.jobs import run
from bench.options import Options
from bench.problems import Array
from bench.tables import ratio, seconds, table

TITLE = "Mixtures of factor analysers: both numbers learned, or chosen by BIC"
KIND = "mixfold:MixtureOfFactorAnalyzers"
# numbers of components and of factors that BIC chooses from
GRIDS = {
    "digits": ((2, 5, 10, 15, 20), (1, 2, 4, 6, 8)),
    "faces": ((1, 2, 3, 5), (2, 5, 10, 15, 20, 30)),
    "drawn": ((1, 2, 3, 4), (1, 2, 3)),
}


def tables(options: Options) -> dict[str, tuple[Array, Array, str]]:
    """Training and test rows by name, and the grid of BIC.

    A density of grey levels is unbounded; uniform noise as wide as one makes it one of numbers.
    """
    found: dict[str, tuple[Array, Array, str]] = {}
    rng = np.random.default_rng(0)
    for file, levels, n_train, grid in (
        ("optdigits.npz", 17, 3000, "digits"),
        ("orl_faces_32x32.npz", 256, 300, "faces"),
    ):
        content = None if options.quick else real(options, file)
        if content is None:
            continue
        rows = content["X"][rng.permutation(len(content["X"]))].astype(float)
        rows = (rows + rng.random(rows.shape)) / levels
        found[file.removesuffix(".npz")] = (rows[:n_train], rows[n_train:], grid)
    if not found:
        X = groups(600, 12, 3, 2)
        found["drawn"] = (X[:400], X[400:], "drawn")
    return found


# ------------------------------------------------------------------ in the workers


def searched(threads: int | None, path: str, grid: str) -> dict[str, Any]:
    """The fit of lowest BIC: mean held-out log density, CPU seconds of all fits."""
    with np.load(path) as content:
        X, unseen = content["X"], content["unseen"]
    best: dict[str, Any] = {"bic": np.inf}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(KIND, threads, {"n_components": 2, "n_factors": 1}).fit(small(float))
        began = time.process_time()
        for K, d in product(*GRIDS[grid]):
            fit = make(KIND, threads, {"n_components": K, "n_factors": d, "random_state": 0}).fit(X)
            bic = float(fit.bic())
            if bic < best["bic"]:
                best = {"bic": bic, "K": K, "d": [d], "fit": fit}
        cpu = time.process_time() - began
    score = float(best.pop("fit").score(unseen))
    return {**best, "score": score, "cpu": cpu}


def learned(threads: int | None, path: str, grid: str) -> dict[str, Any]:
    """One fit that learns both, with as many components as the grid has at most."""
    with np.load(path) as content:
        X, unseen = content["X"], content["unseen"]
    settings = {"n_components": max(GRIDS[grid][0]), "n_factors": None, "inference": "vb"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(KIND, threads, {**settings, "n_components": 2}).fit(small(float))
        began = time.process_time()
        fit = make(KIND, threads, {**settings, "random_state": 0}).fit(X)
        cpu = time.process_time() - began
    used = fit.n_factors_[fit.active_]
    return {"K": int(fit.effective_components_), "d": sorted(used.tolist()), "cpu": cpu,
            "score": float(fit.score(unseen)), "bic": float(fit.bic(X)),
            "passes": int(fit.n_passes_), "end": fit.stop_reason_}  # fmt: skip


# ------------------------------------------------------------------ in the parent


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path = Path(folder) / "X.npz"
        for name, (X, unseen, grid) in tables(options).items():
            np.savez(path, X=X, unseen=unseen)
            row: dict[str, Any] = {"label": f"{name} ({len(X):,}, {X.shape[1]})"}
            for how in ("learned", "searched"):
                options.say(f"learned-factors: {name}, {how}")
                row[how] = run(f"bench.factor_learned:{how}", threads=1, path=str(path), grid=grid)
                options.say(str(row[how]))
            rows.append(row)
    return {"rows": rows}


def report(result: dict[str, Any]) -> str:
    head = ["table", "", "components", "factors", "held-out log density per row", "CPU s",
            "learned takes"]  # fmt: skip
    lines = []
    for row in result["rows"]:
        for how, words in (("searched", "BIC of a grid"), ("learned", "learned (vb)")):
            fit = row[how]
            few, many = min(fit["d"]), max(fit["d"])
            lines.append([
                row["label"], words, fit["K"], few if few == many else f"{few} to {many}",
                f"{fit['score']:.3f}", seconds(fit["cpu"]),
                ratio(row["learned"]["cpu"], fit["cpu"]),
            ])  # fmt: skip
    return table(head, lines)
