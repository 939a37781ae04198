"""Semi-supervised PPCA of sparse texts: EM steps against their sparse products, and memory."""

from __future__ import annotations

import gc
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bench import peak
from bench.counts import drawn
from bench.factor_data import real
from bench.jobs import run
from bench.options import Options
from bench.tables import seconds, table

TITLE = "Supervised PPCA, sparse rows"
FACTORS, STEPS, QUICK_STEPS = 20, 100, 10
# rows of each class that are labelled
LABELLED = {"5 of each class": 5, "half": None}


def corpus(options: Options) -> tuple[str, Any, Any]:
    """Name, tf-idf rows of unit length and classes: 20 newsgroups, or documents that are drawn."""
    from sklearn.feature_extraction.text import TfidfTransformer

    content = None if options.quick else real(options, "news20.npz")
    if content is None:
        label, counts, y = "drawn (4,000, 8,000)", drawn(4000, 8000, 70, 4), np.arange(4000) % 4
    else:
        parts = (content["data"].astype(float), content["indices"], content["indptr"])
        counts = sparse.csr_matrix(parts, shape=tuple(content["shape"]))
        label, y = f"news20 ({counts.shape[0]:,}, {counts.shape[1]:,})", content["y"].astype(int)
    return label, TfidfTransformer().fit_transform(counts), y


def measure(options: Options) -> dict[str, Any]:
    label, X, y = corpus(options)
    steps = QUICK_STEPS if options.quick else STEPS
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path, classes = Path(folder) / "X.npz", Path(folder) / "y.npy"
        sparse.save_npz(path, X, compressed=False)
        for name, each in LABELLED.items():
            np.save(classes, known(y, each))
            for mode, threads, _ in options.modes:
                options.say(f"supervised: {label}, {name} labelled, {mode}")
                got = run("bench.supervised:fitted", threads=threads, path=str(path),
                          classes=str(classes), steps=steps)  # fmt: skip
                rows.append({"labelled": name, "mode": mode, "steps": steps, **got})
        both = run("bench.counts:products", threads=1, path=str(path), size=FACTORS)
    whole = X.shape[0] * X.shape[1] * 8 / 1e6
    stored = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    return {"label": label, "stored": stored, "whole": whole, "products": both, "rows": rows}


def known(y: Any, each: int | None) -> Any:
    """Classes of some rows, drawn, and -1 elsewhere; None: of half of the rows."""
    rng = np.random.default_rng(0)
    out = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))
        chosen = rows[: len(rows) // 2 if each is None else each]
        out[chosen] = c
    return out


def fitted(threads: int | None, path: str, classes: str, steps: int) -> dict[str, float]:
    """Seconds of a step, (time of 1 + n steps - time of 1 step) / n, and MB above the data.

    Noises are held at 1e-5, and nothing is accelerated, so that no fit ends before its last step.
    A fit of a few rows comes first, as everywhere.
    """
    from mixfold import SupervisedPPCA

    X, y = sparse.load_npz(path), np.load(classes)
    few = np.flatnonzero(y >= 0)
    few = few[:: max(1, len(few) // 50)]  # of every class
    settings: dict[str, Any] = {
        "task": "classification", "tol": 0.0, "random_state": 0, "acceleration": None,
        "input_noise": 1e-5, "output_noise": 1e-5, "solver": "em", "n_jobs": threads,
    }  # fmt: skip
    clocks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        SupervisedPPCA(2, **settings, max_iter=2).fit(X[few], y[few])
        gc.collect()
        peak.forget()
        before = peak.now()
        for n in (1, 1 + steps):
            cpu, wall = time.process_time(), time.perf_counter()
            model = SupervisedPPCA(FACTORS, **settings, max_iter=n).fit(X, y)
            clocks.append((time.process_time() - cpu, time.perf_counter() - wall))
            if model.n_iter_ != n:
                raise ValueError(f"a fit of {n} steps ended after {model.n_iter_}: nothing to time")
    used = max(0, peak.peak() - before) / 1e6
    cpu_step, wall_step = ((b - a) / steps for a, b in zip(*clocks, strict=True))
    return {"cpu": cpu_step, "wall": wall_step, "start": clocks[0][1], "all": clocks[1][1],
            "peak": used}  # fmt: skip


def report(result: dict[str, Any]) -> str:
    head = ["labelled", "run on", "a step, CPU s", "wall s", "its sparse products, CPU s",
            "their share", "start and a step, s", "whole fit, s", "above the data, MB"]  # fmt: skip
    lines = [
        [row["labelled"], row["mode"], seconds(row["cpu"]), seconds(row["wall"]),
         seconds(result["products"]), f"{result['products'] / row['cpu']:.0%}",
         seconds(row["start"]), seconds(row["all"]), f"{row['peak']:.0f}"]
        for row in result["rows"]
    ]  # fmt: skip
    steps = result["rows"][0]["steps"]
    return (
        f"{result['label']}, {FACTORS} factors, 1 + {steps} EM steps: {result['stored']:.0f} MB as "
        f"stored, {result['whole']:.0f} MB if it were dense.\n\n{table(head, lines)}"
    )
