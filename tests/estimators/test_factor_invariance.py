"""A fit of a factor model does not know how its rows were cut, nor who visited them.

Gaps are relative: of means to the spread of their component in that column, of implied covariances
to the two spreads. Loadings are not compared, which turn freely where the likelihood is flat.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pytest

from mixfold import PPCA, FactorAnalysis, MixtureOfFactorAnalyzers, MixtureOfPPCA
from mixfold.contracts import Array, Block
from mixfold.engine.sources import open_source

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")

RTOL = 1e-8
# the Gram matrix is for few rows
ROWS = {"covariance": 1500, "gram": 150, "randomized": 1500}
COUNTS = [1, 7, 400]
PLAIN: dict[str, Any] = {"acceleration": None, "random_state": 0}
MIXED: dict[str, Any] = {**PLAIN, "init_params": "k-means++"}
MODELS = [
    PPCA(2, solver="em", **PLAIN),
    FactorAnalysis(2, **PLAIN),
    MixtureOfPPCA(3, 2, **MIXED),
    MixtureOfFactorAnalyzers(3, [2, 1, 0], tied=("noise",), **MIXED),
    MixtureOfFactorAnalyzers(3, 2, tied=("loadings",), **MIXED),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
tables = pytest.mark.parametrize("holes", [False, True], ids=["complete", "missing, weighted"])
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning"),
]


class Cut:
    """The rows of a table in a given number of blocks, of sizes from one row up."""

    def __init__(self, X: Array, n_blocks: int, weight: Array | None = None) -> None:
        source = open_source(X, weight=weight)
        self.n_samples, self.n_features = X.shape
        self.feature_names, self.dtype = source.feature_names, source.dtype
        [self._whole] = source.blocks(len(X))
        inner = np.random.default_rng(n_blocks).permutation(len(X) - 1)[: n_blocks - 1] + 1
        self._edges = [0, *sorted(inner.tolist()), len(X)]

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        return (self._whole.part(first, last) for first, last in pairwise(self._edges))


def table(n: int, holes: bool) -> tuple[Array, Array | None]:
    """Three clusters with two factors each; as they are, or with missing entries and weights."""
    rng = np.random.default_rng(1)
    labels = rng.choice(3, n, p=[0.4, 0.35, 0.25])
    plan = np.kron(np.eye(2), np.ones(4))
    W, means = plan + 0.3 * rng.standard_normal((3, 2, 8)), 2 * rng.standard_normal((3, 8))
    X = np.einsum("nd,ndi->ni", rng.standard_normal((n, 2)), W[labels]) + means[labels]
    X = X + 0.8 * rng.standard_normal(X.shape) + 5
    if not holes:
        return X, None
    X[rng.random(X.shape) < 0.15] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    return X, rng.choice([0.0, 0.5, 1.0, 2.7], n)


def like(model: Any, **changes: Any) -> Any:
    return type(model)(**{**model.get_params(), **changes})


def shape(fitted: Any) -> tuple[Array, Array, Array]:
    """Weights, means and implied covariances of all components."""
    if isinstance(fitted, FactorAnalysis | PPCA):
        return np.ones(1), fitted.mean_[None], fitted.get_covariance()[None]
    W, means = fitted.loadings_, fitted.means_
    noise = np.broadcast_to(fitted.noise_variance_.reshape(len(W), -1), means.shape)
    return (
        fitted.weights_,
        means,
        W @ W.transpose(0, 2, 1) + np.stack([np.diag(row) for row in noise]),
    )


def gap(got: Any, wanted: Any) -> float:
    """The largest relative difference between two fits."""
    (weights, means, C), (v, m, B) = shape(wanted), shape(got)
    spread = np.sqrt(np.einsum("kdd->kd", C))
    parts = (
        (weights - v) / weights,
        (means - m) / spread,
        (C - B) / (spread[:, :, None] * spread[:, None, :]),
    )
    return max(float(np.abs(part).max()) for part in parts)


def bits(fitted: Any) -> bytes:
    parts = (*shape(fitted), fitted.loadings_, np.array(fitted.lower_bounds_))
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def require_same_fit(got: Any, wanted: Any, rtol: float = RTOL) -> None:
    assert (got.n_iter_, got.stop_reason_) == (wanted.n_iter_, wanted.stop_reason_)
    assert got.lower_bound_ == pytest.approx(wanted.lower_bound_, rel=1e-11)
    assert gap(got, wanted) < rtol


# ------------------------------------------------ blocks


@tables
@models
def test_blocks_do_not_matter(model: Any, holes: bool) -> None:
    X, weight = table(500, holes)
    steps = {1: 40, 7: 40, 400: 5}
    wanted = {
        n: like(model, max_iter=n, tol=0).fit(X, sample_weight=weight) for n in set(steps.values())
    }
    assert wanted[40].n_iter_ == 40  # a long way: rounding could grow
    for n_blocks, n in steps.items():
        got = like(model, max_iter=n, tol=0).fit(Cut(X, n_blocks, weight))
        require_same_fit(got, wanted[n])


@tables
@models
def test_blocks_do_not_matter_to_accelerated_fits(model: Any, holes: bool) -> None:
    X, weight = table(500, holes)
    model = like(model, acceleration="auto", tol=1e-9)
    wanted, got = model.fit(X, sample_weight=weight), like(model).fit(Cut(X, 7, weight))
    assert wanted.converged_
    assert got.lower_bound_ == pytest.approx(wanted.lower_bound_, abs=1e-8)
    assert gap(got, wanted) < 1e-3


@pytest.mark.parametrize("solver", ROWS)
@pytest.mark.parametrize("center", [True, False])
def test_blocks_do_not_matter_to_closed_forms(solver: str, center: bool) -> None:
    X, _ = table(ROWS[solver], False)
    weight = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 2.7], len(X))
    model = PPCA(2, solver=solver, center=center, random_state=0)
    wanted = like(model).fit(X, sample_weight=weight)
    for n_blocks in (1, 7, len(X) - 5):
        require_same_fit(like(model).fit(Cut(X, n_blocks, weight)), wanted)


@models
def test_blocks_do_not_matter_to_answers(model: Any) -> None:
    X, _ = table(500, True)
    fitted = like(model, tol=1e-3).fit(X)
    drawn = fitted.impute(X, method="draw", random_state=5)
    for n_blocks in COUNTS:
        source = Cut(X, n_blocks)
        for ask in (fitted.transform, fitted.score_samples, fitted.impute, fitted.reconstruct):
            np.testing.assert_allclose(ask(source), ask(X), rtol=RTOL, atol=1e-9)
        again = fitted.impute(source, "draw", random_state=5)
        np.testing.assert_allclose(again, drawn, rtol=RTOL)


def test_blocks_do_not_matter_to_a_stream() -> None:
    X, _ = table(500, False)
    for model in (PPCA(2), FactorAnalysis(2, tol=1e-10)):
        wanted = model.fit(X)
        for n_blocks in (1, 7):
            stream = like(model).partial_fit(Cut(X[:200], n_blocks)).partial_fit(Cut(X[200:], 7))
            assert gap(stream, wanted) < 1e-5


# ------------------------------------------------ threads


@tables
@models
def test_threads_give_the_same_bits(model: Any, holes: bool) -> None:
    X, weight = table(4000, holes)
    fits = [
        like(model, max_iter=6, tol=0, n_jobs=jobs).fit(X, sample_weight=weight)
        for jobs in (1, 2, 3)
    ]
    assert len({bits(fit) for fit in fits}) == 1
    assert len({fit.transform(X).tobytes() for fit in fits}) == 1
    uneven = [like(model, max_iter=3, tol=0, n_jobs=n).fit(Cut(X, 7, weight)) for n in (1, 3)]
    assert bits(uneven[0]) == bits(uneven[1])


@pytest.mark.parametrize("solver", ROWS)
def test_threads_give_the_same_axes(solver: str) -> None:
    X, _ = table(ROWS[solver], False)
    fits = [PPCA(2, solver=solver, random_state=0, n_jobs=n).fit(X) for n in (1, 2, 3)]
    for fit in fits[1:]:
        require_same_fit(fit, fits[0])


# ------------------------------------------------ a cluster


@tables
@models
def test_a_cluster_gives_the_same_fit(client: Any, model: Any, holes: bool) -> None:
    X, weight = table(4000, holes)
    lazy = da.from_array(X, chunks=((1, 1500, 999, 1500), (8,)), name=False)
    model = like(model, max_iter=5, tol=0)
    wanted = like(model).fit(X, sample_weight=weight)
    there = like(model, executor="dask").fit(X, sample_weight=weight)
    require_same_fit(there, wanted)
    there = like(model, executor=client).fit(lazy, sample_weight=weight)
    require_same_fit(there, wanted)
    for ask in ("transform", "reconstruct", "score_samples"):
        here = getattr(wanted, ask)(X)
        np.testing.assert_allclose(getattr(there, ask)(lazy), here, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("solver", ROWS)
def test_a_cluster_gives_the_same_axes(client: Any, solver: str) -> None:
    X, _ = table(ROWS[solver], False)
    lazy = da.from_array(X, chunks=((1, 80, 19, len(X) - 100), (8,)), name=False)
    wanted = PPCA(2, solver=solver, random_state=0).fit(X)
    require_same_fit(PPCA(2, solver=solver, random_state=0, executor=client).fit(lazy), wanted)
