"""Factor analysis: time, and the log-likelihood that is reached."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bench.factor_data import digits
from bench.jobs import run
from bench.options import Options
from bench.problems import Array
from bench.tables import ratio, seconds, table

TITLE = "Factor analysis, 20 factors"
SIZE = 20
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "mixfold": ("mixfold:FactorAnalysis", {}),
    "scikit-learn": ("sklearn.decomposition:FactorAnalysis", {}),
    # the default of 3 is so inexact that the likelihood soon wavers, and that ends the fit
    "scikit-learn, iterated_power=10": (
        "sklearn.decomposition:FactorAnalysis",
        {"iterated_power": 10},
    ),
}
KEPT = "mean_ components_ noise_variance_"


def measure(options: Options) -> dict[str, Any]:
    label, X, _ = digits(options, "steps")
    options.say(f"fa: {label}")
    mean, covariance = X.mean(axis=0), np.cov(X, rowvar=False, bias=True)
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        del X
        fits = {name: _one(name, path, options) for name in SETTINGS}
        for name, result in fits.items():
            with np.load(path.with_name(f"{name}.npz")) as kept:
                parts = (kept["mean_"], kept["components_"], kept["noise_variance_"])
            result["log_likelihood"] = log_likelihood(*parts, mean, covariance)
        np.save(path, covariance)
        options.say("fa: scikit-learn with an exact decomposition")
        fits["exact"] = run("bench.factor_fa:exact", threads=None, path=str(path),
                            steps=100 if options.quick else 1000)  # fmt: skip
    return {"label": label, "fits": fits}


def _one(name: str, path: Path, options: Options) -> dict[str, Any]:
    estimator, settings = SETTINGS[name]
    result: dict[str, Any] = {}
    for _ in range(1 if options.quick else 2):
        for mode, threads, clock in options.modes:
            got = run("bench.factor_fits:fit", threads=threads, estimator=estimator, path=str(path),
                      settings={"n_components": SIZE, "random_state": 0, **settings},
                      keep=str(path.with_name(f"{name}.npz")), names=KEPT)  # fmt: skip
            result[mode] = min(got[clock], result.get(mode, float("inf")))
            result |= {"peak": got["peak"], "iterations": got["iterations"]}
    return result


def log_likelihood(
    mean: Array, components: Array, noise: Array, centre: Array, covariance: Array
) -> float:
    """Per row, dense and in double precision, from the moments of the rows: the same judge."""
    model = components.T @ components + np.diag(noise)
    moments = covariance + np.outer(centre - mean, centre - mean)
    factor = cho_factor(model, lower=True)
    log_det = 2 * np.log(np.diagonal(factor[0])).sum()
    size = len(mean) * np.log(2 * np.pi)
    return float(-0.5 * (size + log_det + np.trace(cho_solve(factor, moments))))


def exact(threads: int | None, path: str, steps: int) -> dict[str, Any]:
    """Likelihood of scikit-learn's FactorAnalysis with LAPACK, to convergence.

    Its rows are few, with mean zero and the covariance of all: the same optimum, but no time to
    compare.
    """
    from sklearn.decomposition import FactorAnalysis

    covariance = np.load(path)
    size = len(covariance)
    root = np.sqrt(size) * np.linalg.cholesky(covariance)
    model = FactorAnalysis(SIZE, svd_method="lapack", tol=2e-7 * size, max_iter=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of iterations tells
        model.fit(np.concatenate([root.T, -root.T]))
    zero = np.zeros(size)
    reached = log_likelihood(zero, model.components_, model.noise_variance_, zero, covariance)
    return {"log_likelihood": reached, "iterations": int(model.n_iter_)}


def report(result: dict[str, Any]) -> str:
    head = ["", "CPU s", "times mixfold", "all cores, s", "times mixfold", "iterations",
            "loglik per row", "above the data, MB"]  # fmt: skip
    own, lines = result["fits"]["mixfold"], []
    names = {"exact": "scikit-learn, LAPACK, converged"}
    for name, fit in result["fits"].items():
        times: list[object] = []
        for mode in ("one thread", "all cores"):
            times += [seconds(fit.get(mode)), ratio(fit.get(mode), own.get(mode))]
        used = f"{fit['peak']:.0f}" if "peak" in fit else "-"
        lines.append([names.get(name, name), *times, fit["iterations"],
                      f"{fit['log_likelihood']:.6f}", used])  # fmt: skip
    return f"{result['label']}\n\n{table(head, lines)}"
