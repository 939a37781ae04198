"""Supervised PPCA in closed form against dense likelihoods, steps, and the printed formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from mixfold.contracts import Array
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.models.outputs import profile
from mixfold.models.outputs.profile import Views, solve


def table(n: int = 60, D: int = 6, L: int = 2, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2)) * [2.0, 1.0]
    X = z @ rng.normal(size=(2, D)) + 0.5 * rng.normal(size=(n, D)) + 10.0
    y = z @ rng.normal(size=(2, L)) + 0.7 * rng.normal(size=(n, L)) - 3.0
    return X, y


def solved(X: Any, y: Array, d: int = 2, weight: Any = None, **given: Any) -> profile.Solved:
    views = Views(X.shape[1], y.shape[1], d, **given)
    source = open_source(X, y=y, weight=weight)
    return solve(source, ThreadExecutor(1), views, np.random.default_rng(0))


def dense(found: profile.Solved) -> tuple[Array, Array]:
    """Mean and covariance of (x, y)."""
    c, o = found.params.components, found.params.outputs
    scale = c.frame.scale
    W = np.vstack([c.loadings[0] * scale[:, None], o.loadings[0]])
    noise = np.concatenate([c.noise[0] * scale**2, o.noise[0]])
    mean = np.concatenate([c.frame.leave(c.means[0]), o.means[0]])
    return mean, W @ W.T + np.diag(noise)


GIVEN: dict[str, dict[str, float]] = {
    "both free": {},
    "noise of the columns given": {"input_noise": 0.3},
    "noise of the outputs given": {"output_noise": 0.3},
    "both given": {"input_noise": 0.3, "output_noise": 0.3},
}


@pytest.mark.parametrize("n", [60, 7])  # by moments, and by products of rows
@pytest.mark.parametrize("name", GIVEN)
def test_the_objective_is_the_dense_likelihood(name: str, n: int) -> None:
    X, y = table(n)
    found = solved(X, y, **GIVEN[name])
    mean, S = dense(found)
    rows = multivariate_normal.logpdf(np.hstack([X, y]), mean, S)
    assert found.objective == pytest.approx(rows.mean(), abs=1e-9)


@pytest.mark.parametrize("name", GIVEN)
def test_nothing_near_is_better_and_a_general_search_finds_the_same(name: str) -> None:
    X, y = table(60)
    d, D, L = 1, X.shape[1], y.shape[1]
    found = solved(X, y, d, **GIVEN[name])
    rows, given = np.hstack([X, y]), GIVEN[name]
    centred = rows - rows.mean(axis=0)
    S = centred.T @ centred / len(rows)

    def loss(v: Array) -> float:
        W = v[: D + L, None]
        noise = np.repeat(
            [given.get("input_noise", np.exp(v[-2])), given.get("output_noise", np.exp(v[-1]))],
            [D, L],
        )
        C = W @ W.T + np.diag(noise)
        return 0.5 * float(np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, S)))

    constant = -0.5 * (D + L) * np.log(2 * np.pi)
    rng = np.random.default_rng(1)
    best = min(minimize(loss, rng.normal(size=D + L + 2)).fun for _ in range(4))
    assert found.objective == pytest.approx(constant - best, abs=1e-6)


@pytest.mark.parametrize("v", [0.5, 2.0])
def test_outputs_that_count_v_times(v: float) -> None:
    """p(y | z)^v is a normal whose noise is divided by v, times a power of the noise."""
    X, y = table(60)
    views = Views(X.shape[1], y.shape[1], 2, v, None, 0.3)
    source = open_source(X, y=y)
    found = solve(source, ThreadExecutor(1), views, np.random.default_rng(0))
    c, o = found.params.components, found.params.outputs
    np.testing.assert_allclose(o.noise, 0.3)
    scale = c.frame.scale
    W = np.vstack([c.loadings[0] * scale[:, None], o.loadings[0]])
    noise = np.concatenate([c.noise[0] * scale**2, o.noise[0] / v])
    mean = np.concatenate([c.frame.leave(c.means[0]), o.means[0]])
    rows = multivariate_normal.logpdf(np.hstack([X, y]), mean, W @ W.T + np.diag(noise))
    L = y.shape[1]
    power = 0.5 * L * (np.log(2 * np.pi * 0.3 / v) - v * np.log(2 * np.pi * 0.3))
    assert found.objective == pytest.approx(rows.mean() + power, abs=1e-9)


@pytest.mark.parametrize("n", [60, 7])
@pytest.mark.parametrize("name", ["both free", "noise of the columns given"])
@pytest.mark.parametrize("v", [1.0, 0.5])
def test_slopes_are_those_of_the_objective(n: int, name: str, v: float) -> None:
    X, y = table(n)
    views = Views(X.shape[1], y.shape[1], 2, v, **GIVEN[name])
    pair = profile._pair(open_source(X, y=y), ThreadExecutor(1), views)
    line = profile._Line(pair, views, *pair.traces())
    for t in (-2.0, 0.0, 0.7):
        numeric = (line(t + 1e-5) - line(t - 1e-5)) / 2e-5
        assert line.slope(t) == pytest.approx(numeric, rel=1e-5, abs=1e-7)


def test_weights_are_repetitions_and_sparse_rows_are_rows() -> None:
    X, y = table(40)
    X = np.where(X > 9, X, 0.0)
    weight = np.random.default_rng(0).integers(0, 3, 40)
    unknown = np.where((weight == 0)[:, None], np.nan, y)  # rows of no weight may lack outputs
    repeated = np.repeat(np.arange(40), weight)
    wanted = dense(solved(X[repeated], y[repeated]))
    for found in (
        solved(X, unknown, weight=weight),
        solved(sparse.csr_array(X), unknown, weight=weight),
    ):
        for one, other in zip(dense(found), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_the_dual_form_of_a_projection() -> None:
    """z* = sqrt(N) D^-1/2 (V'GV + N s D^-1)^-1 V'k, D = I - N / lambda; printed with + D inside."""
    X, y = table(40)
    sx, sy, d, N = 0.3, 0.3, 2, 40
    found = solved(X, y, input_noise=sx, output_noise=sy)
    c = found.params.components
    W = c.loadings[0] * c.frame.scale[:, None]
    Xc, Yc = X - X.mean(axis=0), y - y.mean(axis=0)
    new = Xc[:5] + 1.0
    primal = np.linalg.solve(W.T @ W + sx * np.eye(d), W.T @ new.T).T
    G = Xc @ Xc.T
    values, V = np.linalg.eigh(G / sx + Yc @ Yc.T / sy)
    values, V = values[::-1][:d], V[:, ::-1][:, :d]
    Dg = 1 - N / values
    inner = V.T @ G @ V
    k = V.T @ (Xc @ new.T)

    def projected(extra: Array) -> Array:
        return (np.sqrt(N) / np.sqrt(Dg)[:, None] * np.linalg.solve(inner + extra, k)).T

    right, printed = projected(np.diag(N * sx / Dg)), projected(np.diag(Dg))
    np.testing.assert_allclose(right @ right.T, primal @ primal.T, rtol=1e-8)
    wrong = np.linalg.norm(printed, axis=1) / np.linalg.norm(primal, axis=1)
    assert np.abs(wrong - 1).max() > 1e-3


def test_axes_without_signal_have_no_loadings() -> None:
    X, y = table(60)
    found = solved(X, y, 5, input_noise=5.0, output_noise=5.0)
    lengths = np.linalg.norm(found.params.components.loadings[0], axis=0)
    assert (lengths[2:] == 0).all()
    assert (lengths[:1] > 0).all()
