"""What factor components say of rows: latents, missing entries, other columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.testing.oracles import conditional_moments, gaussian_log_density

K, D = 3, 4


def _rows(params: FactorParams, missing: bool, n: int = 25) -> np.ndarray:
    rng = np.random.default_rng(4)
    X = params.frame.leave(2 * rng.normal(size=(n, D)))
    if missing:
        X[rng.random(X.shape) < 0.4] = np.nan
        X[0], X[1] = np.nan, 1.0
    return X


def _latents(x: np.ndarray, params: FactorParams, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of z given what is seen, from the precision of (z, x) jointly."""
    u = params.frame.enter(x) - params.means[k]
    o = np.flatnonzero(~np.isnan(u))
    scaled = params.loadings[k, o] / params.noise[k, o, None]
    precision = np.eye(params.n_factors) + params.loadings[k, o].T @ scaled
    return np.linalg.solve(precision, scaled.T @ u[o]), np.linalg.inv(precision)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
@pytest.mark.parametrize("noise", [1.0, 1e-9], ids=["fast", "guarded"])
def test_posteriors_of_the_latents(
    family: FactorFamily, missing: bool, noise: float, typical: Any
) -> None:
    params = typical(family, K, D, noise=noise)
    X = _rows(params, missing)
    reading = family.mode(params)
    assert (family.fused_pass(Block(np.zeros((1, D))), reading, np.zeros(K)) is None) == (noise < 1)
    posterior = family.posterior(Block(X, complete=not missing), reading, True)
    assert posterior.covariances.shape == ((25, K, 2, 2) if missing else (K, 2, 2))
    for n, x in enumerate(X):
        for k in range(K):
            z, left = _latents(x, params, k)
            np.testing.assert_allclose(posterior.means[n, k], z, rtol=1e-7, atol=1e-9)
            got = posterior.covariances[n, k] if missing else posterior.covariances[k]
            np.testing.assert_allclose(got, left, rtol=1e-7, atol=1e-17)
    same = family.scores(Block(X, complete=not missing), reading).log_density
    np.testing.assert_allclose(posterior.log_density, same, rtol=1e-10, atol=1e-10)


def test_sparse_rows_have_the_same_latents(family: FactorFamily, typical: Any) -> None:
    params = typical(family, K, D, origin=np.zeros(D))
    X = np.where(np.random.default_rng(0).random((20, D)) < 0.5, 0.0, 1.5)
    reading = family.mode(params)
    ours = family.posterior(Block(sparse.csr_array(X)), reading, True)
    theirs = family.posterior(Block(X), reading, True)
    np.testing.assert_allclose(ours.means, theirs.means, atol=1e-12)


# ------------------------------------------------ missing entries


def test_rows_completed_with_conditional_means(
    family: FactorFamily, typical: Any, dense: Any
) -> None:
    params = typical(family, K, D)
    means, covariances = dense(params)
    X = _rows(params, True)
    reading = family.mode(params)
    scores = family.scores(Block(X, complete=False), reading)
    for k in range(K):
        got = params.frame.leave(family.complete_rows(scores, reading, k, None))
        wanted = np.array([conditional_moments(x, means[k], covariances[k])[0] for x in X])
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_rows_completed_with_draws(family: FactorFamily, typical: Any, dense: Any) -> None:
    """A draw is linear in the normals it is made of: its covariance is known without chance."""
    params = typical(family, K, D)
    means, covariances = dense(params)
    size = family.normals_per_row(D)
    reading = family.mode(params)
    for k, gaps in ((0, [1, 3]), (1, [0]), (2, [0, 1, 2, 3])):
        x = means[k] + [1.0, -0.5, -2.0, 0.3]
        x[gaps] = np.nan
        filled, left = conditional_moments(x, means[k], covariances[k])
        scores = family.scores(Block(np.tile(x, (size, 1)), complete=False), reading)
        drawn = params.frame.leave(family.complete_rows(scores, reading, k, np.eye(size)))
        middle = params.frame.leave(
            family.complete_rows(scores, reading, k, np.zeros((size, size)))
        )
        np.testing.assert_allclose(middle, np.tile(filled, (size, 1)), rtol=1e-10)
        image = drawn - filled
        np.testing.assert_allclose(image.T @ image, left, atol=1e-10)


def test_complete_rows_are_left_as_they_are(family: FactorFamily, typical: Any) -> None:
    params = typical(family, K, D)
    X, reading = _rows(params, False), family.mode(params)
    scores = family.scores(Block(X), reading)
    for normals in (None, np.ones((25, family.normals_per_row(D)))):
        got = family.complete_rows(scores, reading, 1, normals)
        np.testing.assert_array_equal(got, params.frame.enter(X))


def test_rows_are_completed_without_factors_too(typical: Any, dense: Any) -> None:
    family = FactorFamily(factors=(0,))
    params = typical(family, K, D)
    X, reading = _rows(params, True), family.mode(params)
    scores = family.scores(Block(X, complete=False), reading)
    got = params.frame.leave(family.complete_rows(scores, reading, 2, np.zeros((25, D))))
    np.testing.assert_allclose(got, np.where(np.isnan(X), dense(params)[0][2], X), rtol=1e-12)


# ------------------------------------------------ other columns


@pytest.mark.parametrize("known", [[1], [0, 2], [3, 0, 1]], ids=str)
def test_condition_against_the_textbook(
    family: FactorFamily, known: list[int], typical: Any, dense: Any
) -> None:
    params = typical(family, K, D)
    means, covariances = dense(params)
    values = means[0, known] + 0.7
    log_density, rest = family.condition(params, np.array(known), values)
    x = np.full(D, np.nan)
    x[known] = values
    wanted = gaussian_log_density(x[None], means, covariances)[0]
    # a constant of all components drops out of the mixture
    np.testing.assert_allclose(log_density - log_density[0], wanted - wanted[0], atol=1e-10)
    others = np.setdiff1d(np.arange(D), known)
    got_means, got_covariances = dense(rest)
    for k in range(K):
        filled, left = conditional_moments(x, means[k], covariances[k])
        np.testing.assert_allclose(got_means[k], filled[others], rtol=1e-10)
        np.testing.assert_allclose(
            got_covariances[k], left[np.ix_(others, others)], rtol=1e-9, atol=1e-12
        )


def test_conditioning_twice_is_conditioning_once(
    family: FactorFamily, typical: Any, dense: Any
) -> None:
    params = typical(family, K, D)
    values = dense(params)[0].mean(axis=0)
    once_log, once = family.condition(params, np.array([0, 2]), values[[0, 2]])
    first_log, first = family.condition(params, np.array([2]), values[[2]])
    second_log, second = family.condition(first, np.array([0]), values[[0]])
    np.testing.assert_allclose(first_log + second_log, once_log, rtol=1e-10)
    for ours, theirs in zip(dense(second), dense(once), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
