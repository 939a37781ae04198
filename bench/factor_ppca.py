"""Principal axes: time, memory, and how near the axes are to those of a dense decomposition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh, subspace_angles

from bench.factor_data import digits, spread
from bench.jobs import run
from bench.options import Options
from bench.problems import Array
from bench.tables import ratio, seconds, table

TITLE = "PPCA against scikit-learn's PCA, 20 axes"
SIZE = 20
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "mixfold": ("mixfold:PPCA", {}),
    "randomized": ("sklearn.decomposition:PCA", {"svd_solver": "randomized"}),
    "covariance_eigh": ("sklearn.decomposition:PCA", {"svd_solver": "covariance_eigh"}),
}


def problems(options: Options) -> Iterator[tuple[str, Array, str]]:
    """Name, rows, and the solver of scikit-learn that suits them.

    "gap": 20 factors stand out from the noise. "decay": variances fall like 1 / i from the first
    factor to the five hundredth, so that the twentieth axis is hardly apart from the next one.
    """
    n, d = (500, 1000) if options.quick else (5000, 10_000)
    order = np.arange(1, 1 + min(500, n // 2))
    yield f"gap ({n:,}, {d:,})", spread(n, d, np.linspace(0.6, 0.2, SIZE), 1.0), "randomized"
    yield f"decay ({n:,}, {d:,})", spread(n, d, order**-0.5, 0.05), "randomized"
    name, images, _ = digits(options, "none")
    yield name, images, "covariance_eigh"


def reference(threads: int | None, path: str) -> Any:
    """Axes (D, d) by a dense decomposition of the smaller of X X' and X' X."""
    X = np.load(path)
    X -= X.mean(axis=0)
    n, d = X.shape
    gram = X.T @ X if d <= n else X @ X.T
    order = len(gram)
    _, vectors = eigh(gram, subset_by_index=[order - SIZE, order - 1], overwrite_a=True)
    axes = vectors if d <= n else np.linalg.qr(X.T @ vectors)[0]
    return axes.tolist()


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path = Path(folder) / "X.npy"
        for label, X, solver in problems(options):
            options.say(f"ppca: {label}")
            np.save(path, X)
            size = X.nbytes / 1e6
            peers = {name: _one(name, path, options) for name in ("mixfold", solver)}
            _compare(peers, path)
            rows.append({"label": label, "solver": solver, "data": size, "peers": peers})
    return {"rows": rows}


def _one(name: str, path: Path, options: Options) -> dict[str, Any]:
    """Best times over the rounds; memory and axes of the first fit."""
    estimator, settings = SETTINGS[name]
    result: dict[str, Any] = {}
    for turn in range(1 if options.quick else 3):
        for mode, threads, clock in options.modes:
            got = run("bench.factor_fits:fit", threads=threads, estimator=estimator, path=str(path),
                      settings={"n_components": SIZE, "random_state": 0, **settings},
                      keep=str(path.with_name(f"{name}.npz")), names="components_")  # fmt: skip
            result[mode] = min(got[clock], result.get(mode, float("inf")))
            if turn == 0:
                result["peak"] = got["peak"]
    return result


def _compare(peers: dict[str, dict[str, Any]], path: Path) -> None:
    """The largest angle to the dense axes, and between the two libraries, in radians."""
    exact = np.array(run("bench.factor_ppca:reference", threads=None, path=str(path)))
    axes = {}
    for name, result in peers.items():
        with np.load(path.with_name(f"{name}.npz")) as kept:
            axes[name] = kept["components_"].T.astype(float)
        result["angle"] = float(subspace_angles(axes[name], exact).max())
    first, second = axes.values()
    peers["mixfold"]["between"] = float(subspace_angles(first, second).max())


def report(result: dict[str, Any]) -> str:
    head = ["data", "scikit-learn's solver", "mixfold, CPU s", "scikit-learn",
            "all cores: mixfold, s", "scikit-learn", "angle: mixfold", "scikit-learn", "between",
            "data, MB", "above them: mixfold", "scikit-learn"]  # fmt: skip
    lines = []
    for row in result["rows"]:
        own, other = row["peers"]["mixfold"], row["peers"][row["solver"]]
        times: list[object] = []
        for mode in ("one thread", "all cores"):
            times += [seconds(own.get(mode)), ratio(other.get(mode), own.get(mode))]
        angles = [f"{a:.0e}" for a in (own["angle"], other["angle"], own["between"])]
        peaks = [f"{value:.0f}" for value in (row["data"], own["peak"], other["peak"])]
        lines.append([row["label"], row["solver"], *times, *angles, *peaks])
    note = "Angles are the largest between two subspaces, in radians; the first two to a dense one."
    return f"{table(head, lines)}\n\n{note}"
