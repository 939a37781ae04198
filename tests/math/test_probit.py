"""Half-normal scores against hundreds of decimal digits, quadrature, rejection and differences."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr

from mixfold.math import probit

LEFT = [-1e8, -1e6, -1e3, -40.0, -8.3, -5.001, -5.0, -4.999, -2.0, -0.3]
RIGHT = [0.0, 0.7, 3.0, 8.3, 20.0]
SCORES = [(0.4, 1.0, 1), (0.4, 2.5, -1), (-3.0, 0.3, 1), (-3.0, 0.3, -1), (6.0, 1.7, -1)]


@cache
def _pi() -> Decimal:
    """Machin's formula, to 480 digits."""
    with localcontext(prec=480):
        return 4 * (4 * _arc(5) - _arc(239))


def _arc(n: int) -> Decimal:
    """arctan(1 / n)."""
    return sum(
        (Decimal((-1) ** k) / (Decimal(n) ** (2 * k + 1) * (2 * k + 1)) for k in range(350)),
        Decimal(0),
    )


def _cdf(t: Decimal) -> Decimal:
    """Phi(t): Taylor's series, and the asymptotic one where that is exact to 60 digits."""
    density = (-t * t / 2).exp() / (2 * _pi()).sqrt()
    if t <= -42:
        term, total = Decimal(1), Decimal(0)
        for k in range(1, 40):
            total += term
            term *= -(2 * k - 1) / (t * t)
        return density * total / -t
    term, total, k = t, Decimal(0), 0
    while abs(term) > Decimal("1e-450"):
        total, k = total + term, k + 1
        term *= t * t / (2 * k + 1)
    return Decimal("0.5") + density * total


def _exact(t: float) -> tuple[float, float, float, float]:
    """mills, overshoot, shrinkage and spread."""
    with localcontext(prec=460, Emin=-(10**17), Emax=10**17):
        x = Decimal(t)
        # the density and Phi are both tiny: only their ratio is a float
        slope = (-x * x / 2).exp() / (2 * _pi()).sqrt() / _cdf(x)
        over = x + slope
        return float(slope), float(over), float(slope * over), float(1 - slope * over)


def test_the_oracle_itself() -> None:
    t = np.array([-3.0, -0.5, 0.0, 2.0])
    expected = stats.norm.pdf(t) / ndtr(t)
    np.testing.assert_allclose([_exact(v)[0] for v in t], expected, rtol=1e-13)
    with localcontext(prec=460):  # the two series meet
        taylor = _cdf(Decimal("-41.9999999999"))
        slope = Decimal(_exact(-42.0)[0])
        assert abs(taylor / _cdf(Decimal(-42)) / (slope * Decimal("1e-10")).exp() - 1) < 1e-15


@pytest.mark.parametrize("t", LEFT + RIGHT)
def test_ratios_have_all_their_digits(t: float) -> None:
    slope, over, shrinkage, spread = _exact(t)
    # rounding of t alone moves phi(t) by t^2 of its units, but not phi / Phi if t < 0
    np.testing.assert_allclose(probit.mills(t), slope, rtol=1e-14 if t < 8 else 1e-13)
    np.testing.assert_allclose(probit.overshoot(t), over, rtol=2e-14)
    np.testing.assert_allclose(probit.shrinkage(t), shrinkage, rtol=2e-14 if t < 8 else 1e-13)
    np.testing.assert_allclose(probit.spread(t), spread, rtol=5e-13)


@pytest.mark.parametrize("t", [40.0, 1e3, 1e6, 1e8])
def test_far_to_the_right_the_sign_says_nothing(t: float) -> None:
    assert probit.mills(t) < 1e-300
    assert probit.overshoot(t) == t
    assert 0 <= probit.shrinkage(t) < 1e-300
    assert probit.spread(t) == 1


def test_ratios_are_monotone_also_where_the_methods_change() -> None:
    t = np.concatenate([-np.logspace(8, 1, 500), np.linspace(-9.9, 9.0, 4000)])
    for values in (-probit.mills(t), probit.overshoot(t), -probit.shrinkage(t), probit.spread(t)):
        assert (np.diff(values) >= 0).all()
    assert ((probit.shrinkage(t) >= 0) & (probit.shrinkage(t) <= 1)).all()
    near = probit.TAIL + 1e-9 * np.linspace(-1, 1, 40)
    steps = np.diff(probit.spread(near)) / np.diff(near)
    # a jump of 1e-12 would show
    np.testing.assert_allclose(steps, np.median(steps), atol=1e-3)


def test_ratios_are_derivatives_of_the_log_probability() -> None:
    t, step = np.array([-30.0, -6.0, -4.0, 0.0, 1.5, 4.0]), 1e-4

    def log_phi(x: np.ndarray) -> np.ndarray:
        return probit.log_probability(x, 1.0, 1)

    slope = (log_phi(t + step) - log_phi(t - step)) / (2 * step)
    np.testing.assert_allclose(probit.mills(t), slope, rtol=1e-6)
    bend = (probit.mills(t + step) - probit.mills(t - step)) / (2 * step)
    np.testing.assert_allclose(probit.shrinkage(t), -bend, rtol=1e-6)


def test_log_probability() -> None:
    q, tau2 = np.array([-40.0, -1.0, 0.0, 2.0, 30.0])[:, None], np.array([0.5, 3.0])
    expected = stats.norm.logsf(0, q, np.sqrt(tau2))
    np.testing.assert_allclose(probit.log_probability(q, tau2, 1), expected, rtol=1e-12)
    both = np.exp(probit.log_probability(q, tau2, 1)) + np.exp(probit.log_probability(q, tau2, -1))
    np.testing.assert_allclose(both, 1, rtol=1e-14)
    with localcontext(prec=60, Emin=-(10**17), Emax=10**17):
        far = [float(_cdf(Decimal(-t)).ln()) for t in (1000, 1000000)]
    np.testing.assert_allclose(probit.log_probability([2e3, 2e6], 4.0, -1), far, rtol=1e-15)


# ------------------------------------------------------------------ moments


@pytest.mark.parametrize(("q", "tau2", "s"), SCORES)
def test_moments_of_a_score_are_integrals(q: float, tau2: float, s: int) -> None:
    def moment(power: int) -> float:
        def integrand(a: float) -> float:
            return (s * a) ** power * float(stats.norm.pdf(s * a, q, np.sqrt(tau2)))

        return quad(integrand, 0, 20, points=[abs(q)], epsabs=0, epsrel=1e-12, limit=200)[0]

    total = moment(0)
    mean, variance, factor = probit.utility_moments(q, tau2, s)
    np.testing.assert_allclose(mean, moment(1) / total, rtol=1e-9)
    np.testing.assert_allclose(variance, moment(2) / total - float(mean) ** 2, rtol=1e-7)
    np.testing.assert_allclose(factor, variance / tau2, rtol=1e-14)
    assert s * mean > 0


@pytest.mark.parametrize("t", [-40.0, -1e3, -1e6])
@pytest.mark.parametrize("s", [1, -1])
def test_moments_of_an_improbable_score_keep_sign_and_digits(t: float, s: int) -> None:
    tau = 1.7
    mean, variance, _ = probit.utility_moments(s * t * tau, tau**2, s)
    _, over, _, spread = _exact(s * (s * t * tau) / np.sqrt(tau**2))
    np.testing.assert_allclose(mean, s * tau * over, rtol=1e-13)
    np.testing.assert_allclose(variance, tau**2 * spread, rtol=1e-13)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("s", [1, -1])
def test_moments_of_latents_against_rejection(
    noise: float, s: int, rng: np.random.Generator
) -> None:
    m, w, b = np.array([0.3, -0.2, 0.5]), np.array([1.2, -0.7, 0.4]), -0.3
    A = rng.normal(size=(3, 3))
    R = A @ A.T / 3 + 0.2 * np.eye(3)
    z = rng.multivariate_normal(m, R, size=200_000)
    score = z @ w + b + np.sqrt(noise) * rng.normal(size=len(z))
    kept = z[s * score > 0]
    Rw, q, tau2 = R @ w, w @ m + b, noise + w @ R @ w
    mean, coefficient = probit.moments_given_sign(m, Rw, q, tau2, s)
    error = kept.std(axis=0) / np.sqrt(len(kept))
    np.testing.assert_array_less(np.abs(kept.mean(axis=0) - mean), 6 * error)
    assert np.abs(mean - m).max() > 20 * error.max()  # the label does say something
    cov = R - coefficient * np.outer(Rw, Rw)
    products = np.einsum("ni,nj->nij", kept - mean, kept - mean)
    error = products.std(axis=0) / np.sqrt(len(kept))
    np.testing.assert_array_less(np.abs(products.mean(axis=0) - cov), 6 * error)
    # what is left of the covariance of score and latents
    kept_score = score[s * score > 0]
    score_mean, _, factor = probit.utility_moments(q, tau2, s)
    crossed = (kept_score - score_mean)[:, None] * (kept - mean)
    error = crossed.std(axis=0) / np.sqrt(len(kept))
    np.testing.assert_array_less(np.abs(crossed.mean(axis=0) - factor * Rw), 6 * error)


def test_many_rows_and_components_at_once(rng: np.random.Generator) -> None:
    n, K, d = 5, 3, 2
    m, Rw = rng.normal(size=(n, K, d)), rng.normal(size=(K, d))
    q, tau2, s = 3 * rng.normal(size=(n, K)), 1 + rng.random(K), rng.choice([-1, 1], size=(n, 1))
    mean, coefficient = probit.moments_given_sign(m, Rw, q, tau2, s)
    assert mean.shape == (n, K, d)
    assert coefficient.shape == (n, K)
    utility = np.stack(probit.utility_moments(q, tau2, s))
    draws = probit.draw_given_sign(q, tau2, s, 0.3)
    for i in range(n):
        for k in range(K):
            args = q[i, k], tau2[k], s[i, 0]
            one = probit.moments_given_sign(m[i, k], Rw[k], *args)
            np.testing.assert_allclose(mean[i, k], one[0], rtol=1e-14)
            np.testing.assert_allclose(coefficient[i, k], one[1], rtol=1e-14)
            np.testing.assert_allclose(utility[:, i, k], probit.utility_moments(*args))
            np.testing.assert_allclose(draws[i, k], probit.draw_given_sign(*args, 0.3))


# ------------------------------------------------------------------ draws


@pytest.mark.parametrize("t", [-1e8, -1e6, -1e3, -40.0, -5.001, -4.999, -1.0, 2.0, 40.0])
@pytest.mark.parametrize("u", [1e-6, 0.1, 0.5, 0.97, 1 - 1e-12])
def test_draws_invert_the_distribution_function(t: float, u: float) -> None:
    x = float(probit.draw_given_sign(t, 1.0, 1, u))
    if t < 20:
        with localcontext(prec=460, Emin=-(10**17), Emax=10**17):
            # the probability of a score nearer to zero, P(a < x | a > 0) = 1 - Phi(t - x) / Phi(t)
            beyond = _cdf(Decimal(t) - Decimal(x)) / _cdf(Decimal(t))
            nearer, beyond = float(1 - beyond), float(beyond)
    else:
        nearer, beyond = float(ndtr(x - t)), float(ndtr(t - x))
    np.testing.assert_allclose(nearer, u, rtol=1e-11, atol=2e-14)
    np.testing.assert_allclose(np.log(beyond), np.log1p(-u), rtol=1e-11, atol=2e-14)


@pytest.mark.parametrize(("q", "tau2", "s"), [*SCORES, (-40.0, 1.0, 1), (200.0, 4.0, -1)])
def test_draws_have_the_law_and_the_moments(
    q: float, tau2: float, s: int, rng: np.random.Generator
) -> None:
    draws = probit.draw_given_sign(q, tau2, s, rng.random(20_000))
    assert (s * draws > 0).all()
    tau = np.sqrt(tau2)
    law = stats.truncnorm(-s * q / tau, np.inf, loc=s * q, scale=tau)
    assert stats.kstest(s * draws, law.cdf).pvalue > 1e-3
    mean, variance, _ = probit.utility_moments(q, tau2, s)
    assert abs(draws.mean() - mean) < 6 * np.sqrt(variance / len(draws))
    square = (draws - mean) ** 2
    assert abs(square.mean() - variance) < 6 * square.std() / np.sqrt(len(draws))


@pytest.mark.parametrize("t", [-1e8, -1e3, -7.0, -3.0, 0.0, 8.0, 1e8])
def test_draws_rise_with_the_uniforms_and_keep_their_sign(t: float) -> None:
    u = np.concatenate([[1e-300, 2.0**-53], np.linspace(1e-4, 0.9999, 300), [1 - 2.0**-53]])
    draws = probit.draw_given_sign(-t, 1.0, -1, u)
    assert np.isfinite(draws).all()
    assert (draws <= 0).all()
    assert (np.diff(draws) <= 0).all()
    assert (np.diff(draws[2:-1]) < 0).all() or t == 1e8  # there, floats are 1e-8 apart
