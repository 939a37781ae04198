"""Noise, likelihood and dimension of PPCA: against dense Gaussians and scikit-learn."""

from __future__ import annotations

from math import gamma, pi
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from mixfold.contracts import Array
from mixfold.math import spectrum
from mixfold.math.spectrum import Bic, Evidence, Fraction, dimension_rule


def data(seed: int, n: int = 200, D: int = 10, d: int = 3, noise: float = 0.7) -> Array:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(D, d)) * np.linspace(3, 1.5, d)
    return np.asarray(rng.normal(size=(n, d)) @ W.T + noise * rng.normal(size=(n, D)) + 4.0)


def eigen(X: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    return values[::-1], vectors[:, ::-1]


# ------------------------------------------------ likelihood


@pytest.mark.parametrize("d", [0, 1, 3, 9, 10])
def test_likelihood_is_that_of_the_dense_gaussian(d: int) -> None:
    X = data(0)
    values, U = eigen(X)
    noise = spectrum.noise_variance(values[:d], values.sum(), 10, 1e-9)
    loadings = U[:, :d] * np.sqrt(np.maximum(values[:d] - noise, 0))
    C = loadings @ loadings.T + noise * np.eye(10)
    expected = multivariate_normal(X.mean(axis=0), C).logpdf(X).mean()
    got = spectrum.log_likelihood(values[:d], values.sum(), 10, 1e-9)
    assert got == pytest.approx(expected, rel=1e-9)


def test_likelihood_is_the_greatest(rng: np.random.Generator) -> None:
    X = data(1, D=4, d=2)
    values, _ = eigen(X)
    S = np.cov(X.T, bias=True)

    def loss(v: Array) -> float:
        W = v[:8].reshape(4, 2)
        C = W @ W.T + np.exp(v[8]) * np.eye(4)
        return float(np.linalg.slogdet(2 * np.pi * C)[1] + np.trace(np.linalg.solve(C, S))) / 2

    best = min((minimize(loss, rng.normal(size=9)) for _ in range(4)), key=lambda r: r.fun)
    assert spectrum.log_likelihood(values[:2], values.sum(), 4) == pytest.approx(
        -best.fun, abs=1e-7
    )


@pytest.mark.parametrize("floor", [0.3, 5.0])
def test_floored_likelihood_is_that_of_the_floored_model(floor: float) -> None:
    X = data(2, noise=0.1)
    values, U = eigen(X)
    loadings = U[:, :5] * np.sqrt(np.maximum(values[:5] - floor, 0))
    C = loadings @ loadings.T + floor * np.eye(10)
    expected = multivariate_normal(X.mean(axis=0), C).logpdf(X).mean()
    assert (values[:5] < floor).any()  # an axis drowns in the noise
    assert spectrum.log_likelihood(values[:5], values.sum(), 10, floor) == pytest.approx(expected)


def test_no_noise() -> None:
    assert spectrum.noise_variance(np.array([2.0, 1.0]), 3.0, 5) == 0.0
    assert spectrum.noise_variance(np.array([2.0, 1.0]), 3.0 - 1e-12, 5) == 0.0  # rounding
    assert spectrum.noise_variance(np.array([2.0, 1.0]), 3.0, 2, 0.25) == 0.25
    assert spectrum.log_likelihood(np.array([2.0, 1.0]), 3.0, 5) == np.inf
    assert np.isfinite(spectrum.log_likelihood(np.array([2.0, 1.0]), 3.0, 5, 1e-6))


def test_parameters_are_the_rank_of_the_model(rng: np.random.Generator) -> None:
    D, d = 5, 2
    row, column = np.triu_indices(D)

    def covariance(v: Array) -> Array:
        W = v[: D * d].reshape(D, d)
        return np.asarray((W @ W.T + v[-1] * np.eye(D))[row, column])

    v = rng.normal(size=D * d + 1)
    steps = 1e-6 * np.eye(len(v))
    jacobian = np.array([covariance(v + e) - covariance(v - e) for e in steps]) / 2e-6
    assert spectrum.n_parameters(D, d) == np.linalg.matrix_rank(jacobian, tol=1e-5) + D


# ------------------------------------------------ how many axes


def test_fraction_is_the_first_to_reach_the_share() -> None:
    values = np.array([4.0, 3.0, 2.0, 1.0])
    shares = {0.1: 1, 0.4: 1, 0.41: 2, 0.7: 2, 0.9: 3, 0.9 + 1e-9: 4, 1.0: 4}
    for share, d in shares.items():
        assert Fraction(share)(values, 10.0, 4, 100.0) == d, share
    # the denominator is the trace, not the sum of what is known; more are wanted then
    assert Fraction(0.9)(values[:2], 10.0, 4, 100.0) == 2
    assert Fraction(0.5)(np.zeros(3), 0.0, 3, 100.0) == 0


def test_all_of_the_variance_is_the_numerical_rank(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 9))
    values, _ = eigen(X)
    assert Fraction(1.0)(values, float(np.trace(np.cov(X.T, bias=True))), 9, 50.0) == 4


@pytest.mark.parametrize("seed", range(6))
def test_evidence_chooses_as_scikit_learn(seed: int) -> None:
    X = data(seed, n=40 + 60 * seed, D=12, d=1 + seed, noise=0.4 + 0.3 * (seed % 3))
    values, _ = eigen(X)
    peer = PCA(n_components="mle").fit(X)
    assert Evidence()(values, values.sum(), 12, float(len(X))) == peer.n_components_


def test_evidence_by_its_definition() -> None:
    """The formula written out, products and all, in the order of the paper."""
    n, D = 30, 5
    values = np.array([5.0, 3.0, 1.2, 1.0, 0.7])
    for d in range(1, D):
        v = values[d:].mean()
        hat = np.r_[values[:d], np.full(D - d, v)]
        area = np.prod([gamma((D - i) / 2) * pi ** (-(D - i) / 2) for i in range(d)]) / 2**d
        A = 1.0
        for i in range(d):
            for j in range(i + 1, D):
                A *= (1 / hat[j] - 1 / hat[i]) * (values[i] - values[j]) * n
        m = D * d - d * (d + 1) / 2
        evidence = np.log(area) - n / 2 * np.log(hat).sum()
        evidence += (m + d) / 2 * np.log(2 * pi) - np.log(A) / 2 - d / 2 * np.log(n)
        assert spectrum.log_evidences(values, values.sum(), D, n)[d] == pytest.approx(evidence)


@pytest.mark.parametrize("rule", [Bic(), Evidence()])
@pytest.mark.parametrize("seed", range(4))
def test_the_true_dimension_is_found(rule: Any, seed: int) -> None:
    X = data(seed, n=500, D=15, d=4)
    values, _ = eigen(X)
    assert rule(values, values.sum(), 15, 500.0) == 4
    # units do not matter
    assert rule(1e9 * values, 1e9 * values.sum(), 15, 500.0) == 4


@pytest.mark.parametrize("rule", [Bic(), Evidence()])
def test_few_rows_do_not_buy_an_axis_each(rule: Any) -> None:
    X = data(3, n=40, D=300, d=3, noise=0.5)
    X = X - X.mean(axis=0)
    values = np.linalg.svd(X, compute_uv=False) ** 2 / 40
    assert rule(values, values.sum(), 300, 40.0) == 3


@pytest.mark.parametrize("rule", [Bic(), Evidence()])
def test_exact_rank_and_nothing_at_all(rule: Any, rng: np.random.Generator) -> None:
    values, _ = eigen(rng.normal(size=(200, 3)) @ rng.normal(size=(3, 8)))
    values = np.maximum(values, 0)
    assert rule(values, values.sum(), 8, 200.0) == 3
    assert rule(np.zeros(8), 0.0, 8, 200.0) == 0


def test_bic_is_its_definition() -> None:
    X = data(5)
    values, _ = eigen(X)
    bics = spectrum.bics(values, values.sum(), 10, 200.0)
    for d in (1, 4, 8):
        free = 10 * d - d * (d - 1) // 2 + 1 + 10
        assert bics[d] == pytest.approx(
            -400 * spectrum.log_likelihood(values[:d], values.sum(), 10) + free * np.log(200)
        )
    assert Bic()(values, values.sum(), 10, 200.0) == bics.argmin()


def test_floors_of_the_rules_are_relative_to_the_mean_variance() -> None:
    """Without noise each rule is that of the floored noise, 1 % of the mean variance here."""
    values, floor = np.array([30.0, 10.0, 0.0, 0.0, 0.0]), 0.01
    least = floor * values.sum() / 5
    bics = spectrum.bics(values, values.sum(), 5, 100.0, floor)
    for d in (2, 3):
        expected = -200 * spectrum.log_likelihood(values[:d], values.sum(), 5, least)
        assert bics[d] - spectrum.n_parameters(5, d) * np.log(100) == pytest.approx(expected)
    # rows with noise of just that size have the same evidence, up to what they change in values
    tiny = np.r_[values[:2], np.full(3, least)]
    floored = spectrum.log_evidences(values, values.sum(), 5, 100.0, floor)
    plain = spectrum.log_evidences(tiny, tiny.sum(), 5, 100.0, 0.0)
    assert floored[2] == pytest.approx(plain[2], abs=1.0)
    assert floored[2] < spectrum.log_evidences(values, values.sum(), 5, 100.0, floor / 10)[2] - 100


def test_rules_by_name() -> None:
    assert dimension_rule("bic") == Bic() and dimension_rule("mle") == Evidence()
    assert dimension_rule(np.float32(0.5)) == Fraction(0.5)
    assert dimension_rule(1.0) == Fraction(1.0)


@pytest.mark.parametrize("spec", [0.0, -0.5, 1.5, np.nan, True, 1, "aic", None, [0.5]])
def test_what_is_no_rule_is_refused(spec: Any) -> None:
    with pytest.raises(ValueError, match="n_components must be a whole number of axes"):
        dimension_rule(spec)
