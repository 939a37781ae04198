"""Missing entries: how well, and how quickly, they are filled in."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench.factor_data import real, spread
from bench.factor_fits import make, small
from bench.jobs import run
from bench.options import Options
from bench.problems import Array
from bench.tables import ratio, seconds, table

TITLE = "Missing entries filled in, a fifth of them hidden"
HIDDEN, ASIDE = 0.2, 0.1  # shares of the entries: to be judged by, and to choose a setting by
SIZES = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90)
NEAREST = 100  # columns that scikit-learn may look at where there are very many


def tables(options: Options) -> dict[str, tuple[Array, int | None]]:
    """Tables, and the number of other columns that scikit-learn may use (None: all)."""
    found: dict[str, tuple[Array, int | None]] = {}
    faces = real(options, "frey_face.npz")
    if faces is not None:
        pixels = faces["X"].astype(float)
        coarse = pixels.reshape(-1, 28, 20)[:, ::2, ::2].reshape(len(pixels), -1)
        found["Frey faces, every second pixel"] = (coarse, None)
        if not options.quick:
            found["Frey faces"] = (pixels, NEAREST)
    people = None if options.quick else real(options, "orl_faces_32x32.npz")
    if people is not None:
        found["ORL faces"] = (people["X"].astype(float), NEAREST)
    health = real(options, "nhanes_2017_2018_adults.npz")
    if health is not None:
        found["NHANES"] = (_alike(health["X"].astype(float)), None)
    if not found:
        found["drawn"] = (spread(1000, 60, np.linspace(1, 0.3, 6), 0.5), None)
    rows = 400 if options.quick else None
    return {name: (X[:rows], nearest) for name, (X, nearest) in found.items()}


def _alike(X: Array) -> Array:
    """Columns in units of their standard deviation: they measure different things."""
    return np.asarray((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))


def hide(X: Array, share: float, seed: int) -> Array:
    """Which of the known entries to hide; every row and every column keeps some."""
    rng = np.random.default_rng(seed)
    chosen = ~np.isnan(X) & (rng.random(X.shape) < share)
    left = ~np.isnan(X) & ~chosen
    chosen[left.sum(axis=1) == 0] = False
    chosen[:, left.sum(axis=0) < 2] = False
    return np.asarray(chosen)


# ------------------------------------------------------------------ in the workers


def impute(threads: int | None, method: str, path: str, nearest: int | None) -> dict[str, Any]:
    """Root mean square error at the hidden entries, CPU and wall seconds.

    The number of factors is chosen by other entries that are hidden besides; ``cpu`` counts the
    fit with the number that was found, ``search`` also all fits that found it.
    """
    with np.load(path) as content:
        X, hidden = content["X"], content["hidden"]
    truth, given = X[hidden], np.where(hidden, np.nan, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds do not converge, and are the default
        _filled(method, _with_holes(small(float)), threads, 2, None)
        began = time.process_time()
        size = _choose(method, given, threads) if method in _FACTORS else None
        searched = time.process_time() - began
        cpu_began, wall_began = time.process_time(), time.perf_counter()
        filled, iterations = _filled(method, given, threads, size, nearest)
    cpu, wall = time.process_time() - cpu_began, time.perf_counter() - wall_began
    error = float(np.sqrt(np.mean((filled[hidden] - truth) ** 2)))
    return {"rmse": error, "cpu": cpu, "wall": wall, "search": searched + cpu, "size": size,
            "iterations": iterations}  # fmt: skip


_FACTORS = {"PPCA": "mixfold:PPCA", "FactorAnalysis": "mixfold:FactorAnalysis"}


def _with_holes(X: Array) -> Array:
    return np.where(hide(X, HIDDEN, 0), np.nan, X)


def _choose(method: str, X: Array, threads: int | None) -> int:
    """The number of factors that fills other hidden entries best; ends after two worse ones."""
    aside = hide(X, ASIDE, 1)
    given = np.where(aside, np.nan, X)
    errors: dict[int, float] = {}
    for size in (s for s in SIZES if s < min(X.shape) // 2):
        filled, _ = _filled(method, given, threads, size, None)
        errors[size] = float(np.mean((filled[aside] - X[aside]) ** 2))
        if len(errors) > 2 and min(list(errors.values())[-2:]) > min(errors.values()):
            break
    return min(errors, key=errors.__getitem__)


def _filled(
    method: str, X: Array, threads: int | None, size: int | None, nearest: int | None
) -> tuple[Array, int]:
    """The table without holes, and how many iterations it took."""
    if method in _FACTORS:
        model = make(_FACTORS[method], threads, {"n_components": size, "random_state": 0})
        return model.fit(X).impute(X), int(model.n_iter_)
    if method == "column means":
        return np.where(np.isnan(X), np.nanmean(X, axis=0), X), 1
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(n_nearest_features=nearest, random_state=0)
    return imputer.fit_transform(X), int(imputer.n_iter_)


# ------------------------------------------------------------------ in the parent

METHODS = ("column means", "IterativeImputer", *_FACTORS)


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path = Path(folder) / "X.npz"
        for name, (X, nearest) in tables(options).items():
            np.savez(path, X=X, hidden=hide(X, HIDDEN, 0))
            fits = {}
            for method in METHODS:
                if method == "FactorAnalysis" and nearest is not None:
                    continue  # with so many columns its search is too slow
                options.say(f"impute: {name}, {method}")
                fits[method] = run("bench.factor_impute:impute", threads=1, method=method,
                                   path=str(path), nearest=nearest)  # fmt: skip
            label = f"{name} ({len(X):,}, {X.shape[1]})"
            rows.append({"label": label, "nearest": nearest, "fits": fits})
    return {"rows": rows}


def report(result: dict[str, Any]) -> str:
    head = ["table", "", "RMSE", "of IterativeImputer's", "CPU s", "with the search",
            "IterativeImputer takes", "with the search", "factors", "iterations"]  # fmt: skip
    lines = []
    for row in result["rows"]:
        other = row["fits"]["IterativeImputer"]
        for method, fit in row["fits"].items():
            few = row["nearest"] if method == "IterativeImputer" else None
            lines.append([
                row["label"], method if few is None else f"{method}, {few} nearest columns",
                f"{fit['rmse']:.4g}", f"{fit['rmse'] / other['rmse']:.3f}", seconds(fit["cpu"]),
                seconds(fit["search"]), ratio(other["cpu"], fit["cpu"]),
                ratio(other["cpu"], fit["search"]), fit["size"] or "-", fit["iterations"],
            ])  # fmt: skip
    return table(head, lines)
