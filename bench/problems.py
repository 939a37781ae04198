"""The data sets of the benchmark, and a start that every library is given alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """A mixture to fit: its shape, its covariances, and the usual distance of two centres."""

    n: int
    d: int
    k: int
    covariance: str = "full"
    dtype: str = "float64"
    separation: float = 4.0

    @property
    def label(self) -> str:
        single = "" if self.dtype == "float64" else f", {self.dtype}"
        return f"{self.covariance} ({self.n:,}, {self.d}, {self.k}){single}".replace(
            ",000,000", "e6"
        )

    @property
    def n_products(self) -> int:
        """P of the two products theta @ T and R @ T': columns of the quadratic features."""
        if self.covariance == "full":
            return 1 + self.d + self.d * (self.d + 1) // 2
        return 1 + 2 * self.d

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Start:
    """Parameters from which every library begins; ``variances`` (D,) serve every component."""

    weights: Array
    means: Array
    variances: Array

    def covariances(self, kind: str) -> Array:
        """The variances in the shape scikit-learn gives to this kind of covariance."""
        k = len(self.means)
        if kind == "full":
            return np.tile(np.diag(self.variances), (k, 1, 1))
        if kind == "tied":
            return np.diag(self.variances)
        if kind == "diag":
            return np.tile(self.variances, (k, 1))
        return np.full(k, self.variances.mean())

    def precisions(self, kind: str) -> Array:
        covariances = self.covariances(kind)
        return np.linalg.inv(covariances) if kind in ("full", "tied") else 1 / covariances


@dataclass(frozen=True)
class Truth:
    """A random mixture; a row is a standard normal one times a transform, plus a centre."""

    weights: Array
    centres: Array
    transforms: Array


def truth(problem: Problem) -> Truth:
    """Ellipsoids in all directions (diag: along the axes), half-axes 0.5 to 1.5, unequal weights.

    A shape always has the same one.
    """
    rng = np.random.default_rng([problem.d, problem.k])
    k, d = problem.k, problem.d
    sizes = rng.uniform(0.5, 1.5, size=(k, d))
    centres = rng.normal(size=(k, d)) * problem.separation / np.sqrt(2 * d)
    turns = (
        np.linalg.qr(rng.normal(size=(k, d, d)))[0] if problem.covariance != "diag" else np.eye(d)
    )
    return Truth(rng.dirichlet(np.full(k, 5.0)), centres, sizes[:, :, None] * turns)


def draw(problem: Problem, seed: int = 0) -> Array:
    """Rows of the mixture of this shape."""
    mixture, rng = truth(problem), np.random.default_rng([seed, 1])
    labels = rng.choice(problem.k, size=problem.n, p=mixture.weights)
    X = rng.normal(size=(problem.n, problem.d))
    for k in range(problem.k):
        own = np.flatnonzero(labels == k)
        X[own] = X[own] @ mixture.transforms[k] + mixture.centres[k]
    return X


def start_for(X: Array, problem: Problem) -> Start:
    """Not the truth, but near enough that no component dies: there is no floor to catch one."""
    centres = truth(problem).centres
    moved = centres + np.random.default_rng(0).normal(size=centres.shape) * 0.5
    return Start(np.full(problem.k, 1 / problem.k), moved, X.var(axis=0, dtype=float))


def store(folder: Path, problem: Problem) -> Path:
    """Write data and start to a file for the workers; returns the file of the data."""
    X = draw(problem)
    start = start_for(X, problem)
    path = folder / f"{problem.covariance}-{problem.n}-{problem.d}-{problem.k}-{problem.dtype}.npy"
    np.save(path, X.astype(problem.dtype, copy=False))
    np.savez(path.with_suffix(".npz"), **vars(start))
    return path


def load(path: str) -> tuple[Array, Start]:
    with np.load(Path(path).with_suffix(".npz")) as parts:
        return np.load(path), Start(**parts)
