"""What the workers do for kernel PCA: one fit, its time, its memory, the span it finds."""

from __future__ import annotations

import gc
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from bench import peak
from bench.factor_fits import small
from bench.problems import Array


def fit(
    threads: int | None,
    library: str,
    path: str,
    settings: dict[str, Any],
    exact: str | None = None,
    keep: str | None = None,
) -> dict[str, Any]:
    """CPU and wall seconds of a fit, the MB that it adds at its peak, and its error.

    The error is that of its span beside the one in the file ``exact``; the span is written to
    ``keep``. A fit of a few rows comes first: importing and compiling are not counted, for any
    library.
    """
    X = load(path)
    model = make(library, threads, settings)
    few = {**settings, "n_components": 2}
    if "landmarks" in few:
        few["landmarks"] = 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is told by its error
        make(library, threads, few).fit(small(X.dtype))
        gc.collect()
        peak.forget()
        before = peak.now()
        cpu_began, began = time.process_time(), time.perf_counter()
        model.fit(X)
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        used = max(0, peak.peak() - before) / 1e6
    if keep is not None:
        np.save(keep, span(model, X))
    error = None if exact is None else span_error(span(model, X), np.load(exact))
    passes = int(getattr(model, "n_passes_", 0))
    return {"wall": wall, "cpu": cpu, "peak": used, "passes": passes, "error": error}


def first_within(
    threads: int | None,
    library: str,
    path: str,
    tried: list[dict[str, Any]],
    exact: str,
    error: float,
) -> int:
    """Which settings are the first whose error is small enough; the last ones if none are."""
    X, wanted = load(path), np.load(exact)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, settings in enumerate(tried):
            if span_error(span(make(library, threads, settings).fit(X), X), wanted) <= error:
                return number
    return len(tried) - 1


def make(library: str, threads: int | None, settings: dict[str, Any]) -> Any:
    """An estimator; ours is told the number of threads, the other one by its process."""
    if library == "mixfold":
        from mixfold.estimators.kernels.kernel_pca import KernelPCA

        return KernelPCA(**settings, n_jobs=threads)
    from sklearn.decomposition import KernelPCA as Peer

    return Peer(**settings)


def span(model: Any, X: Any) -> Array:
    """Scores of the rows, (N, d), of unit length: eigenvectors of the kernel matrix."""
    found = getattr(model, "eigenvectors_", None)
    scores = np.asarray(model.transform(X) if found is None else found, float)
    return np.asarray(scores / np.linalg.norm(scores, axis=0))


def load(path: str) -> Any:
    """Rows from a file: dense (.npy) or sparse (.npz)."""
    return np.load(path) if Path(path).suffix == ".npy" else sparse.csr_array(sparse.load_npz(path))


def dense(threads: int | None, path: str, settings: dict[str, Any], keep: str) -> None:
    """The leading eigenvectors of the whole centred kernel matrix, by LAPACK."""
    from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

    X = load(path)
    if settings["kernel"] == "rbf":
        G = rbf_kernel(X, gamma=settings["gamma"])
    else:
        G = np.asarray(linear_kernel(X, dense_output=True))
    means = G.mean(axis=0)
    G += means.mean() - means - means[:, None]
    n, d = len(G), settings["n_components"]
    np.save(keep, eigh(G, subset_by_index=[n - d, n - 1], overwrite_a=True)[1])


def span_error(found: Array, exact: Array) -> float:
    """Sine of the largest angle from the span of ``exact`` to that of ``found``."""
    Q, exact = np.linalg.qr(found)[0], np.linalg.qr(exact)[0]
    return min(1.0, float(np.linalg.norm(exact - Q @ (Q.T @ exact), 2)))
