"""What is compared on small tables: pairs of calls, ours and scikit-learn's, by name."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.entries.networks import SIGNS

Call = Callable[[], Any]
# CPU seconds of one sample at the least (shorter calls are repeated), and of all of one case at
# the most, after FEWEST pairs
SAMPLE, ENOUGH, FEWEST = 0.02, 4.0, 5


@dataclass(frozen=True)
class Case:
    """One line: what both do, how many times longer ours may take, and a score of what they found.

    ``make`` gives the two calls and a function that scores what a call returned, or None. Scores
    are means per row; more is better.
    """

    name: str
    peer: str
    aim: float
    make: Callable[[], tuple[Call, Call, Callable[[Any], float] | None]]


# ------------------------------------------------ tables


def iris() -> Any:
    from sklearn.datasets import load_iris

    return load_iris()


def groups(n: int, d: int, k: int, seed: int = 0) -> tuple[Any, Any]:
    """Overlapping groups with covariances of their own, and which one each row is of."""
    rng = np.random.default_rng([seed, n, d])
    labels = rng.integers(k, size=n)
    centres, shapes = rng.normal(scale=1.2, size=(k, d)), rng.normal(size=(k, d, d)) / np.sqrt(d)
    noise = rng.normal(size=(n, d))
    X = centres[labels] + 0.5 * noise + np.einsum("nd,nde->ne", noise, shapes[labels])
    return X, labels


def table(n: int, d: int) -> tuple[Any, Any]:
    """Rows and their classes: the irises where they fit, else drawn."""
    if (n, d) == (150, 4):
        found = iris()
        return found.data, found.target
    return groups(n, d, 3)


SIZES = ((150, 4), (1000, 10), (5000, 20))


# ------------------------------------------------ cases


def mixture(n: int, d: int, **theirs: Any) -> Callable[[], Any]:
    def make() -> Any:
        from sklearn.mixture import GaussianMixture as Peer

        from mixfold import GaussianMixture

        X = table(n, d)[0]
        return (
            lambda: GaussianMixture(3, n_jobs=1, random_state=0).fit(X),
            lambda: Peer(3, random_state=0, **theirs).fit(X),
            lambda model: float(model.score(X)),
        )

    return make


def passes(n: int, d: int, steps: int = 50) -> Callable[[], Any]:
    """As many plain steps from one start."""

    def make() -> Any:
        from sklearn.mixture import GaussianMixture as Peer

        from mixfold import GaussianMixture

        X, labels = groups(n, d, 3)
        centres = np.array([X[labels == k].mean(axis=0) for k in range(3)])
        start = {"weights_init": np.full(3, 1 / 3), "means_init": centres,
                 "precisions_init": np.tile(np.eye(d), (3, 1, 1))}  # fmt: skip
        same = {"tol": 0.0, "max_iter": steps, "reg_covar": 1e-6, "n_init": 1, **start}
        return (
            lambda: GaussianMixture(3, n_jobs=1, acceleration=None, **same).fit(X),
            lambda: Peer(3, init_params="random_from_data", **same).fit(X),
            lambda model: float(model.score(X)),
        )

    return make


def fits(
    ours: str, settings: dict[str, Any], peer: str, theirs: dict[str, Any], n: int, d: int,
    rows: Callable[[Any], Any] | None = None, target: bool = False,
) -> Callable[[], Any]:  # fmt: skip
    """Fits of two classes to one table."""

    def make() -> Any:
        import importlib

        import mixfold

        X, y = table(n, d)
        X = X if rows is None else rows(X)
        own = getattr(mixfold, ours)
        module, name = peer.split(":")
        other = getattr(importlib.import_module(module), name)
        given = (X, y) if target else (X,)
        if ours == "MixtureClassifier":
            return (
                lambda: own(mixfold.GaussianMixture(1, n_jobs=1), n_jobs=1).fit(*given),
                lambda: other(**theirs).fit(*given), None,
            )  # fmt: skip
        return (
            lambda: own(**settings, n_jobs=1, random_state=0).fit(*given),
            lambda: other(**theirs).fit(*given), None,
        )  # fmt: skip

    return make


def one_row(n: int, d: int, frozen: bool = False) -> Callable[[], Any]:
    def make() -> Any:
        from sklearn.mixture import GaussianMixture as Peer

        import mixfold

        X = table(n, d)[0]
        own: Any = mixfold.GaussianMixture(3, n_jobs=1, random_state=0).fit(X)
        peer = Peer(3, random_state=0).fit(X)
        row = X[:1].copy()
        if frozen:
            own = mixfold.freeze(own)
        return lambda: own.predict(row), lambda: peer.predict(row), None

    return make


def grid() -> Any:
    """A grid search: nine settings, three parts of the rows."""
    from sklearn.mixture import GaussianMixture as Peer
    from sklearn.model_selection import GridSearchCV

    from mixfold import GaussianMixture

    X = iris().data
    asked = {"n_components": [1, 2, 3], "covariance_type": ["full", "diag", "tied"]}
    return (
        lambda: GridSearchCV(GaussianMixture(n_jobs=1, random_state=0), asked, cv=3).fit(X),
        lambda: GridSearchCV(Peer(random_state=0), asked, cv=3).fit(X),
        lambda search: float(search.best_score_),
    )


def search() -> Any:
    """Nine sizes and four shapes by BIC: what scikit-learn has no class for."""
    from sklearn.mixture import GaussianMixture as Peer

    from mixfold import GaussianMixture, MixtureSearch

    X, sizes = groups(272, 2, 2)[0], range(1, 10)
    shapes = ("full", "tied", "diag", "spherical")

    def loop() -> Any:
        found = [Peer(k, covariance_type=shape, n_init=10, random_state=0).fit(X)
                 for k in sizes for shape in shapes]  # fmt: skip
        return min(found, key=lambda model: model.bic(X))

    def ours() -> Any:
        settings = {"n_components": sizes, "covariance_type": list(shapes)}
        return MixtureSearch(GaussianMixture(n_jobs=1), settings, random_state=0, n_jobs=1).fit(X)

    return ours, loop, None


def counts(X: Any) -> Any:
    """Counts of the size of the table, for topics."""
    return np.random.default_rng(0).poisson(np.exp(0.3 * (X - X.mean(axis=0)) / X.std(axis=0)))


def positive(X: Any) -> Any:
    return X - X.min(axis=0)


_TIGHT = {"n_init": 20, "tol": 1e-6, "max_iter": 1000}
CASES = (
    Case("GaussianMixture, 150 x 4, as good", "n_init=20, tol=1e-6", 0.25,
         mixture(150, 4, **_TIGHT)),
    *(Case(f"GaussianMixture, {n} x {d}", "default", 3.0, mixture(n, d)) for n, d in SIZES),
    *(Case(f"GaussianMixture, {n} x {d}, 50 steps", "same start", 1.2, passes(n, d))
      for n, d in SIZES),
    *(Case(f"KMeans, {n} x {d}", "KMeans", 1.5 if n < 1000 else 1.0,
           fits("KMeans", {"n_clusters": 3}, "sklearn.cluster:KMeans",
                {"n_clusters": 3, "random_state": 0}, n, d)) for n, d in SIZES),
    *(Case(f"PPCA, {n} x {d}", "PCA", 1.5 if n < 1000 else 1.0,
           fits("PPCA", {"n_components": 2}, "sklearn.decomposition:PCA", {"n_components": 2},
                n, d)) for n, d in SIZES[:2]),
    *(Case(f"FactorAnalysis, {n} x {d}", "FactorAnalysis, default",
           1.5 if n < 1000 else 1.0,
           fits("FactorAnalysis", {"n_components": 2}, "sklearn.decomposition:FactorAnalysis",
                {"n_components": 2, "random_state": 0}, n, d))
      for n, d in SIZES[:2]),
    *(Case(f"KernelPCA, {n} x {d}", "KernelPCA", 1.5 if n < 1000 else 1.0,
           fits("KernelPCA", {"n_components": 2, "kernel": "rbf"},
                "sklearn.decomposition:KernelPCA", {"n_components": 2, "kernel": "rbf"}, n, d))
      for n, d in SIZES[:2]),
    Case("MatrixFactorization, 150 x 4", "NMF", 1.5,
         fits("MatrixFactorization", {"n_components": 2, "init": "nndsvd", **SIGNS},
              "sklearn.decomposition:NMF", {"n_components": 2, "init": "nndsvd"}, 150, 4,
              positive)),
    Case("LatentDirichletAllocation, 1000 x 10", "LatentDirichletAllocation", 1.0,
         fits("LatentDirichletAllocation", {"n_components": 3},
              "sklearn.decomposition:LatentDirichletAllocation",
              {"n_components": 3, "max_iter": 100, "evaluate_every": 1, "random_state": 0},
              1000, 10, counts)),
    *(Case(f"MixtureClassifier, one Gaussian, {n} x {d}", "QuadraticDiscriminantAnalysis",
           1.5 if n < 1000 else 1.0,
           fits("MixtureClassifier", {}, "sklearn.discriminant_analysis:"
                "QuadraticDiscriminantAnalysis", {}, n, d, target=True)) for n, d in SIZES[:2]),
    Case("predict, one row of 4", "default", 1.0, one_row(150, 4)),
    Case("predict, one row of 20", "default", 1.0, one_row(5000, 20)),
    Case("frozen predict, one row of 4", "default", 0.1, one_row(150, 4, frozen=True)),
    Case("grid search, 27 fits", "GridSearchCV of its own", 3.0, grid),
    Case("MixtureSearch, 36 settings", "loop, n_init=10", 1.0, search),
)  # fmt: skip


# ------------------------------------------------ the worker


def compare(threads: int | None, name: str, pairs: int) -> dict[str, Any]:
    """CPU seconds of both calls, pair by pair in turn, and the scores of what they found."""
    case = next(c for c in CASES if c.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs, score = case.make()
        sides = (ours, theirs)
        found = [call() for call in sides]  # loads and compiles
        scores = None if score is None else [score(result) for result in found]
        repeats = [max(1, int(SAMPLE / max(_clock(call, 1), 1e-7))) for call in sides]
        times: list[list[float]] = []
        began = time.process_time()
        while len(times) < pairs:
            order = (0, 1) if len(times) % 2 == 0 else (1, 0)
            pair = [0.0, 0.0]
            for side in order:
                pair[side] = _clock(sides[side], repeats[side])
            times.append(pair)
            if len(times) >= FEWEST and time.process_time() - began > ENOUGH:
                break
    return {"times": times, "scores": scores}


def _clock(call: Call, repeats: int) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - began) / repeats
