"""Several local maxima merged into one fit, beside the best of as many restarts as cost the same.

For each table and seed: ``n_init=STARTS`` with and without ``merge_starts`` tell what merging adds
to the cost, and so how many restarts could have been made for it. Compared are the log-likelihood
per row that the fits climb to, and that of rows which were held out.
"""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench.factor_data import groups, real
from bench.factor_fits import make, small
from bench.jobs import run
from bench.options import Options
from bench.problems import Array
from bench.tables import seconds, table

TITLE = "Merged starts: one better fit of several local maxima, or more restarts for the same time"
STARTS, SEEDS = 4, 4
# how rows are first shared: the default, and one that lets starts end in different maxima
FIRST = ("kmeans", "random_from_data")
GMM, MFA = "mixfold:GaussianMixture", "mixfold:MixtureOfFactorAnalyzers"
# a difference per row that is told of
_SAME = 1e-4


def overlapping(n: int, d: int, n_groups: int, apart: float, seed: int = 0) -> Array:
    """Rows of a Gaussian mixture with covariances of its own shapes."""
    rng = np.random.default_rng([seed, n, d, n_groups])
    centres = apart * rng.normal(size=(n_groups, d))
    shapes = 0.7 * rng.normal(size=(n_groups, d, d)) / np.sqrt(d) + 0.5 * np.eye(d)
    labels = rng.integers(n_groups, size=n)
    noise = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), shapes[labels])
    return np.asarray(centres[labels] + noise)


def tables(options: Options) -> dict[str, tuple[Array, str, dict[str, Any]]]:
    """Rows, estimator and settings by name."""
    small_one = options.quick
    found: dict[str, tuple[Array, str, dict[str, Any]]] = {
        "drawn, 12 groups in 2 columns": (
            overlapping(400 if small_one else 1200, 2, 12, 2.5), GMM, {"n_components": 12},
        ),
        "drawn, 8 groups with 3 factors": (
            groups(400 if small_one else 1200, 20, 8, 3), MFA,
            {"n_components": 8, "n_factors": 3},
        ),
    }  # fmt: skip
    if small_one:
        return found
    digits = real(options, "optdigits.npz")
    if digits is not None:
        X = digits["X"].astype(float)
        rng = np.random.default_rng(0)
        X = ((X + rng.random(X.shape)) / 17)[rng.permutation(len(X))[:1000]]
        found["optdigits"] = (X, MFA, {"n_components": 8, "n_factors": 3})
    for name, kind, settings in (
        ("vehicle.csv", GMM, {"n_components": 6}),
        ("wdbc.csv", MFA, {"n_components": 5, "n_factors": 3}),
        ("yeast.npz", MFA, {"n_components": 4, "n_factors": 2}),
    ):
        rows = numbers(options, name)
        if rows is not None:
            found[name.split(".")[0]] = (rows, kind, settings)
    return found


def numbers(options: Options, name: str) -> Array | None:
    """The columns of numbers of a file, standardised, without rows that lack entries."""
    if name.endswith(".npz"):
        content = real(options, name)
        if content is None:
            return None
        X = np.asarray(content["X"], float)
    else:
        path = None if options.data is None else options.data / name
        if path is None or not path.is_file():
            options.say(f"{name} was not found and is left out (name its folder with --data DIR)")
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raw = np.genfromtxt(path, delimiter=",", skip_header=1)
        X = raw[:, ~np.isnan(raw).all(axis=0)]
    X = X[~np.isnan(X).any(axis=1)]
    # whole numbers of few values are labels or codes
    X = X[:, [len(np.unique(column)) > 10 for column in X.T]]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


# ------------------------------------------------------------------ in the workers


def compared(threads: int | None, path: str, kind: str, settings: dict[str, Any],
             seeds: int) -> list[dict[str, float]]:  # fmt: skip
    """Of each seed: likelihoods of the merged fit and of restarts, and what they cost."""
    with np.load(path) as content:
        X, unseen = content["X"], content["unseen"]

    def fitted(seed: int, starts: int, merge: bool) -> tuple[float, float, float]:
        began = time.process_time()
        chosen = {**settings, "n_init": starts, "merge_starts": merge, "random_state": seed}
        fit = make(kind, threads, chosen).fit(X)
        cpu = time.process_time() - began
        return float(fit.lower_bound_), float(fit.score(unseen)), cpu

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(kind, threads, {**settings, "n_components": 2}).fit(small(float))
        for seed in range(seeds):
            plain, _, plain_cpu = fitted(seed, STARTS, False)
            merged, merged_unseen, merged_cpu = fitted(seed, STARTS, True)
            starts = max(STARTS, math.ceil(STARTS * merged_cpu / plain_cpu))
            more, more_unseen, more_cpu = fitted(seed, starts, False)
            found.append({
                "plain": plain, "merged": merged, "merged_unseen": merged_unseen,
                "merged_cpu": merged_cpu, "starts": starts, "restarts": more,
                "restarts_unseen": more_unseen, "restarts_cpu": more_cpu,
            })  # fmt: skip
    return found


# ------------------------------------------------------------------ in the parent


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path = Path(folder) / "X.npz"
        for name, (X, kind, settings) in tables(options).items():
            order = np.random.default_rng(0).permutation(len(X))
            cut = 3 * len(X) // 4
            np.savez(path, X=X[order[:cut]], unseen=X[order[cut:]])
            options.say(f"merged-starts: {name}")
            for first in FIRST:
                chosen = {**settings, "init_params": first}
                found = run("bench.merged_starts:compared", threads=1, path=str(path), kind=kind,
                            settings=chosen, seeds=2 if options.quick else SEEDS)  # fmt: skip
                label = f"{name} ({len(X):,}, {X.shape[1]}), {settings['n_components']} components"
                rows.append({"label": label, "first": first, "fits": found})
                options.say(report({"rows": rows[-1:]}))
    return {"rows": rows}


def report(result: dict[str, Any]) -> str:
    head = ["table", "start", "restarts for the same time", "merged better / same / worse",
            "gain per row", "gain per unseen row", "CPU s merged", "CPU s restarts"]  # fmt: skip
    lines = []
    for row in result["rows"]:
        each = {key: np.array([fit[key] for fit in row["fits"]]) for key in row["fits"][0]}
        gain, unseen = (each[f"merged{x}"] - each[f"restarts{x}"] for x in ("", "_unseen"))
        better, worse = int((gain > _SAME).sum()), int((gain < -_SAME).sum())
        lines.append([
            row["label"], row["first"], f"{np.mean(each['starts']):.1f}",
            f"{better} / {len(gain) - better - worse} / {worse}",
            f"{gain.mean():+.4f}", f"{unseen.mean():+.4f}",
            seconds(each["merged_cpu"].mean()), seconds(each["restarts_cpu"].mean()),
        ])  # fmt: skip
    return table(head, lines)
