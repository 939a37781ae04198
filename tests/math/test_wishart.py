"""The Wishart law against scipy, Monte Carlo, and its fit against a numerical optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from mixfold.math import wishart
from mixfold.math.gamma_law import gamma_kl
from mixfold.math.symmetric import factorise


def _scale(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.3 * np.eye(size)


def _log_det(matrix: np.ndarray) -> float:
    return float(np.linalg.slogdet(matrix)[1])


@pytest.mark.parametrize(("size", "nu"), [(1, 0.4), (2, 1.3), (4, 9.0)])
def test_normaliser_is_that_of_the_density(size: int, nu: float, rng: np.random.Generator) -> None:
    W = _scale(rng, size)
    L = _scale(rng, size)
    kernel = (nu - size - 1) / 2 * _log_det(L) - np.trace(np.linalg.solve(W, L)) / 2
    if size == 1:
        density = stats.gamma(nu / 2, scale=2 * W[0, 0]).logpdf(L[0, 0])
    elif nu >= size:  # scipy knows only these
        density = stats.wishart(nu, W).logpdf(L)
    else:  # from nu + 2 by |L|: E|L| = |W| 2^D G_D(nu / 2 + 1) / G_D(nu / 2)
        up = stats.wishart(nu + 2, W).logpdf(L)
        density = up - _log_det(L) + _log_det(W) + np.log(nu) + np.log(nu - 1)
    np.testing.assert_allclose(kernel - density, wishart.log_norm(-_log_det(W), nu, size))


def test_expected_log_det_is_the_slope_of_the_normaliser() -> None:
    nu, log_det = np.array([3.2, 8.0]), np.array([0.4, -2.0])
    step = 1e-5
    up, down = (wishart.log_norm(-log_det, nu + s, 3) for s in (step, -step))
    np.testing.assert_allclose(
        wishart.expected_log_det(log_det, nu, 3), (up - down) / step, rtol=1e-7
    )


def test_divergence_by_monte_carlo(rng: np.random.Generator) -> None:
    W, W_0, nu, nu_0 = _scale(rng, 3), _scale(rng, 3), 6.5, 4.0
    q, p = stats.wishart(nu, W), stats.wishart(nu_0, W_0)
    draws = np.moveaxis(q.rvs(20_000, random_state=rng), 0, -1)
    ratio = q.logpdf(draws) - p.logpdf(draws)
    error = ratio.std() / np.sqrt(len(ratio))
    trace = np.trace(np.linalg.solve(W_0, W))
    found = float(wishart.wishart_kl(_log_det(W), nu, _log_det(W_0), nu_0, trace, 3))
    assert abs(found - ratio.mean()) < 4 * error
    assert error < 0.02 * found  # or the line above says little
    itself = wishart.wishart_kl(_log_det(W), nu, _log_det(W), nu, 3.0, 3)
    np.testing.assert_allclose(itself, 0, atol=1e-12)


def test_divergence_in_one_dimension_is_that_of_gamma_laws() -> None:
    w, nu, w_0, nu_0 = np.array([0.4, 3.0]), np.array([5.0, 0.2]), 1.7, 2.5
    found = wishart.wishart_kl(np.log(w), nu, np.log(w_0), nu_0, w / w_0, 1)
    np.testing.assert_allclose(found, gamma_kl(nu / 2, 1 / (2 * w), nu_0 / 2, 1 / (2 * w_0)))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_draws_have_the_law(size: int, rng: np.random.Generator) -> None:
    n = 4000
    inverse_scales = np.stack([_scale(rng, size), _scale(rng, size)])
    _, upper = factorise(inverse_scales)
    nu = np.array([size - 0.4, size + 6.0])
    factors = np.broadcast_to(upper, (n, 2, size, size))
    drawn = wishart.draw_factor(factors, np.broadcast_to(nu, (n, 2)), rng)
    np.testing.assert_array_equal(drawn, np.triu(drawn))
    L = drawn @ np.swapaxes(drawn, -1, -2)
    for k in range(2):
        # v' L v / v' W v is chi-square for every v, and so is 1 / the same of the inverses
        v = rng.normal(size=size)
        W = np.linalg.inv(inverse_scales[k])
        ahead = np.einsum("i,nij,j->n", v, L[:, k], v) / (v @ W @ v)
        assert stats.kstest(ahead, stats.chi2(nu[k]).cdf).pvalue > 1e-3
        back = np.einsum("i,nij,j->n", v, np.linalg.inv(L[:, k]), v)
        back = (v @ inverse_scales[k] @ v) / back
        assert stats.kstest(back, stats.chi2(nu[k] - size + 1).cdf).pvalue > 1e-3
        log_det = 2 * np.log(np.diagonal(drawn[:, k], axis1=-2, axis2=-1)).sum(axis=-1)
        expected = wishart.expected_log_det(_log_det(W), nu[k], size)
        assert abs(log_det.mean() - expected) < 4 * log_det.std() / np.sqrt(n)


def test_one_number_of_degrees_serves_all_components(rng: np.random.Generator) -> None:
    factors = np.broadcast_to(np.eye(3), (5, 3, 3))
    one = wishart.draw_factor(factors, 4.0, np.random.default_rng(1))
    many = wishart.draw_factor(factors, np.full(5, 4.0), np.random.default_rng(1))
    np.testing.assert_array_equal(one, many)
    assert len(np.unique(one[:, 0, 0])) == 5


@pytest.mark.parametrize("size", [1, 3, 10])
def test_fit_recovers_the_degrees(size: int) -> None:
    nu = size - 1 + 10.0 ** np.arange(-4, 6)
    log_det = np.linspace(-3, 4, len(nu))
    mean_logdet = wishart.expected_log_det(log_det, nu, size)
    found = wishart.fit_degrees(mean_logdet, log_det + size * np.log(nu), size)
    np.testing.assert_allclose(found, nu, rtol=1e-7)


def test_fit_is_the_maximum(rng: np.random.Generator) -> None:
    """Of the mean over components of E ln Wishart(L; P / nu, nu)."""
    size, nu_k = 3, np.array([4.0, 9.0, 30.0])
    W_k = np.stack([_scale(rng, size) / 5 for _ in nu_k])
    mean_logdet = wishart.expected_log_det(np.linalg.slogdet(W_k)[1], nu_k, size).mean()
    P = (nu_k[:, None, None] * W_k).mean(axis=0)

    def loss(log_excess: float) -> float:
        nu = size - 1 + np.exp(log_excess)
        inverse = nu * np.linalg.inv(P)
        return float(
            wishart.log_norm(_log_det(inverse), nu, size)
            - (nu - size - 1) / 2 * mean_logdet
            + np.trace(inverse @ P) / 2
        )

    best = minimize_scalar(loss, bounds=(-5, 8), method="bounded", options={"xatol": 1e-10}).x
    found = wishart.fit_degrees(mean_logdet, _log_det(P), size)
    np.testing.assert_allclose(found, size - 1 + np.exp(best), rtol=1e-6)


def test_fit_of_impossible_and_of_constant_precisions() -> None:
    with pytest.raises(ValueError, match=r"must not exceed logdet_mean.*0\.5"):
        wishart.fit_degrees(1.5, 1.0, 2)
    assert wishart.fit_degrees(1.0, 1.0, 2) > 1e11
