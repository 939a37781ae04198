"""Low rank plus diagonal: densities, latents, conditionals and draws against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.low_rank import canonical_axes, conditional, draw, log_density, low_rank
from mixfold.testing.oracles import conditional_moments, gaussian_log_density

K, D = 3, 5


def _stack(d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loadings, noise and means with nothing symmetric about them."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(K, D, d))
    return loadings, rng.uniform(0.2, 2.0, (K, D)), 3 * rng.normal(size=(K, D))


def _dense(loadings: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return loadings @ np.swapaxes(loadings, 1, 2) + noise[:, :, None] * np.eye(D)


@pytest.fixture(params=[0, 1, 2, 4, 7])
def d(request: pytest.FixtureRequest) -> int:
    """Factors: none, a few, more than there are columns."""
    return int(request.param)


def test_factors_of_the_covariance(d: int) -> None:
    loadings, noise, _ = _stack(d)
    parts, dense = low_rank(loadings, noise), _dense(loadings, noise)
    np.testing.assert_allclose(parts.log_det, np.linalg.slogdet(dense)[1], rtol=1e-12)
    inverse = np.linalg.inv(dense)
    transposed = np.swapaxes(loadings, 1, 2)
    # E[z | x] = W' C^-1 (x - mu), Cov[z | x] = I - W' C^-1 W
    np.testing.assert_allclose(parts.back @ parts.whiten, transposed @ inverse, atol=1e-12)
    wanted = np.eye(d) - transposed @ inverse @ loadings
    np.testing.assert_allclose(parts.covariances, wanted, atol=1e-12)


def test_log_density_is_that_of_scipy(d: int, rng: np.random.Generator) -> None:
    loadings, noise, means = _stack(d)
    U = 4 * rng.normal(size=(30, D))
    wanted = gaussian_log_density(U, means, _dense(loadings, noise))
    parts = low_rank(loadings, noise)
    for k in range(K):
        got, a = log_density(U, means[k], loadings[k], noise[k], parts, k)
        np.testing.assert_allclose(got, wanted[:, k], rtol=1e-11)
        # |a|^2 is what the factors take off the quadratic form of the noise alone
        form = (U - means[k]) ** 2 @ (1 / noise[k]) - (a**2).sum(axis=1)
        constant = D * np.log(2 * np.pi) + parts.log_det[k]
        np.testing.assert_allclose(-0.5 * (constant + form), wanted[:, k], rtol=1e-10)


@pytest.mark.parametrize("noise", [1e-3, 1e-8, 1e-12])
def test_no_digits_are_lost_where_the_noise_is_small(
    noise: float, rng: np.random.Generator
) -> None:
    """Rows made of orthogonal parts, whose quadratic form is known without any algebra."""
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    length, n = np.array([3.0, 0.5]), 40
    loadings = turn[:, :2] * length
    z, e = rng.normal(size=(n, 2)), rng.normal(size=(n, D - 2))
    U = (z * length) @ turn[:, :2].T + np.sqrt(noise) * e @ turn[:, 2:].T
    form = (z**2 * length**2 / (length**2 + noise)).sum(axis=1) + (e**2).sum(axis=1)
    log_det = np.log(length**2 + noise).sum() + (D - 2) * np.log(noise)
    wanted = -0.5 * (D * np.log(2 * np.pi) + log_det + form)
    psi = np.full((1, D), noise)
    got, _ = log_density(U, np.zeros(D), loadings, psi[0], low_rank(loadings[None], psi), 0)
    # the rows themselves are rounded: eps beside a deviation of sqrt(noise)
    np.testing.assert_allclose(got, wanted, atol=1e-13 + 2e-14 / np.sqrt(noise))


@pytest.mark.parametrize("known", [[1], [4, 0], [3, 0, 2]], ids=str)
def test_conditional_against_the_textbook(d: int, known: list[int]) -> None:
    loadings, noise, means = _stack(d)
    dense = _dense(loadings, noise)
    x = np.full(D, np.nan)
    x[known] = np.linspace(-2, 3, len(known))
    log_known, rest_means, rest_loadings = conditional(
        loadings, noise, means, np.array(known), x[known]
    )
    np.testing.assert_allclose(
        log_known, gaussian_log_density(x[None], means, dense)[0], rtol=1e-12
    )
    others = np.setdiff1d(np.arange(D), known)
    for k in range(K):
        filled, left = conditional_moments(x, means[k], dense[k])
        np.testing.assert_allclose(rest_means[k], filled[others], rtol=1e-10, atol=1e-12)
        got = rest_loadings[k] @ rest_loadings[k].T + np.diag(noise[k, others])
        np.testing.assert_allclose(got, left[np.ix_(others, others)], rtol=1e-10, atol=1e-12)


def test_each_component_may_have_values_of_its_own() -> None:
    loadings, noise, means = _stack(2)
    known, values = np.array([0, 3]), np.arange(6.0).reshape(K, 2)
    together = conditional(loadings, noise, means, known, values)
    for k in range(K):
        alone = conditional(loadings, noise, means, known, values[k])
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_allclose(ours[k], theirs[k], rtol=1e-13)


def test_draws_are_a_linear_map_with_the_right_covariance(d: int) -> None:
    loadings, noise, means = _stack(d)
    dense = _dense(loadings, noise)
    for k in range(K):
        labels = np.full(D + d, k)
        image = draw(loadings, noise, means, labels, np.eye(D + d)) - means[k]
        np.testing.assert_allclose(image.T @ image, dense[k], rtol=1e-12, atol=1e-12)
    mixed = draw(loadings, noise, means, np.array([2, 0, 2]), np.zeros((3, D + d)))
    np.testing.assert_array_equal(mixed, means[[2, 0, 2]])


def test_canonical_axes_turn_the_latents_and_nothing_else(d: int) -> None:
    loadings, noise, _ = _stack(d)
    before = loadings.copy()
    turned = canonical_axes(loadings, noise)
    np.testing.assert_array_equal(loadings, before)
    np.testing.assert_allclose(_dense(turned, noise), _dense(loadings, noise), atol=1e-12)
    gram = np.swapaxes(turned / noise[:, :, None], 1, 2) @ turned
    lengths = np.diagonal(gram, axis1=1, axis2=2)
    np.testing.assert_allclose(gram, lengths[:, :, None] * np.eye(d), atol=1e-11)
    assert (np.diff(lengths, axis=1) <= 1e-12).all()
    for W in turned:
        # columns beyond the rank are rounding, and have no sign to speak of
        for column in W.T[: min(d, D)]:
            assert column[np.abs(column).argmax()] > 0


def test_canonical_axes_do_not_depend_on_how_the_latents_were_turned() -> None:
    loadings, noise, _ = _stack(3)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    ours, theirs = canonical_axes(loadings, noise), canonical_axes(loadings @ turn, noise)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(canonical_axes(ours, noise), ours, atol=1e-12)


def test_canonical_axes_of_more_factors_than_columns() -> None:
    W = np.random.default_rng(0).normal(size=(1, 3, 5))
    turned = canonical_axes(W, np.ones((1, 3)))
    np.testing.assert_allclose(turned @ np.swapaxes(turned, 1, 2), W @ np.swapaxes(W, 1, 2))
    np.testing.assert_allclose(turned[..., 3:], 0.0, atol=1e-12)
