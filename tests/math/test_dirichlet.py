"""The Dirichlet law against scipy, Monte Carlo and a numerical optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import betaln

from mixfold.math import dirichlet


def test_normaliser_is_that_of_the_density(rng: np.random.Generator) -> None:
    a = rng.uniform(0.2, 4, 5)
    p = rng.dirichlet(np.ones(5))
    expected = ((a - 1) * np.log(p)).sum() - stats.dirichlet(a).logpdf(p)
    np.testing.assert_allclose(dirichlet.log_beta(a), expected)
    np.testing.assert_allclose(dirichlet.log_beta([[0.3, 2.0], [4, 5]]), betaln([0.3, 4], [2.0, 5]))
    np.testing.assert_allclose(dirichlet.log_beta([[0.3, 4], [2.0, 5]], axis=0), betaln(0.3, 2), 9)


def test_expected_log_is_the_slope_of_the_normaliser(rng: np.random.Generator) -> None:
    a = rng.uniform(0.2, 4, (3, 4))
    step = 1e-6
    for v in range(4):
        move = step * np.eye(4)[v]
        slope = (dirichlet.log_beta(a + move) - dirichlet.log_beta(a - move)) / (2 * step)
        np.testing.assert_allclose(dirichlet.expected_log(a)[:, v], slope, rtol=1e-7)


def test_divergence_by_monte_carlo(rng: np.random.Generator) -> None:
    a, b = np.array([0.7, 2.0, 5.0]), np.array([1.5, 0.6, 2.0])
    p = rng.dirichlet(a, 100_000)
    ratio = stats.dirichlet(a).logpdf(p.T) - stats.dirichlet(b).logpdf(p.T)
    error = ratio.std() / np.sqrt(len(ratio))
    found = float(dirichlet.dirichlet_kl(a, b))
    assert abs(found - ratio.mean()) < 4 * error
    assert error < 0.01 * found  # or the line above says little
    np.testing.assert_allclose(dirichlet.dirichlet_kl(a, a), 0, atol=1e-12)
    np.testing.assert_allclose(dirichlet.dirichlet_kl([a, a], [b, a]), [found, 0], atol=1e-12)


def test_log_draws_have_beta_margins(rng: np.random.Generator) -> None:
    a = np.array([0.3, 1.0, 4.0])
    p = np.exp(dirichlet.log_draw(np.tile(a, (4000, 1)), rng))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    for v in range(3):
        assert stats.kstest(p[:, v], stats.beta(a[v], a.sum() - a[v]).cdf).pvalue > 1e-3
    correlation = -np.sqrt(a[0] * a[2] / ((5.3 - a[0]) * (5.3 - a[2])))
    assert abs(np.corrcoef(p[:, 0], p[:, 2])[0, 1] - correlation) < 0.05


def test_log_draws_of_tiny_concentrations(rng: np.random.Generator) -> None:
    logs = dirichlet.log_draw(np.full((4000, 10), 1e-4), rng)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    # one component has all; which one is uniform
    winners = np.bincount(logs.argmax(axis=1), minlength=10)
    assert stats.chisquare(winners).pvalue > 1e-3
    # E ln p = psi(a) - psi(K a), with the known variance of a log-beta variable
    expected = dirichlet.expected_log(np.full(10, 1e-4))[0]
    assert abs(logs.mean() - expected) < 4 * logs[:, 0].std() / np.sqrt(4000)


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.5), (1.0, 1.0), (0.05, 3.0)])
def test_log_beta_draws_have_the_law(a: float, b: float, rng: np.random.Generator) -> None:
    log_v, log_rest = dirichlet.log_beta_draw(np.full(4000, a), np.full(4000, b), rng)
    np.testing.assert_allclose(np.exp(log_v) + np.exp(log_rest), 1)
    assert stats.kstest(np.exp(log_v), stats.beta(a, b).cdf).pvalue > 1e-3
    expected = dirichlet.expected_log([b, a])[0]
    assert abs(log_rest.mean() - expected) < 4 * log_rest.std() / np.sqrt(4000)


def test_log_beta_draws_of_tiny_shapes(rng: np.random.Generator) -> None:
    b = 1e-5
    log_v, log_rest = dirichlet.log_beta_draw(np.ones(4000), np.full(4000, b), rng)
    assert np.isfinite(log_v).all() and np.isfinite(log_rest).all()
    # 1 - V is U^(1/b) exactly: mostly below the least positive float
    assert stats.kstest(-b * log_rest, stats.expon.cdf).pvalue > 1e-3


def test_a_stick_that_is_nearly_whole_keeps_its_digits() -> None:
    class Lopsided:  # the second gamma draw is e^-100 of the first
        turn = 0

        def standard_gamma(self, shape: float, size: object) -> np.ndarray:
            return np.exp(np.ones(1))

        def standard_exponential(self, size: object) -> np.ndarray:
            self.turn += 1
            return np.array([0.0 if self.turn == 1 else 100.0])

    log_v, _ = dirichlet.log_beta_draw(np.ones(1), np.ones(1), Lopsided())  # type: ignore[arg-type]
    np.testing.assert_allclose(log_v, -np.exp(-100.0))


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("a", [[0.5, 2.0, 7.0], [1e-4, 1.0, 100.0], [1e-4] * 4, [3e4, 6e4]])
def test_fit_recovers_the_law(a: list[float], start: float) -> None:
    fitted = dirichlet.fit_dirichlet(dirichlet.expected_log(a), start)
    np.testing.assert_allclose(fitted, a, rtol=1e-6)


def test_fit_is_the_maximum_row_by_row(rng: np.random.Generator) -> None:
    mean_log = np.log(rng.dirichlet([0.6, 1.5, 4, 0.9], (3, 12))).mean(axis=1)
    fitted = dirichlet.fit_dirichlet(mean_log, np.ones(4))
    for row, found in zip(mean_log, fitted, strict=True):

        def loss(log_a: np.ndarray, row: np.ndarray = row) -> float:
            return float(dirichlet.log_beta(np.exp(log_a)) - np.exp(log_a) @ row)

        best = np.exp(minimize(loss, np.zeros(4), options={"gtol": 1e-9}).x)
        np.testing.assert_allclose(found, best, rtol=1e-4)
        assert loss(np.log(found)) <= loss(np.log(best)) + 1e-12


def test_fit_without_a_maximum_or_a_start() -> None:
    with pytest.raises(ValueError, match=r"sum to less than one.*1\.0"):
        dirichlet.fit_dirichlet(np.log([0.5, 0.5]), np.ones(2))
    with pytest.raises(ValueError, match=r"start must be positive, got 0\.0"):
        dirichlet.fit_dirichlet(np.log([0.2, 0.5]), [0.0, 1.0])
