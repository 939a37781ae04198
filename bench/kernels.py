"""Kernel PCA: time and memory at equal error, many rows in little memory, and landmarks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bench.counts import drawn
from bench.factor_data import groups, real
from bench.jobs import run
from bench.options import Options
from bench.tables import ratio, seconds, table

TITLE = "Kernel PCA, 50 components"
SIZE = 50
ROWS, QUICK_ROWS = (3000, 8000), (600,)
# rows up to which a dense decomposition is the reference; beyond, mixfold at this tolerance
DENSE_ROWS, REFERENCE_TOL = 3000, 1e-10
SMALL_ERROR, FAIR_ERROR = 1e-6, 1e-3
# settings that are tried in this order until the error is small enough
TOLERANCES = {SMALL_ERROR: (1e-6, 1e-7, 1e-8), FAIR_ERROR: (1e-2, 3e-3, 1e-3, 1e-4, 1e-5)}
POWERS: tuple[int | str, ...] = ("auto", 10, 15, 20, 30, 45, 60, 90)
MANY, LANDMARK_ROWS, LANDMARKS = 50_000, 1_000_000, 500
LIMIT = 4000  # MB, of many rows


@dataclass(frozen=True)
class Case:
    """Rows in a file, and the kernel they are seen by."""

    label: str
    n: int
    path: str
    data: float
    settings: dict[str, Any]
    solvers: tuple[str, ...]


def measure(options: Options) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as name:
        folder = Path(name)
        for case in cases(options, folder):
            options.say(f"kernels: {case.label}")
            rows += compare(case, options, folder)
            Path(case.path).unlink()
        return {"rows": rows, "many": list(many(options, folder)),
                "landmarks": landmarks(options, folder)}  # fmt: skip


# ------------------------------------------------ data


def cases(options: Options, folder: Path) -> Iterator[Case]:
    """rbf and linear kernels of images, linear of texts, for each number of rows."""
    counts = QUICK_ROWS if options.quick else ROWS
    name, X = images(options, max(counts))
    gamma = 1.0 / (X.shape[1] * float(X.var()))
    words_name, words = ("", None) if options.quick else texts(options, max(counts))
    for n in counts:
        path = folder / "X.npy"
        np.save(path, X[:n])
        mb = X[:n].nbytes / 1e6
        rbf = {"kernel": "rbf", "gamma": gamma}
        yield Case(f"rbf, {name} ({n:,}, {X.shape[1]})", n, str(path), mb, rbf, ("auto",))
        np.save(path, X[:n])  # the last one was deleted
        linear = {"kernel": "linear"}
        yield Case(f"linear, {name} ({n:,}, {X.shape[1]})", n, str(path), mb, linear,
                   ("auto", "krylov"))  # fmt: skip
        if words is None:
            continue
        some, path = words[:n], folder / "X.npz"
        sparse.save_npz(path, some, compressed=False)
        mb = (some.data.nbytes + some.indices.nbytes + some.indptr.nbytes) / 1e6
        label = f"linear, {words_name} ({n:,}, {some.shape[1]:,})"
        yield Case(label, n, str(path), mb, linear, ("auto", "krylov"))


def images(options: Options, n: int) -> tuple[str, Any]:
    """MNIST with pixels in 0..1, or rows of that shape that are drawn."""
    content = real(options, "mnist.npz")
    if content is None:
        return "drawn", groups(n, 784, 20, 5)
    return "MNIST", content["X"][:n] / 255.0


def texts(options: Options, n: int) -> tuple[str, Any]:
    """tf-idf rows of news in random order, or of documents that are drawn."""
    from sklearn.feature_extraction.text import TfidfTransformer

    content = real(options, "tdt2_top20.npz")
    if content is None:
        name, counts = "drawn texts", sparse.csr_array(drawn(n, 8000, 70, 4))
    else:
        parts = (content["data"].astype(float), content["indices"], content["indptr"])
        name, counts = "TDT2", sparse.csr_array(parts, shape=tuple(content["shape"]))
    chosen = np.random.default_rng(0).permutation(counts.shape[0])[:n]
    return name, sparse.csr_array(TfidfTransformer().fit_transform(counts)[chosen])


# ------------------------------------------------ at equal error


def compare(case: Case, options: Options, folder: Path) -> list[dict[str, Any]]:
    """A line for each solver of ours and each error, with the peer that suits it."""
    exact = reference(case, folder)
    peers = {
        SMALL_ERROR: best("scikit-learn", case, [{"eigen_solver": "arpack"}], SMALL_ERROR, exact,
                          options),
        FAIR_ERROR: best("scikit-learn", case,
                         [{"eigen_solver": "randomized", "iterated_power": p} for p in POWERS],
                         FAIR_ERROR, exact, options),
    }  # fmt: skip
    lines = []
    for solver in case.solvers:
        for error, tolerances in TOLERANCES.items():
            tried = [{"solver": solver, "tol": tol} for tol in tolerances]
            own = best("mixfold", case, tried, error, exact, options)
            lines.append({"label": case.label, "data": case.data, "solver": solver, "wanted": error,
                          "mixfold": own, "peer": peers[error]})  # fmt: skip
    return lines


def reference(case: Case, folder: Path) -> str:
    """File of the exact eigenvectors, or of those of a small tolerance where there are many."""
    keep, settings = str(folder / "exact.npy"), {"n_components": SIZE, **case.settings}
    if case.n <= DENSE_ROWS:
        run("bench.kernel_fits:dense", threads=None, path=case.path, settings=settings, keep=keep)
    else:
        exact = {"solver": "krylov", "tol": REFERENCE_TOL, "random_state": 1, "max_iter": 1000}
        run("bench.kernel_fits:fit", threads=None, library="mixfold", path=case.path,
            settings=settings | exact, keep=keep)  # fmt: skip
    return keep


def best(
    library: str, case: Case, tried: list[dict[str, Any]], error: float, exact: str,
    options: Options,
) -> dict[str, Any]:  # fmt: skip
    """Times and memory of the first settings whose error is small enough (else of the last)."""
    common = {"n_components": SIZE, "random_state": 0, **case.settings}
    chosen = 0
    if len(tried) > 1:
        chosen = run("bench.kernel_fits:first_within", threads=None, library=library, error=error,
                     path=case.path, exact=exact, tried=[common | s for s in tried])  # fmt: skip
    result: dict[str, Any] = {"settings": tried[chosen]}
    for mode, threads, clock in options.modes:
        for turn in range(1 if options.quick else 3):
            got = run("bench.kernel_fits:fit", threads=threads, library=library, path=case.path,
                      settings=common | tried[chosen], exact=exact)  # fmt: skip
            result[mode] = min(got[clock], result.get(mode, float("inf")))
            if turn == 0:
                result |= {name: got[name] for name in ("error", "passes", "peak")}
    return result


# ------------------------------------------------ many rows


def many(options: Options, folder: Path) -> Iterator[dict[str, Any]]:
    """More rows than their kernel matrix could be kept for, in both precisions."""
    n = 1500 if options.quick else MANY
    name, X = images(options, n)
    settings: dict[str, Any] = {
        "n_components": SIZE, "kernel": "rbf", "gamma": 1.0 / (X.shape[1] * float(X.var())),
        "random_state": 0,
    }  # fmt: skip
    if options.quick:
        settings["cache_size"] = 1  # most tiles are made again, as with many rows
    path = folder / "X.npy"
    for dtype in ("float64", "float32"):
        options.say(f"kernels: {n:,} rows, {dtype}")
        np.save(path, X.astype(dtype))
        mode = options.modes[-1]
        got = run("bench.kernel_fits:fit", threads=mode[1], library="mixfold", path=str(path),
                  settings=settings)  # fmt: skip
        yield {"label": f"{name} ({n:,}, {X.shape[1]})", "dtype": dtype, "mode": mode[0],
               "data": n * X.shape[1] * np.dtype(dtype).itemsize / 1e6, "matrix": n * n * 8 / 1e6,
               **got}  # fmt: skip


def landmarks(options: Options, folder: Path) -> dict[str, Any]:
    """A million rows of twenty columns, seen by their products with a few of them."""
    n = 20_000 if options.quick else LANDMARK_ROWS
    options.say(f"kernels: {LANDMARKS} landmarks, {n:,} rows")
    X = groups(n, 20, 20, 5)
    path = folder / "X.npy"
    np.save(path, X)
    settings = {"n_components": SIZE, "kernel": "rbf", "landmarks": LANDMARKS, "random_state": 0}
    mode = options.modes[-1]
    got = run("bench.kernel_fits:fit", threads=mode[1], library="mixfold", path=str(path),
              settings=settings)  # fmt: skip
    return {"label": f"drawn ({n:,}, 20)", "mode": mode[0], "data": X.nbytes / 1e6, **got}


# ------------------------------------------------ tables


def report(result: dict[str, Any]) -> str:
    head = ["kernel, rows", "our solver", "error wanted", "mixfold, CPU s", "scikit-learn",
            "all cores: mixfold, s", "scikit-learn", "errors", "tol, iterated_power",
            "data, MB", "above them: mixfold", "scikit-learn"]  # fmt: skip
    lines = [_line(row) for row in result["rows"]]
    note = (
        f"{SMALL_ERROR:g} is wanted of mixfold and of arpack; {FAIR_ERROR:g} of mixfold and of "
        "the randomized solver with as many power iterations as that takes (of those tried: "
        f"{', '.join(map(str, POWERS))}). Where none of them gets there the last one is shown, and "
        "the errors differ."
    )
    return "\n\n".join([table(head, lines), note, _large(result)])


def _line(row: dict[str, Any]) -> list[object]:
    own, peer = row["mixfold"], row["peer"]
    times: list[object] = []
    for mode in ("one thread", "all cores"):
        times += [seconds(own.get(mode)), ratio(peer.get(mode), own.get(mode))]
    power = peer["settings"].get("iterated_power", "arpack")
    return [row["label"], row["solver"], f"{row['wanted']:g}", *times,
            f"{own['error']:.0e}, {peer['error']:.0e}", f"{own['settings']['tol']:g}, {power}",
            f"{row['data']:.0f}", f"{own['peak']:.0f}", f"{peer['peak']:.0f}"]  # fmt: skip


def _large(result: dict[str, Any]) -> str:
    head = ["rows", "run on", "wall s", "CPU s", "passes", "data, MB", "above them, MB"]
    lines = [
        [f"rbf, {row['label']}, {row['dtype']}", *_facts(row), _within(row["peak"])]
        for row in result["many"]
    ]
    few = result["landmarks"]
    lines.append([f"rbf, {few['label']}, {LANDMARKS} landmarks", *_facts(few),
                  _within(few["peak"])])  # fmt: skip
    matrix = result["many"][0]["matrix"]
    note = (
        f"scikit-learn makes the whole kernel matrix, {matrix:,.0f} MB for the first of these; it "
        "was not run on them."
    )
    return f"{table(head, lines)}\n\n{note}"


def _facts(row: dict[str, Any]) -> list[object]:
    return [row["mode"], seconds(row["wall"]), seconds(row["cpu"]), row["passes"],
            f"{row['data']:.0f}"]  # fmt: skip


def _within(peak: float) -> str:
    return f"{peak:.0f}" if peak <= LIMIT else f"{peak:.0f} (more than {LIMIT})"
