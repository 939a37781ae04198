"""Kernel PCA of one kernel matrix by several solvers: the time of each, and how near it comes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.data import load_arrays
from mixfold.experiments.experiment import DataFile
from mixfold.math.kernels import Kernel, LinearKernel, RbfKernel

NOISE, STEPS = 0.01, 20  # of EM in the source
# beyond that many rows a dense decomposition takes minutes, and the solver below is the reference
DENSE_ROWS, EXACT = 4000, 1e-10

WORDS = DataFile(
    "reuters5.npz",
    "word counts as a CSR matrix of 3972 x 7360 (arrays data, indices, indptr, shape)",
    "Reuters-21578, articles with one of five topics, words that occur in two articles or more",
    optional=True,
)
DIGITS = DataFile(
    "mnist.npz",
    "array X (70000 images x 784, grey values of 28 x 28 pixels)",
    "MNIST, handwritten digits (LeCun, Cortes, Burges)",
    optional=True,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table in random order, and the kernel it is seen by."""

    name: str
    X: Any
    kernel: Kernel

    def gram(self, n: int) -> Array:
        """The kernel matrix of the first n rows."""
        return np.ascontiguousarray(self.kernel.block(self.X[:n], self.X[:n]), np.float64)


@dataclass(frozen=True, slots=True)
class Outcome:
    """CPU seconds of a fit, and the sine of the largest angle between its span and the exact."""

    seconds: float
    error: float


Solve = Callable[[Array, int, int], Array]


def texts(folder: Path, n: int, rng: np.random.Generator) -> Rows:
    """Reuters articles as tf-idf rows of unit length; linear kernel."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfTransformer

    path = folder / WORDS.name
    data, indices, indptr, shape = load_arrays(path, ("data", "indices", "indptr", "shape"))
    counts = sparse.csr_array((data.astype(float), indices, indptr), shape=tuple(shape))
    _check_rows(path, counts.shape[0], n)
    chosen = rng.permutation(counts.shape[0])[:n]
    return Rows("Reuters, linear", TfidfTransformer().fit_transform(counts)[chosen], LinearKernel())


def images(folder: Path, n: int, rng: np.random.Generator) -> Rows:
    """Handwritten digits; rbf kernel as wide as the pixels vary."""
    path = folder / DIGITS.name
    (pixels,) = load_arrays(path, ("X",))
    _check_rows(path, len(pixels), n)
    X = pixels[np.sort(rng.permutation(len(pixels))[:n])].astype(float)
    X = rng.permutation(X / 255)
    return Rows("MNIST, rbf", X, RbfKernel(1.0 / (X.shape[1] * float(X.var()))))


def _check_rows(path: Path, found: int, wanted: int) -> None:
    if found < wanted:
        raise ValueError(
            f"{str(path)!r} must hold at least {wanted} rows; it has {found}. Obtain it again."
        )


LOADERS = {WORDS: texts, DIGITS: images}

# ------------------------------------------------ solvers


def _ours(solver: str, **settings: Any) -> Solve:
    def solve(G: Array, d: int, seed: int) -> Array:
        from mixfold.estimators.kernel_pca import KernelPCA

        common: dict[str, Any] = {"kernel": "precomputed", "n_jobs": 1, "random_state": seed}
        model = KernelPCA(d, solver=solver, **(common | settings)).fit(G)
        return np.asarray(model.eigenvectors_)

    return solve


def _theirs(solver: str) -> Solve:
    def solve(G: Array, d: int, seed: int) -> Array:
        from sklearn.decomposition import KernelPCA

        model = KernelPCA(d, kernel="precomputed", eigen_solver=solver, random_state=seed)
        return np.asarray(model.fit(G).eigenvectors_)

    return solve


SOURCE, CONVERGED = f"EM, {STEPS} steps", "EM"
SOLVERS: dict[str, Solve] = {
    SOURCE: _ours("em", noise_variance=NOISE, max_iter=STEPS, tol=0.0),
    CONVERGED: _ours("em", max_iter=300),
    "krylov": _ours("krylov"),
    "chebyshev": _ours("chebyshev"),
    "arpack": _theirs("arpack"),
    "randomized": _theirs("randomized"),
    "dense": _theirs("dense"),
}
exact_vectors = _ours("krylov", tol=EXACT)


def measured(G: Array, d: int, seed: int) -> dict[str, Outcome]:
    """Every solver on one kernel matrix, on one thread each; dense for few rows only."""
    from threadpoolctl import threadpool_limits

    taken: dict[str, tuple[float, Array]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # steps too few to converge, axes that noise takes away
        for name, solve in SOLVERS.items():
            if name == "dense" and len(G) > DENSE_ROWS:
                continue
            began = time.process_time()
            vectors = solve(G, d, seed)
            taken[name] = time.process_time() - began, vectors
        exact = taken["dense"][1] if "dense" in taken else exact_vectors(G, d, seed)
    return {
        name: Outcome(seconds, span_error(vectors, exact))
        for name, (seconds, vectors) in taken.items()
    }


def warm_up() -> None:
    """Every solver once, so that no time is that of importing it."""
    X = np.random.default_rng(0).normal(size=(40, 5))
    measured(X @ X.T, 2, 0)


def span_error(found: Array, exact: Array) -> float:
    """Sine of the largest angle from the span of ``exact`` to that of ``found``, (N, d) each.

    Examples
    --------
    >>> round(span_error(np.eye(3)[:, :1], np.array([[0.8], [0.6], [0.0]])), 6)
    0.6
    """
    Q, exact = np.linalg.qr(found)[0], np.linalg.qr(exact)[0]
    return min(1.0, float(np.linalg.norm(exact - Q @ (Q.T @ exact), 2)))
