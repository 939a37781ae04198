"""Likelihoods of outputs against scipy, finite differences and adaptive quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from mixfold.math.output_likelihoods import Counts, OrderedProbit, Real, draw, expect, tilt

CASES: dict[str, tuple[Any, np.ndarray, list[float]]] = {
    "real": (Real(), np.array([0.7]), [-1.5, 2.0]),
    "probit": (OrderedProbit(2), np.zeros(0), [0, 1]),
    "ordered": (OrderedProbit(4), np.array([0.8, 2.1]), [0, 1, 2, 3]),
    "Poisson": (Counts(0.0), np.zeros(0), [0, 3, 40]),
    "counts": (Counts(), np.log([0.3]), [0, 2, 25]),
    "fixed": (Counts(1.5), np.zeros(0), [0, 7]),
}
SCORES = np.array([-2.3, -0.4, 0.0, 0.9, 2.2])


def law(name: str, y: float, a: float) -> float:
    """The same by scipy."""
    if name == "real":
        return float(stats.norm(a, np.sqrt(0.7)).logpdf(y))
    if name in ("probit", "ordered"):
        t = [-np.inf, 0.0, *([0.8, 2.1] if name == "ordered" else []), np.inf]
        return float(np.log(stats.norm.cdf(t[int(y) + 1] - a) - stats.norm.cdf(t[int(y)] - a)))
    if name == "Poisson":
        return float(stats.poisson(np.exp(a)).logpmf(y))
    excess = 0.3 if name == "counts" else 1.5
    return float(stats.nbinom(1 / excess, 1 / (1 + excess * np.exp(a))).logpmf(y))


@pytest.mark.parametrize("name", CASES)
def test_densities_are_those_of_scipy(name: str) -> None:
    likelihood, shape, values = CASES[name]
    for y in values:
        found = likelihood.log_density(np.array(y), SCORES, shape)
        np.testing.assert_allclose(found, [law(name, y, a) for a in SCORES], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_those_of_finite_differences(name: str) -> None:
    likelihood, shape, values = CASES[name]
    h = 1e-5
    for y in map(np.array, values):
        slopes = likelihood.slopes(y, SCORES, shape)
        low, high = (likelihood.log_density(y, SCORES + e, shape) for e in (-h, h))
        np.testing.assert_allclose(slopes.score, (high - low) / (2 * h), rtol=1e-6, atol=1e-8)
        low, high = (likelihood.slopes(y, SCORES + e, shape).score for e in (-h, h))
        np.testing.assert_allclose(
            slopes.score_curvature, (low - high) / (2 * h), rtol=1e-6, atol=1e-8
        )
        for j in range(likelihood.n_shape):
            step = h * np.eye(len(shape))[j]
            low, high = (likelihood.log_density(y, SCORES, shape + e) for e in (-step, step))
            np.testing.assert_allclose(
                slopes.shape[j], (high - low) / (2 * h), rtol=1e-5, atol=1e-7
            )
            if name == "ordered":
                below, above = (likelihood.slopes(y, SCORES, shape + e) for e in (-step, step))
                np.testing.assert_allclose(
                    slopes.cross[j], (below.score - above.score) / (2 * h), rtol=1e-5, atol=1e-7
                )
                np.testing.assert_allclose(
                    slopes.shape_curvature[:, j], (below.shape - above.shape) / (2 * h),
                    rtol=1e-5, atol=1e-7,
                )  # fmt: skip
    vector = likelihood.coordinates(shape)
    np.testing.assert_allclose(likelihood.from_coordinates(vector), shape)
    for j in range(len(vector)):
        step = h * np.eye(len(vector))[j]
        change = likelihood.from_coordinates(vector + step) - likelihood.from_coordinates(
            vector - step
        )
        np.testing.assert_allclose(
            likelihood.jacobian(shape)[:, j], change / (2 * h), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("q", "tau2"), [(0.3, 0.2), (-1.0, 2.5)])
def test_integrals_are_those_of_quadrature(name: str, q: float, tau2: float) -> None:
    likelihood, shape, values = CASES[name]
    prior = stats.norm(q, np.sqrt(tau2))

    def integral(f: Any) -> float:
        return float(quad(f, q - 14 * tau2**0.5, q + 14 * tau2**0.5, epsabs=1e-13, limit=400)[0])

    for y in values:
        at = lambda a, y=y: float(likelihood.log_density(np.array(y), np.array(a), shape))  # noqa: E731
        found = tilt(likelihood, np.array(y), q, tau2, shape)
        grid = np.linspace(q - 14 * tau2**0.5, q + 14 * tau2**0.5, 2001)
        peak = max(at(a) + prior.logpdf(a) for a in grid)  # for the absolute error of quad
        part = lambda a, at=at, peak=peak: np.exp(at(a) + prior.logpdf(a) - peak)  # noqa: E731
        c = integral(part)
        mean = integral(lambda a, part=part: a * part(a)) / c
        square = integral(lambda a, part=part, mean=mean: (a - mean) ** 2 * part(a)) / c
        u = found.mean()
        assert found.log_probability == pytest.approx(np.log(c) + peak, abs=2e-6)
        assert q + tau2**0.5 * u == pytest.approx(mean, abs=2e-5)
        assert tau2 * (found.mean(found.points**2) - u**2) == pytest.approx(square, rel=1e-4)
        value = expect(likelihood, y, q, tau2, shape)
        assert value.value == pytest.approx(
            integral(lambda a, at=at: at(a) * prior.pdf(a)), rel=1e-6
        )
        h = 1e-4
        for k, slope in ((0, value.by_mean), (1, value.by_variance)):
            ends = [
                expect(likelihood, y, q + e * (k == 0), tau2 + e * (k == 1), shape).value
                for e in (-h, h)
            ]
            assert slope == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-5)


def test_categories_sum_to_one_and_draws_have_the_moments() -> None:
    ordered = OrderedProbit(4)
    shape = np.array([0.8, 2.1])
    chances = ordered.chances(SCORES, np.full(5, 0.6), shape)
    np.testing.assert_allclose(chances.sum(axis=-1), 1.0, rtol=1e-12)
    at = np.array(
        [
            [tilt(ordered, np.array(y), q, 0.6, shape).log_probability for y in range(4)]
            for q in SCORES
        ]
    )
    np.testing.assert_allclose(np.log(chances), at, atol=1e-8)
    rng = np.random.default_rng(0)
    n = 40_000
    drawn = draw(ordered, np.full(n, 0.5), shape, rng)
    share = np.exp([law("ordered", y, 0.5) for y in range(4)])
    np.testing.assert_allclose(np.bincount(drawn.astype(int)) / n, share, atol=6 * 0.5 / n**0.5)
    counts = draw(Counts(), np.full(n, 1.2), np.log([0.3]), rng)
    mean, variance = np.exp(1.2), np.exp(1.2) + 0.3 * np.exp(2.4)
    assert counts.mean() == pytest.approx(mean, abs=6 * (variance / n) ** 0.5)
    assert counts.var() == pytest.approx(variance, rel=0.1)


def test_far_scores_keep_their_digits() -> None:
    ordered = OrderedProbit(3)
    shape = np.array([1.0])
    for y, a in ((0, 30.0), (1, 30.0), (1, -30.0), (2, -30.0)):
        found = ordered.log_density(np.array(y), np.array(a), shape)
        slopes = ordered.slopes(np.array(y), np.array(a), shape)
        assert np.isfinite(found) and found < -300
        assert np.isfinite(slopes.score) and abs(slopes.score) > 20
        assert 0 <= slopes.score_curvature < 2
    assert np.isfinite(tilt(Counts(0.0), np.array([0.0, 1e6]), 0.0, 25.0, np.zeros(0)).points).all()
