"""Mixtures of counts on sparse rows: one iteration against its two sparse products, and memory."""

from __future__ import annotations

import gc
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bench import peak
from bench.factor_data import real
from bench.jobs import run
from bench.options import Options
from bench.tables import seconds, table

TITLE = "Mixtures of counts, sparse rows"
FAMILIES = ("poisson", "multinomial")
INFERENCES = ("em", "vb")
SIZES, QUICK_SIZES = (4, 20, 50, 200), (20,)
STEPS = 10


def corpus(options: Options) -> tuple[str, Any]:
    """Words of four newsgroups, or documents that are drawn."""
    content = real(options, "newsgroup4.npz")
    if content is None:
        return "drawn (4,000, 8,000)", drawn(4000, 8000, 70, 4)
    X = sparse.csr_matrix(
        (content["data"].astype(float), content["indices"], content["indptr"]),
        shape=tuple(content["shape"]),
    )
    return f"newsgroup4 ({X.shape[0]:,}, {X.shape[1]:,})", X


def drawn(n: int, n_words: int, length: int, n_topics: int) -> Any:
    """Documents of one topic each, whose words have frequencies like 1 / rank."""
    rng = np.random.default_rng(0)
    law = 1 / np.arange(1, n_words + 1)
    topics = [rng.permutation(law / law.sum()) for _ in range(n_topics)]
    words = np.concatenate([rng.choice(n_words, length, p=topics[i % n_topics]) for i in range(n)])
    X = sparse.coo_matrix((np.ones(n * length), (np.repeat(np.arange(n), length), words)),
                          shape=(n, n_words))  # fmt: skip
    return X.tocsr()


def measure(options: Options) -> dict[str, Any]:
    rate = run("bench.timing:gemm", threads=1, dtype="float64")
    label, X = corpus(options)
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as folder:
        path = Path(folder) / "X.npz"
        sparse.save_npz(path, X, compressed=False)
        for size in QUICK_SIZES if options.quick else SIZES:
            options.say(f"counts: {label}, K = {size}")
            products = run("bench.counts:products", threads=1, path=str(path), size=size)
            dense = 4 * X.shape[0] * X.shape[1] * size / rate / 1e9
            for family in FAMILIES:
                for inference in INFERENCES:
                    got = run("bench.counts:per_iteration", threads=1, path=str(path), size=size,
                              family=family, inference=inference)  # fmt: skip
                    rows.append({"size": size, "family": family, "inference": inference,
                                 "products": products, "dense": dense, **got})  # fmt: skip
    whole = X.shape[0] * X.shape[1] * 8 / 1e6
    stored = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    return {"label": label, "gemm": rate, "stored": stored, "whole": whole, "rows": rows}


# ------------------------------------------------------------------ what the workers do


def products(threads: int | None, path: str, size: int) -> float:
    """CPU seconds of X @ B and X.T @ R by scipy, the best of several."""
    X = sparse.load_npz(path)
    rng = np.random.default_rng(0)
    B, R = rng.random((X.shape[1], size)), rng.random((X.shape[0], size))
    return _best(lambda: (X @ B, X.T @ R), 7)


def _best(task: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        task()
        best = min(best, time.process_time() - began)
    return best


def per_iteration(
    threads: int | None, path: str, size: int, family: str, inference: str
) -> dict[str, float]:
    """(time of 1 + n steps - time of 1 step) / n from where a first fit ended, and MB at its peak.

    The peak is that of the start, too.
    """
    from mixfold import Mixture

    X = sparse.load_npz(path)
    settings: dict[str, Any] = {
        "inference": inference, "tol": 0.0, "random_state": 0, "init_params": "random_from_data",
        "merge_split": False, "acceleration": None, "n_jobs": threads, "warm_start": True,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        Mixture(family, 2, **settings, max_iter=2).fit(X[:50])
        gc.collect()
        peak.forget()
        before = peak.now()
        model = Mixture(family, size, **settings, max_iter=1)
        start = _best(lambda: model.fit(X), 1)
        used = max(0, peak.peak() - before) / 1e6
        few = _best(lambda: model.set_params(max_iter=1).fit(X), 3)
        many = _best(lambda: model.set_params(max_iter=1 + STEPS).fit(X), 3)
    return {"cpu": (many - few) / STEPS, "start": start, "peak": used}


# ------------------------------------------------------------------ tables


def report(result: dict[str, Any]) -> str:
    head = ["K", "family", "inference", "CPU ms", "its sparse products", "times them",
            "dense products", "start, s", "above the data, MB"]  # fmt: skip
    lines = [
        [row["size"], row["family"], row["inference"], f"{1e3 * row['cpu']:.1f}",
         f"{1e3 * row['products']:.1f}", f"{row['cpu'] / row['products']:.2f}x",
         f"{1e3 * row['dense']:.0f}", seconds(row["start"]), f"{row['peak']:.0f}"]
        for row in result["rows"]
    ]  # fmt: skip
    return (
        f"{result['label']}: {result['stored']:.0f} MB as stored, {result['whole']:.0f} MB if it "
        f"were dense. GEMM on one thread: {result['gemm']:.1f} GFLOP/s.\n\n{table(head, lines)}"
    )
