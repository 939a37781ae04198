"""The gamma law against scipy, quadrature and a numerical optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln, psi

from mixfold.math import gamma_law

LAWS = [(0.3, 2.0), (1.0, 1.0), (4.5, 0.2), (60.0, 30.0)]


@pytest.mark.parametrize(("a", "b"), LAWS)
def test_density_and_expected_log(a: float, b: float) -> None:
    law = stats.gamma(a, scale=1 / b)
    x = law.ppf([0.01, 0.3, 0.9])
    np.testing.assert_allclose(gamma_law.log_density(x, a, b), law.logpdf(x), rtol=1e-10)
    expected = law.expect(np.log, epsabs=1e-10)
    np.testing.assert_allclose(gamma_law.expected_log(a, b), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("a", "b"), LAWS)
def test_divergence_is_the_integral(a: float, b: float) -> None:
    law, prior = stats.gamma(a, scale=1 / b), stats.gamma(1.7, scale=1 / 0.9)

    def integrand(t: float) -> float:  # in t = ln x: no pole at zero for shapes below one
        x = np.exp(t)
        return float(np.exp(law.logpdf(x) + t) * (law.logpdf(x) - prior.logpdf(x)))

    centre = np.log(a / b)
    expected = quad(integrand, centre - 120, centre + 6, points=[centre], limit=400)[0]
    np.testing.assert_allclose(gamma_law.gamma_kl(a, b, 1.7, 0.9), expected, rtol=1e-7)


def test_divergence_is_zero_at_the_prior_only_and_vectorised() -> None:
    a, b = np.array(LAWS).T
    np.testing.assert_allclose(gamma_law.gamma_kl(a, b, a, b), 0, atol=1e-12)
    assert (gamma_law.gamma_kl(a[:, None], b[:, None], 2.2, 1.1).shape) == (4, 1)
    assert (gamma_law.gamma_kl(a, b, 2.2, 1.1) > 1e-3).all()


@pytest.mark.parametrize("a", [0.05, 0.8, 1.0, 7.0])
def test_log_draws_have_the_law(a: float, rng: np.random.Generator) -> None:
    logs = gamma_law.log_gamma_draw(np.full(4000, a), rng)
    assert stats.kstest(logs, stats.loggamma(a).cdf).pvalue > 1e-3


def test_log_draws_of_tiny_shapes_do_not_underflow(rng: np.random.Generator) -> None:
    a = 1e-6
    logs = gamma_law.log_gamma_draw(np.full(4000, a), rng)
    assert np.isfinite(logs).all()
    assert (np.exp(logs) == 0).mean() > 0.99  # what a plain draw would have returned
    # a ln G is -E up to terms of the order of a
    assert stats.kstest(-a * logs, stats.expon.cdf).pvalue > 1e-3


def test_fit_recovers_the_law_over_many_scales() -> None:
    a = 10 ** np.linspace(-6, 6, 60)
    b = 10 ** np.linspace(3, -3, 60)
    fitted, rate = gamma_law.fit_gamma(a / b, psi(a) - np.log(b))
    np.testing.assert_allclose(fitted, a, rtol=1e-7)  # at 1e6 the moments hold seven digits
    np.testing.assert_allclose(rate, b, rtol=1e-7)


def test_fit_is_the_maximum(rng: np.random.Generator) -> None:
    x = rng.gamma(2.5, 3.0, 50)
    mean, mean_log = x.mean(), np.log(x).mean()

    def loss(log_parameters: np.ndarray) -> float:
        a, b = np.exp(log_parameters)
        return float(b * mean - a * mean_log + gammaln(a) - a * np.log(b))

    best = np.exp(minimize(loss, [0.0, 0.0], options={"gtol": 1e-9}).x)
    np.testing.assert_allclose(gamma_law.fit_gamma(mean, mean_log), best, rtol=1e-5)


def test_fit_of_impossible_and_of_constant_moments() -> None:
    with pytest.raises(ValueError, match=r"mean must be positive.* 0"):
        gamma_law.fit_gamma([1.0, 0.0], [-1.0, -1.0])
    with pytest.raises(ValueError, match=r"must not exceed ln\(mean\).*-0\.5"):
        gamma_law.fit_gamma(1.0, 0.5)
    a, b = gamma_law.fit_gamma(2.0, np.log(2.0))  # nothing varies: nearly a point
    assert a > 1e11
    np.testing.assert_allclose(a / b, 2.0)
