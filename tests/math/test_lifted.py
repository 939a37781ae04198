"""The kernels of the E and M step against plain numpy, tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from mixfold.contracts import Block
from mixfold.math import lifted
from mixfold.math.frame import Frame
from mixfold.math.lifted import TILE, FeatureMap, lifted_pass, lifted_scores
from mixfold.math.pooled import pooled_pass

D, K = 3, 4
MAPS = {
    "products": lifted.product_features,
    "squares": lifted.square_features,
    "seen squares": lifted.seen_square_features,
}


def _features(U: np.ndarray, kind: str) -> np.ndarray:
    seen, u = ~np.isnan(U), np.nan_to_num(U)
    one = np.ones((len(U), 1))
    if kind == "products":
        pairs = [u[:, d] * u[:, e] for d in range(D) for e in range(d, D)]
        return np.column_stack([one, u, *pairs])
    if kind == "squares":
        return np.column_stack([one, u, u**2])
    return np.column_stack([one, seen, u, u**2])


@pytest.fixture
def frame() -> Frame:
    return Frame(np.array([3.0, -1.0, 0.5]), np.array([2.0, 0.5, 1.0]))


def _case(n: int, kind: str, dtype: Any, frame: Frame) -> tuple[Block, np.ndarray, FeatureMap]:
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, D)) * 2 + 1).astype(dtype)
    complete = kind != "seen squares"
    if not complete:
        X[rng.random(X.shape) < 0.3] = np.nan
    features = MAPS[kind](D)
    theta = rng.normal(size=(K, features.left.size)).astype(dtype)
    weight, y = rng.uniform(0, 2, n), rng.integers(-1, K, n)
    return Block(X, 0, y, weight, complete), theta, features


def _wanted(
    block: Block, T: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, float, float, float]:
    L = T @ theta.astype(float).T
    if block.y is not None:
        for n, y in enumerate(block.y):
            if y >= 0:
                L[n, np.arange(K) != y] = -np.inf
    total = logsumexp(L, axis=1)
    R = np.exp(L - total[:, None])
    w = block.weights()
    logs = np.log(np.where(R > 0, R, 1))
    return (R * w[:, None]).T @ T, w @ total, -w @ (R * logs).sum(axis=1), w.sum()


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("n", [1, TILE - 1, TILE, TILE + 1, 2 * TILE + 17])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pass_against_numpy(n: int, kind: str, dtype: Any, frame: Frame) -> None:
    block, theta, features = _case(n, kind, dtype, frame)
    T = _features(frame.enter(block.X), kind)
    rtol = 1e-11 if dtype is np.float64 else 3e-4
    for b in (block, Block(block.X, complete=block.complete)):
        sums = lifted_pass(b, frame, features, theta)
        moments, total, entropy, weight = _wanted(b, T, theta)
        size = np.abs(moments).max()
        np.testing.assert_allclose(sums.moments / size, moments / size, atol=rtol)
        assert sums.log_likelihood == pytest.approx(total, rel=rtol, abs=rtol * n)
        assert sums.entropy == pytest.approx(entropy, rel=rtol, abs=rtol * n)
        assert sums.weight == pytest.approx(weight, rel=1e-13)
        assert sums.moments.dtype == np.float64
    scores = lifted_scores(block, frame, features, theta)
    wanted = T @ theta.astype(float).T
    np.testing.assert_allclose(scores, wanted, atol=rtol * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("n", [1, TILE, TILE + 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pooled_pass_against_numpy(n: int, dtype: Any, frame: Frame) -> None:
    block, _, _ = _case(n, "products", dtype, frame)
    rng = np.random.default_rng(n)
    theta = rng.normal(size=(K, 1 + D)).astype(dtype)
    whiten = np.triu(rng.normal(size=(D, D))).astype(dtype)
    sums, second = pooled_pass(block, frame, theta, whiten)
    U = frame.enter(block.X)
    norm = -0.5 * ((U @ whiten.astype(float)) ** 2).sum(axis=1)
    T = np.column_stack([np.ones(n), U, norm])
    # the shared quadratic part enters every component alike
    moments, total, entropy, weight = _wanted(block, T, np.column_stack([theta, np.ones(K)]))
    rtol = 1e-11 if dtype is np.float64 else 3e-4
    np.testing.assert_allclose(sums.moments, moments[:, :-1], atol=rtol * np.abs(moments).max())
    gram = (U * block.weights()[:, None]).T @ U
    np.testing.assert_allclose(second, gram, atol=rtol * np.abs(gram).max())
    assert sums.log_likelihood == pytest.approx(total, rel=rtol, abs=rtol * n)
    assert sums.entropy == pytest.approx(entropy, rel=rtol, abs=rtol * n)
    assert sums.weight == pytest.approx(weight, rel=1e-13)


def test_a_component_of_weight_zero_gets_nothing(frame: Frame) -> None:
    block, theta, features = _case(50, "squares", np.float64, frame)
    block = Block(block.X)
    theta[1, 0] = -np.inf
    sums = lifted_pass(block, frame, features, theta)
    np.testing.assert_array_equal(sums.moments[1], 0)
    rest = np.delete(np.arange(K), 1)
    alone = lifted_pass(block, frame, features, theta[rest])
    np.testing.assert_allclose(sums.moments[rest], alone.moments, rtol=1e-12)
    assert sums.log_likelihood == pytest.approx(alone.log_likelihood, rel=1e-13)
    assert sums.entropy == pytest.approx(alone.entropy, rel=1e-12)


def test_any_order_in_memory(frame: Frame) -> None:
    block, theta, features = _case(200, "squares", np.float64, frame)
    wide = np.zeros((400, 2 * D))
    wide[::2, ::2] = block.X
    wanted = lifted_pass(Block(block.X), frame, features, theta).moments
    for X in (np.asfortranarray(block.X), wide[::2, ::2]):
        got = lifted_pass(Block(X), frame, features, theta).moments
        np.testing.assert_array_equal(got, wanted)
