"""Factor components by MAP: laws, the posterior density by scipy, axes one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import gamma, multivariate_normal, norm

from mixfold.families.factor import DiagonalNoise, FactorFamily, IsotropicNoise, TiedLoadings
from mixfold.families.factor.priors import LEAST, LoadingsPrior, NoisePrior, turn_to_axes
from mixfold.families.factor.regression import Regression
from mixfold.families.factor.steps import shrunk_loadings
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table

NOISES = {"isotropic": IsotropicNoise(), "diagonal": DiagonalNoise()}
PRIORS = {
    "ridge": LoadingsPrior(3.0),
    "ard": LoadingsPrior(),
    "common ard": LoadingsPrior(common=True),
    "none": None,
}
of_noises = pytest.mark.parametrize("noise", NOISES)
of_priors = pytest.mark.parametrize("prior", PRIORS)


def case_of(noise: str, prior: str, K: int = 2, missing: float = 0.0, **more: Any) -> Case:
    family = FactorFamily(
        factors=(2,), noise=NOISES[noise], has_missing=missing > 0, loadings_prior=PRIORS[prior],
        noise_prior=NoisePrior(7.0, 0.5), **more,
    )  # fmt: skip
    return Case(Mixture(K, family), clustered_table(90, 4, 2, missing, seed=4))


def log_posterior(case: Case, params: Any) -> float:
    """Row by row with scipy, and the priors as they are written down."""
    family: Any = case.model.family
    c, frame = params.components, params.components.frame
    U = frame.enter(case.X)
    total = 0.0
    for u in U:
        seen = np.flatnonzero(~np.isnan(u))
        if not seen.size:
            continue
        density = 0.0
        for k, weight in enumerate(params.weights):
            W = c.loadings[k, seen]
            law = multivariate_normal(c.means[k, seen], W @ W.T + np.diag(c.noise[k, seen]))
            density += weight * law.pdf(u[seen])
        total += np.log(density) - np.log(frame.scale[seen]).sum()
    prior, K, D = family.loadings_prior, *c.means.shape
    if prior is not None:
        squares = (c.loadings**2).sum(axis=1)
        size = D
        if prior.common:
            squares, size = squares.sum(axis=0), K * D
        if prior.precision is None:
            total -= size * np.log((size * LEAST + squares) / (size * LEAST)).sum()
        else:
            total -= 0.5 * prior.precision * squares.sum()
    variances = c.noise[:, :1] if family.noise.isotropic else c.noise
    rows, variance = family.noise_prior.rows, family.noise_prior.variance
    unit = np.mean(variance / frame.scale**2) if family.noise.isotropic else (
        variance / frame.scale**2
    )  # fmt: skip
    return float(total - 0.5 * rows * (np.log(variances) + unit / variances).sum())


@of_noises
@of_priors
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_laws_of_models(noise: str, prior: str, missing: float) -> None:
    case = case_of(noise, prior, missing=missing)
    skip = {"gradient": "checked below, at a looser tolerance"}
    laws.check_model(case, n_labels=2, skip=skip)
    laws.gradient(case, rtol=1e-4)


@of_noises
@of_priors
def test_the_objective_is_the_log_posterior(noise: str, prior: str) -> None:
    for missing in (0.0, 0.2):
        case = case_of(noise, prior, missing=missing)
        params = case.after(3)
        assert case.objective(params) == pytest.approx(log_posterior(case, params), rel=1e-10)


@of_noises
@pytest.mark.parametrize("prior", ["ridge", "ard"])
def test_no_small_change_of_a_fit_is_better(noise: str, prior: str) -> None:
    """Of one component, whose steps end at the highest posterior density nearby."""
    case = case_of(noise, prior, K=1)
    params: Any = case.after(300)
    c, family = params.components, case.model.family
    U = c.frame.enter(case.X)
    S, n, D = np.cov(U.T, bias=True), *U.shape

    def minus(v: np.ndarray) -> float:  # the mean is that of the rows
        W, roots = v[: 2 * D].reshape(D, 2), v[2 * D :]
        psi = np.broadcast_to(roots**2, D)
        C = W @ W.T + np.diag(psi)
        value = -0.5 * n * (np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, S)))
        there = replace(c, loadings=W[None], noise=psi[None])
        return -(value - family.penalty(there))

    np.testing.assert_allclose(c.means[0], U.mean(axis=0), atol=1e-9)
    roots = np.sqrt(c.noise[0, :1] if noise == "isotropic" else c.noise[0])
    start = np.concatenate([c.loadings[0].ravel(), roots])
    away = start * (1 + 0.1 * np.random.default_rng(0).normal(size=start.size))
    found = minimize(minus, away, method="BFGS", options={"maxiter": 300})
    assert found.fun == pytest.approx(minus(start), abs=1e-4)


def test_axes_of_isotropic_noise_one_by_one() -> None:
    """Given the noise each axis of the covariance has a likelihood of its own: a variable each."""
    rng = np.random.default_rng(3)
    n, D = 200, 6
    X = rng.normal(size=(n, D)) * [3.0, 2.0, 1.5, 1, 1, 1]
    X = X @ np.linalg.qr(rng.normal(size=(D, D)))[0]
    family = FactorFamily(factors=(5,), noise=IsotropicNoise(), loadings_prior=LoadingsPrior())
    case = Case(Mixture(1, family), X)
    params: Any = case.after(400)
    c = params.components
    lengths, noise = np.sort((c.loadings[0] ** 2).sum(axis=0))[::-1], c.noise[0, 0]
    values = np.linalg.eigvalsh(np.cov(c.frame.enter(X).T, bias=True))[::-1]

    def minus(log_length: float, value: float) -> float:
        total = np.exp(log_length) + noise
        log_likelihood = -0.5 * n * (np.log(total) + value / total)
        return -(log_likelihood - D * np.log(D * LEAST + np.exp(log_length)))

    assert (lengths[3:] < 1e-9).all()
    for length, value in zip(lengths[:3], values[:3], strict=True):
        best = minimize(lambda v, t=value: minus(v[0], t), [np.log(value - noise)])
        assert length == pytest.approx(np.exp(best.x[0]), rel=1e-3)
    left = values[3:].sum() + sum(  # E(x - Wz)^2 along an axis is noise again at a maximum
        value - 2 * value * length / (length + noise) + length**2 * value / (length + noise) ** 2
        + length * noise / (length + noise)
        for length, value in zip(lengths[:3], values[:3], strict=True)
    )  # fmt: skip
    assert noise == pytest.approx(left / D, rel=1e-6)


def test_a_precision_that_is_integrated_out() -> None:
    """The penalty is that of a gamma law of the precision, its slope the expected precision."""
    prior, size, squares = LoadingsPrior(), 4, 2.5
    rate = 0.5 * size * LEAST

    def log_marginal(s: float) -> float:  # of ``size`` entries, by quadrature over ln a
        def part(t: float) -> float:
            a = np.exp(t)
            return float(a**size * np.exp(-0.5 * a * s - rate * a))  # a^(J/2 - 1) a^(J/2) da

        return float(np.log(quad(part, -60, 20, points=[np.log(size / s)])[0]))

    other = 0.3
    told = prior.penalty(np.array([[other]]), size) - prior.penalty(np.array([[squares]]), size)
    assert told == pytest.approx(log_marginal(squares) - log_marginal(other), rel=1e-6)
    expected = gamma(size, scale=1 / (0.5 * squares + rate)).mean()
    assert prior.relevances(np.array([[squares]]), size) == pytest.approx(expected)
    ridge = LoadingsPrior(2.0)
    entries = np.array([0.3, -1.2])
    told = ridge.penalty(np.array([[(entries**2).sum()]]), 2)
    law = norm(scale=np.sqrt(0.5))
    assert told == pytest.approx(2 * law.logpdf(0) - law.logpdf(entries).sum())


def test_factors_are_turned_to_axes() -> None:
    W = np.random.default_rng(0).normal(size=(2, 7, 3))
    turn = turn_to_axes(np.swapaxes(W, 1, 2) @ W)
    turned = W @ turn
    products = np.swapaxes(turned, 1, 2) @ turned
    lengths = np.diagonal(products, axis1=1, axis2=2)
    np.testing.assert_allclose(products, lengths[:, None] * np.eye(3), atol=1e-12)
    assert (np.diff(lengths) < 0).all()
    np.testing.assert_allclose(turned @ np.swapaxes(turned, 1, 2), W @ np.swapaxes(W, 1, 2))


def test_common_loadings_have_no_prior() -> None:
    with pytest.raises(ValueError, match="loadings of their own"):
        FactorFamily(loadings=TiedLoadings(), loadings_prior=LoadingsPrior(1.0))


def test_loadings_of_factors_that_are_gone_and_of_no_rows_stay_floats() -> None:
    """A relevance of 1e250 and a component without rows, whose product is beyond floats."""
    d, D = 2, 3
    fit = Regression(
        count=np.full((1, D), 1e-200), x=np.zeros((1, D)), z=np.zeros((1, 1, d)),
        xx=np.ones((1, D)), xz=np.ones((1, D, d)), zz=np.eye(d)[None, None],
    )  # fmt: skip
    found = shrunk_loadings(fit, np.ones((1, D)), np.array([[1e250, 1.0]]))
    assert np.isfinite(found).all() and np.abs(found).max() < 1e-50
