"""Diagnostics of chains, against their definitions and against processes of known correlation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from mixfold.math.chains import Summary, effective_sample_size, split_r_hat, summary


def autoregressive(rng: np.random.Generator, phi: float, n_chains: int, n_draws: int) -> np.ndarray:
    """Stationary chains x_t = phi x_(t-1) + noise with unit variance."""
    noise = rng.normal(size=(n_chains, n_draws)) * np.sqrt(1 - phi**2)
    noise[:, 0] /= np.sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


def halves(draws: np.ndarray) -> list[list[float]]:
    n = draws.shape[1] // 2
    return [part for chain in draws.tolist() for part in (chain[:n], chain[len(chain) - n :])]


def direct_r_hat(draws: np.ndarray) -> float:
    """The definition, one sum after the other."""
    parts = halves(draws)
    n, m = len(parts[0]), len(parts)
    means = [sum(part) / n for part in parts]
    variances = [
        sum((x - mu) ** 2 for x in part) / (n - 1) for part, mu in zip(parts, means, strict=True)
    ]
    W, centre = sum(variances) / m, sum(means) / m
    B = sum((mu - centre) ** 2 for mu in means) / (m - 1)
    return float(np.sqrt(((n - 1) / n * W + B) / W))


def direct_ess(draws: np.ndarray) -> float:
    """The same of the sample size: lag by lag, the sequence cut and flattened in a loop."""
    parts = np.array(halves(draws))
    m, n = parts.shape
    gaps = parts - parts.mean(axis=1, keepdims=True)
    W = float((gaps**2).sum() / (n - 1) / m)
    total = W * (n - 1) / n + float(parts.mean(axis=1).var(ddof=1))

    def rho(lag: int) -> float:
        if lag == 0:
            return 1.0
        return 1 - (W - float((gaps[:, lag:] * gaps[:, : n - lag]).sum()) / n / m) / total

    tau, smallest = -1.0, np.inf
    for lag in range(0, n - 1, 2):
        pair = rho(lag) + rho(lag + 1)
        if pair <= 0:
            tau += max(rho(lag), 0.0)
            break
        smallest = min(smallest, pair)
        tau += 2 * smallest
    return m * n / max(tau, 1 / np.log10(m * n))


@pytest.mark.parametrize("apart", [0.0, 0.3])
@pytest.mark.parametrize("phi", [-0.9, -0.3, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("shape", [(1, 4), (1, 5), (2, 41), (4, 100), (3, 257)])
def test_both_follow_their_definitions(
    rng: np.random.Generator, phi: float, shape: tuple[int, int], apart: float
) -> None:
    draws = autoregressive(rng, phi, *shape) + apart * rng.normal(size=(shape[0], 1))
    assert split_r_hat(draws) == pytest.approx(direct_r_hat(draws), rel=1e-12)
    assert effective_sample_size(draws) == pytest.approx(direct_ess(draws), rel=1e-9)


@pytest.mark.parametrize("phi", [-0.6, 0.0, 0.5, 0.9])
def test_size_of_autoregressive_chains(rng: np.random.Generator, phi: float) -> None:
    """Their sum of correlations over all lags is (1 + phi) / (1 - phi)."""
    draws = autoregressive(rng, phi, 8, 20_000)
    expected = draws.size * (1 - phi) / (1 + phi)
    assert effective_sample_size(draws) == pytest.approx(expected, rel=0.1)
    assert split_r_hat(draws) == pytest.approx(1.0, abs=2e-3)


def test_the_size_predicts_the_variance_of_the_mean(rng: np.random.Generator) -> None:
    tables = [autoregressive(rng, 0.7, 4, 400) for _ in range(400)]
    means = np.array([draws.mean() for draws in tables])
    size = np.mean([effective_sample_size(draws) for draws in tables])
    assert means.var() * size == pytest.approx(1.0, rel=0.3)  # sd of the ratio: 0.07


def test_chains_apart_and_drift_are_noticed(rng: np.random.Generator) -> None:
    draws = rng.normal(size=(4, 1000))
    apart = draws + np.array([[0.0], [0.0], [0.0], [3.0]])
    drift = draws + np.linspace(0, 3, 1000)
    assert split_r_hat(draws) < 1.01 and effective_sample_size(draws) > 3000
    for bad in (apart, drift, drift[:1]):
        assert split_r_hat(bad) > 1.2 and effective_sample_size(bad) < 100
        assert not summary(bad).reliable
    assert summary(draws).reliable


def test_offset_and_scale_do_not_matter(rng: np.random.Generator) -> None:
    draws = np.round(autoregressive(rng, 0.5, 4, 300), 3)
    for changed in (draws + 1e8, 1e-6 * draws, -1e6 * draws):
        assert split_r_hat(changed) == pytest.approx(split_r_hat(draws), rel=1e-6)
        expected = effective_sample_size(draws)
        assert effective_sample_size(changed) == pytest.approx(expected, rel=1e-4)


def test_constants() -> None:
    assert summary(np.full((3, 50), 0.1)) == Summary(pytest.approx(0.1), 0.0, 1.0, 150.0)
    stuck = np.repeat([[0.1], [0.7], [0.1]], 50, axis=1)
    assert split_r_hat(stuck) == np.inf
    assert effective_sample_size(stuck) < 6
    one_moves = stuck.copy()
    one_moves[2] += np.arange(50) % 2
    assert 1 < split_r_hat(one_moves) < np.inf


def test_alternating_draws_are_worth_more_than_their_number() -> None:
    draws = np.tile([1.0, -1.0], (2, 50))
    assert effective_sample_size(draws) == pytest.approx(200 * np.log10(200))


def test_undefined_is_nan_and_not_reliable(rng: np.random.Generator) -> None:
    draws = rng.normal(size=(4, 400))
    short = summary(draws[:, :3])
    assert np.isnan(short.r_hat) and np.isnan(short.ess)
    assert short.mean == pytest.approx(draws[:, :3].mean()) and np.isfinite(short.sd)
    assert np.isnan(summary(draws[:1, :1]).sd)
    for value in (np.nan, -np.inf):
        draws[1, 7] = value
        assert np.isnan(summary(draws)).all()
        assert not summary(draws).reliable


@pytest.mark.parametrize("shape", [(10,), (2, 3, 4), (0, 5), (5, 0)])
def test_wrong_shapes(shape: tuple[int, ...]) -> None:
    for diagnose in (split_r_hat, effective_sample_size, summary):
        with pytest.raises(ValueError, match=r"draws must have the shape \(n_chains, n_draws\)"):
            diagnose(np.ones(shape))
