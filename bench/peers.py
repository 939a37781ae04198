"""The libraries: one function each that runs EM from a given start for a given number of steps."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.problems import Array, Problem, Start, draw, start_for


@dataclass(frozen=True)
class Result:
    """Parameters in scikit-learn's shapes, and how many steps were really made."""

    weights: Array
    means: Array
    covariances: Array
    n_iter: int


Fit = Callable[[Array, Start, Problem, int, int | None], Result]


def mixfold(X: Array, start: Start, problem: Problem, n_iter: int, threads: int | None) -> Result:
    from mixfold import GaussianMixture

    return _estimator(GaussianMixture, X, start, problem, n_iter, acceleration=None, n_jobs=threads)


def scikit_learn(
    X: Array, start: Start, problem: Problem, n_iter: int, threads: int | None
) -> Result:
    # threads: the worker's environment limits BLAS, and nothing else in there is threaded
    from sklearn.mixture import GaussianMixture

    # no initialisation is run when all parts of the start are given, but the name is checked
    return _estimator(GaussianMixture, X, start, problem, n_iter, init_params="random_from_data")


def _estimator(
    kind: Any, X: Array, start: Start, problem: Problem, n_iter: int, **own: Any
) -> Result:
    model = kind(
        problem.k,
        covariance_type=problem.covariance,
        tol=0.0,
        reg_covar=0.0,
        max_iter=n_iter,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=start.precisions(problem.covariance),
        random_state=0,
        **own,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few steps do not converge is meant
        model.fit(X)
    return Result(model.weights_, model.means_, model.covariances_, model.n_iter_)


def onedal(X: Array, start: Start, problem: Problem, n_iter: int, threads: int | None) -> Result:
    library = _daal4py()
    library.daalinit(nthreads=threads or -1)
    own = [np.atleast_2d(c).astype(X.dtype) for c in start.covariances(problem.covariance)]
    algorithm = library.em_gmm(
        nComponents=problem.k,
        fptype="float" if X.dtype == np.float32 else "double",
        maxIterations=n_iter,
        accuracyThreshold=0.0,
        regularizationFactor=0.0,
        covarianceStorage="diagonal" if problem.covariance == "diag" else "full",
    )
    out = algorithm.compute(
        X, start.weights[None].astype(X.dtype), start.means.astype(X.dtype), own
    )
    covariances = np.stack([np.squeeze(c, 0) if problem.covariance == "diag" else c
                            for c in map(np.asarray, out.covariances)])  # fmt: skip
    # it stops when the objective, in the precision of the data, no longer moves: fewer steps
    steps = int(np.asarray(out.nIterations).item())
    return Result(np.asarray(out.weights)[0], np.asarray(out.means), covariances, steps)


def _daal4py() -> Any:
    """The compiled part of daal4py alone.

    The package also patches scikit-learn when it is imported, and the last release on PyPI fails
    in that with scikit-learn 1.9; em_gmm does not need it.
    """
    if "daal4py" not in sys.modules:
        spec = importlib.util.find_spec("daal4py")
        if spec is None or spec.submodule_search_locations is None:
            raise ImportError("daal4py is not installed: pip install 'mixfold[bench]'")
        shell = types.ModuleType("daal4py")
        shell.__path__ = list(spec.submodule_search_locations)
        sys.modules["daal4py"] = shell
    return importlib.import_module("daal4py._daal4py")


PEERS: dict[str, Fit] = {"mixfold": mixfold, "scikit-learn": scikit_learn, "oneDAL": onedal}
_KINDS = {"oneDAL": ("full", "diag")}
_PACKAGES = {"mixfold": "mixfold", "scikit-learn": "scikit-learn", "oneDAL": "daal4py"}


def warm_up(name: str, problem: Problem, threads: int | None) -> None:
    """A fit of a few rows: imports, compiles, starts threads. Its shape is of no matter."""
    small = Problem(2000, 2, 2, problem.covariance, problem.dtype)
    X = draw(small).astype(small.dtype)
    PEERS[name](X, start_for(X, small), small, 2, threads)


def offers(name: str, problem: Problem) -> bool:
    """Whether the library is installed and has this kind of covariance."""
    return version(name) is not None and problem.covariance in _KINDS.get(
        name, (problem.covariance,)
    )


def version(name: str) -> str | None:
    package = _PACKAGES[name]
    if importlib.util.find_spec(package.replace("scikit-learn", "sklearn")) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "source tree"


def log_likelihood(result: Result, X: Array, kind: str) -> float:
    """Mean log-likelihood per row in double precision, by the same judge for everybody."""
    from sklearn.mixture import GaussianMixture

    covariances = result.covariances.astype(float)
    judge = GaussianMixture(len(result.weights), covariance_type=kind)
    judge.weights_, judge.means_ = result.weights.astype(float), result.means.astype(float)
    if kind in ("full", "tied"):
        whiten = np.linalg.inv(np.linalg.cholesky(covariances))
        judge.precisions_cholesky_ = np.swapaxes(whiten, -1, -2)
    else:
        judge.precisions_cholesky_ = 1 / np.sqrt(covariances)
    parts = (X[i : i + 20_000].astype(float) for i in range(0, len(X), 20_000))
    return float(sum(judge.score_samples(part).sum() for part in parts) / len(X))
