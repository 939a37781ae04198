"""EM for kernel PCA: the steps in explicit features, monotone, and what its fixed points are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from mixfold.contracts import Array, Block, Context
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.random import RowKeys
from mixfold.math.kernels import LinearKernel
from mixfold.models.kernels.centred import CentredGram
from mixfold.models.kernels.em import Combinations, KernelEM, KernelProduct, ritz, worst_residual
from mixfold.models.kernels.gram import Gram

N, D, d = 60, 5, 2


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    return rng.normal(size=(N, D)) * [3.0, 2.0, 1.0, 0.7, 0.5] + 4


def model(rows: Array, noise: float, tol: float = 0.0, size: int = d) -> KernelEM:
    gram = CentredGram(Gram(rows, LinearKernel(), ThreadExecutor(1), 1e9, 17))
    return KernelEM(gram, size, noise, gram.trace(), D, tol)


def stats(em: KernelEM, params: Combinations) -> KernelProduct:
    reading, keys = em.prepare(params), RowKeys(0)
    parts = [em.expect(reading, block, keys) for block in em.gram.gram.strips.blocks()]
    return sum(parts[1:], parts[0])


def step(em: KernelEM, params: Combinations) -> Combinations:
    return em.update(params, stats(em, params), Context(None, np.random.default_rng(0))).params


def test_steps_are_those_of_ppca_in_the_space_of_features(
    rows: Array, rng: np.random.Generator
) -> None:
    em, X = model(rows, 0.3), rows - rows.mean(axis=0)
    params = em.start_from_latents(rng.normal(size=(N, d)))
    W = X.T @ params.B
    for _ in range(5):
        M = W.T @ W + 0.3 * np.eye(d)
        Z = X @ W @ np.linalg.inv(M)
        covariance = W @ W.T + 0.3 * np.eye(D)
        expected = -0.5 * (
            N * np.linalg.slogdet(2 * np.pi * covariance)[1]
            + np.trace(X @ np.linalg.inv(covariance) @ X.T)
        )
        assert em.objective(params, stats(em, params)) == pytest.approx(expected, rel=1e-10)
        W = X.T @ Z @ np.linalg.inv(N * 0.3 * np.linalg.inv(M) + Z.T @ Z)
        params = step(em, params)
        np.testing.assert_allclose(X.T @ params.B, W, atol=1e-10)


def test_the_likelihood_climbs_to_that_of_the_closed_form(
    rows: Array, rng: np.random.Generator
) -> None:
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1]
    em = model(rows, 0.4)
    params, trace = em.start_from_latents(rng.normal(size=(N, d))), []
    for _ in range(200):
        trace.append(em.objective(params, stats(em, params)))
        params = step(em, params)
    assert np.all(np.diff(trace) >= -1e-9)
    rest = values[d:].sum() / 0.4
    best = D * np.log(2 * np.pi) + np.log(values[:d]).sum() + (D - d) * np.log(0.4) + d + rest
    assert trace[-1] == pytest.approx(-0.5 * N * best, rel=1e-9)


def test_axes_of_less_variance_than_the_noise_are_driven_to_zero(
    rows: Array, rng: np.random.Generator
) -> None:
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1]
    em = model(rows, (values[0] + values[1]) / 2)
    params = em.start_from_latents(rng.normal(size=(N, d)))
    for _ in range(300):
        params = step(em, params)
    lengths = np.linalg.svd(params.B, compute_uv=False)
    assert lengths[1] < 1e-6 * lengths[0]
    kept = N**-0.5 * np.sqrt(1 - em.noise / values[0])
    assert lengths[0] == pytest.approx(kept, rel=1e-6)


def test_the_span_is_that_of_a_power_iteration_for_every_noise(
    rows: Array, rng: np.random.Generator
) -> None:
    Z = rng.normal(size=(N, d))
    X = rows - rows.mean(axis=0)
    power = np.linalg.matrix_power(X @ X.T, 3) @ Z
    for noise in (0.01, 0.3):
        em = model(rows, noise)
        params = em.start_from_latents(Z)
        for _ in range(3):
            params = step(em, params)
        assert subspace_angles(params.B, power)[0] < 1e-7


def test_it_says_itself_when_the_axes_are_found(rows: Array, rng: np.random.Generator) -> None:
    em = model(rows, 0.3, tol=1e-6)
    params = em.start_from_latents(rng.normal(size=(N, d)))
    for _ in range(200):
        A = em.gram.times(params.B)
        following = step(em, params)
        if following is params:
            break
        assert worst_residual(params.B, A, 0.0) > 1e-6
        params = following
    else:
        pytest.fail("it never said so")
    X = rows - rows.mean(axis=0)
    axes = np.linalg.svd(X)[0][:, :d]
    assert subspace_angles(params.B, axes)[0] < 1e-5


def test_ritz_gives_exact_pairs_of_an_exact_span(rows: Array, rng: np.random.Generator) -> None:
    em, X = model(rows, 0.3), rows - rows.mean(axis=0)
    left, lengths, _ = np.linalg.svd(X, full_matrices=False)
    mixed = left[:, :3] @ rng.normal(size=(3, 3))
    found = ritz(em.gram, mixed, 4, True)
    np.testing.assert_allclose(found.values, lengths[:3] ** 2, rtol=1e-10)
    np.testing.assert_allclose(np.abs(found.vectors.T @ left[:, :3]), np.eye(3), atol=1e-9)
    assert found.passes == 6 and found.converged


def test_coordinates_are_the_combinations(rows: Array, rng: np.random.Generator) -> None:
    em = model(rows, 0.3)
    params = em.start_from_latents(rng.normal(size=(N, d)))
    back = em.from_coordinates(params, em.coordinates(params))
    assert back is not None
    np.testing.assert_array_equal(back.B, params.B)
    assert em.from_coordinates(params, np.full(N * d, np.nan)) is None
    assert em.total_weight(stats(em, params)) == N
    assert isinstance(next(em.gram.gram.strips.blocks()), Block)
